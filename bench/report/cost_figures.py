"""Pictures of what it costs, where the time goes, and what the model makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.designs.findings import DesignFindings
from bench.report.numbers import Level, closed_steps, levels
from bench.report.style import Palette, drawing

_Colour = Callable[[int, int, str], str]
"""Takes the number of a design, the number of a part and its name."""
_LEAST_LABELLED = 0.045
"""Parts that are narrower than this share of the widest bar have no room for their name."""


def cpu_per_request(findings: DesignFindings, palette: Palette) -> Figure | None:
    """Processor time of one primary request, node by node."""
    bars = {name: level.cpu_us() for name, level in busiest(findings).items()}
    if not all(bars.values()) or not bars:
        return None

    def colour(design: int, _part: int, name: str) -> str:
        return palette["part-6"] if name == "clients" else palette.design(design)

    title = "processor time of one request, µs, with its share of running jobs"
    return _stacked(bars, palette, title, colour, named=True)


def hop_by_hop(findings: DesignFindings, palette: Palette) -> Figure | None:
    """The way of one SubmitJob, part by part."""
    bars = {
        name: {segment.name: segment.median_us for segment in anatomy.segments}
        for name, anatomy in findings.anatomies.items()
        if anatomy.segments
    }
    if not bars:
        return None
    title = "time of one SubmitJob, µs, one at a time"
    return _stacked(bars, palette, title, lambda _design, part, _name: palette.part(part), named=False)


def predicted(findings: DesignFindings, palette: Palette) -> Figure | None:
    """The model beside what was measured, and what it says of six machines."""
    model = findings.model
    if model is None:
        return None
    with drawing(palette, 2, 3.0, width_ratios=(3, 2)) as (figure, (left, right)):
        labels: list[str] = []
        for index, (name, capacity) in enumerate(model.designs.items()):
            rows: dict[float, list[tuple[float, float]]] = {}
            for each in capacity.checks:
                rows.setdefault(each.level, []).append((each.predicted_per_s, each.measured_per_s))
            for level, pairs in rows.items():
                guess = sum(pair[0] for pair in pairs) / len(pairs)
                seen = sum(pair[1] for pair in pairs) / len(pairs)
                _pair(left, len(labels), guess, seen, palette.design(index), palette)
                labels.append(f"{name}\n{level:g} users")
            outlook = capacity.six_machines
            right.bar(index, outlook.requests_per_s, color=palette.design(index), width=0.6)
            right.annotate(
                f"{outlook.requests_per_s:,.0f}",
                (index, outlook.requests_per_s),
                ha="center",
                va="bottom",
                weight="bold",
            )
        left.set_title("here: model (hatched) and measured, requests/s")
        left.set_xticks(range(len(labels)), labels, fontsize=8)
        right.set_title("on six machines, by the model")
        right.set_xticks(range(len(model.designs)), list(model.designs))
        for axes in (left, right):
            axes.tick_params(axis="x", labelcolor=palette["ink"])
            axes.margins(y=0.15)
        return figure


def busiest(findings: DesignFindings) -> dict[str, Level]:
    """The highest rung of each design's ladder."""
    return {
        name: levels(design, steps[0])[-1]
        for name, design in findings.designs.items()
        if (steps := closed_steps(design))
    }


def _pair(axes: Axes, place: int, guess: float, seen: float, colour: str, palette: Palette) -> None:
    axes.bar(place - 0.2, guess, width=0.36, facecolor="none", edgecolor=colour, hatch="////", linewidth=1.2)
    axes.bar(place + 0.2, seen, width=0.36, color=colour)
    for at, value in ((place - 0.2, guess), (place + 0.2, seen)):
        axes.annotate(
            f"{value:,.0f}", (at, value), ha="center", va="bottom", fontsize=8, color=palette["ink"]
        )


def _stacked(
    bars: Mapping[str, Mapping[str, float]], palette: Palette, title: str, colour: _Colour, *, named: bool
) -> Figure:
    """One bar a design, cut into parts that are named at the bar or in a legend."""
    widest = max(sum(parts.values()) for parts in bars.values())
    with drawing(palette, 1, (0.8 if named else 1.3) + 0.95 * len(bars)) as (figure, (axes,)):
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x", linewidth=0.8)
        for place, parts in enumerate(bars.values()):
            left = 0.0
            for index, (name, value) in enumerate(parts.items()):
                axes.barh(
                    place,
                    value,
                    left=left,
                    height=0.5,
                    color=colour(place, index, name),
                    edgecolor=palette["paper"],
                    linewidth=1,
                    label=name if place == 0 else None,
                )
                if value / widest >= _LEAST_LABELLED:
                    _number(axes, place, left + value / 2, value, palette)
                    if named:
                        _name(axes, place, left + value / 2, name, palette, above=index % 2 == 0)
                left += value
            axes.annotate(
                f"{left:,.0f}",
                (left, place),
                textcoords="offset points",
                xytext=(6, 0),
                va="center",
                weight="bold",
            )
        axes.set_yticks(range(len(bars)), list(bars))
        axes.tick_params(axis="y", labelcolor=palette["ink"])
        axes.set_ylim(len(bars) - 0.35, -0.75)
        axes.set_xlim(0, widest * 1.09)
        axes.set_title(title)
        if not named:
            figure.legend(loc="outside lower center", ncols=4, fontsize=8.5)
        return figure


def _number(axes: Axes, place: int, middle: float, value: float, palette: Palette) -> None:
    axes.annotate(
        f"{value:,.0f}", (middle, place), ha="center", va="center", fontsize=8, color=palette["paper"]
    )


def _name(axes: Axes, place: int, middle: float, name: str, palette: Palette, *, above: bool) -> None:
    axes.annotate(
        name,
        (middle, place + (-0.29 if above else 0.29)),
        ha="center",
        va="bottom" if above else "top",
        fontsize=8,
        color=palette["soft"],
    )
