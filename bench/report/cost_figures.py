"""Figures of costs: CPU time by node, latency by hop, and the capacity model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bench.designs.findings import DesignFindings
from bench.report.numbers import Level, list_closed_steps, list_levels
from bench.report.style import Palette, draw_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Colour = Callable[[int, int, str], str]
"""The colour for the number of a design, the number of a part and its name."""
_LEAST_LABELLED = 0.045
"""Parts that are narrower than this fraction of the widest bar have no room for their name."""


def draw_cpu_per_request(findings: DesignFindings, palette: Palette) -> Figure | None:
    """Draw the CPU time of one primary request, node by node."""
    bars = {name: level.cpu_us() for name, level in select_busiest(findings).items()}
    if not all(bars.values()) or not bars:
        return None

    def colour(design: int, _part: int, name: str) -> str:
        return palette["part-6"] if name == "clients" else palette.design(design)

    title = "processor time of one request, µs, with its share of running jobs"
    return _draw_stacked(bars, palette, title, colour, named=True)


def draw_hops(findings: DesignFindings, palette: Palette) -> Figure | None:
    """Draw the hops of one SubmitJob."""
    bars = {
        name: {segment.name: segment.median_us for segment in anatomy.segments}
        for name, anatomy in findings.anatomies.items()
        if anatomy.segments
    }
    if not bars:
        return None
    title = "time of one SubmitJob, µs, one at a time"
    return _draw_stacked(bars, palette, title, lambda _design, part, _name: palette.part(part), named=False)


def draw_capacity(findings: DesignFindings, palette: Palette) -> Figure | None:
    """Draw the model beside the measurements, and its extrapolation to six machines."""
    model = findings.model
    if model is None:
        return None
    with draw_figure(palette, 2, 3.0, width_ratios=(3, 2)) as (figure, (left, right)):
        labels: list[str] = []
        for index, (name, capacity) in enumerate(model.designs.items()):
            rows: dict[float, list[tuple[float, float]]] = {}
            for each in capacity.checks:
                rows.setdefault(each.level, []).append((each.predicted_per_s, each.measured_per_s))
            for level, pairs in rows.items():
                predicted = sum(pair[0] for pair in pairs) / len(pairs)
                measured = sum(pair[1] for pair in pairs) / len(pairs)
                _draw_pair(left, len(labels), predicted, measured, palette.design(index), palette)
                labels.append(f"{name}\n{level:g} users")
            extrapolation = capacity.six_machines
            right.bar(index, extrapolation.requests_per_s, color=palette.design(index), width=0.6)
            right.annotate(
                f"{extrapolation.requests_per_s:,.0f}",
                (index, extrapolation.requests_per_s),
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


def select_busiest(findings: DesignFindings) -> dict[str, Level]:
    """Select the highest level of each design's ladder."""
    return {
        name: list_levels(design, steps[0])[-1]
        for name, design in findings.designs.items()
        if (steps := list_closed_steps(design))
    }


def _draw_pair(
    axes: Axes, row: int, predicted: float, measured: float, colour: str, palette: Palette
) -> None:
    axes.bar(
        row - 0.2, predicted, width=0.36, facecolor="none", edgecolor=colour, hatch="////", linewidth=1.2
    )
    axes.bar(row + 0.2, measured, width=0.36, color=colour)
    for at, value in ((row - 0.2, predicted), (row + 0.2, measured)):
        axes.annotate(
            f"{value:,.0f}", (at, value), ha="center", va="bottom", fontsize=8, color=palette["ink"]
        )


def _draw_stacked(
    bars: Mapping[str, Mapping[str, float]], palette: Palette, title: str, colour: _Colour, *, named: bool
) -> Figure:
    """Draw a stacked bar for each design, with the names of its parts at the bar or in a legend."""
    widest = max(sum(parts.values()) for parts in bars.values())
    with draw_figure(palette, 1, (0.8 if named else 1.3) + 0.95 * len(bars)) as (figure, (axes,)):
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x", linewidth=0.8)
        for row, parts in enumerate(bars.values()):
            left = 0.0
            for index, (name, value) in enumerate(parts.items()):
                axes.barh(
                    row,
                    value,
                    left=left,
                    height=0.5,
                    color=colour(row, index, name),
                    edgecolor=palette["paper"],
                    linewidth=1,
                    label=name if row == 0 else None,
                )
                if value / widest >= _LEAST_LABELLED:
                    _draw_number(axes, row, left + value / 2, value, palette)
                    if named:
                        _draw_name(axes, row, left + value / 2, name, palette, above=index % 2 == 0)
                left += value
            axes.annotate(
                f"{left:,.0f}",
                (left, row),
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


def _draw_number(axes: Axes, row: int, middle: float, value: float, palette: Palette) -> None:
    axes.annotate(
        f"{value:,.0f}", (middle, row), ha="center", va="center", fontsize=8, color=palette["paper"]
    )


def _draw_name(axes: Axes, row: int, middle: float, name: str, palette: Palette, *, above: bool) -> None:
    axes.annotate(
        name,
        (middle, row + (-0.29 if above else 0.29)),
        ha="center",
        va="bottom" if above else "top",
        fontsize=8,
        color=palette["soft"],
    )
