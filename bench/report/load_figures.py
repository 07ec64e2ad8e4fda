"""Figures of loads: throughput, latency, and time from submit to done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.designs.findings import DesignFindings
from bench.designs.results import DesignResult
from bench.percentiles import Summary
from bench.report.numbers import Level, Spread, list_closed_steps, list_levels, list_open_steps
from bench.report.style import Palette, draw_figure
from bench.workload import RequestKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS: tuple[tuple[RequestKind, str], ...] = (
    ("submit", "SubmitJob"),
    ("status", "GetJobStatus"),
    ("result", "GetJobResult"),
    ("cancel", "CancelJob"),
)


def draw_throughput(findings: DesignFindings, palette: Palette) -> Figure | None:
    """Draw requests and finished jobs per second over the number of users."""
    ladders = {name: _select_ladder(design) for name, design in findings.designs.items()}
    if not any(ladders.values()):
        return None
    with draw_figure(palette, 2, 3.1) as (figure, (left, right)):
        for index, (name, ladder) in enumerate(ladders.items()):
            colour = palette.design(index)
            users = [each.level for each in ladder]
            _draw_line(left, users, [each.requests_per_s for each in ladder], name, colour)
            _draw_line(right, users, [each.jobs_per_s for each in ladder], name, colour)
        for axes, title in ((left, "requests answered per second"), (right, "jobs done per second")):
            axes.set_title(title)
            axes.set_xlabel("users at a time (closed loop)")
            axes.set_xscale("log", base=2)
            axes.set_xticks([each.level for each in next(iter(ladders.values()))])
            axes.xaxis.set_major_formatter(_format_plainly)
            axes.xaxis.set_minor_formatter(lambda _value, _place: "")
            axes.set_xlim(axes.get_xlim()[0] / 1.2, axes.get_xlim()[1] * 5)
            axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
        return figure


def draw_percentiles(findings: DesignFindings, palette: Palette) -> Figure | None:
    """Draw the latency of each primary method: p50, p95 and p99 on one line."""
    rows = [
        (title, index, name, summary)
        for kind, title in _KINDS
        for index, (name, design) in enumerate(findings.designs.items())
        if (summary := _select_kind(design, kind)) is not None
    ]
    if not rows:
        return None
    with draw_figure(palette, 1, 0.9 + 0.36 * len(rows)) as (figure, (axes,)):
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x", linewidth=0.8)
        rows_by_title: dict[str, list[int]] = {}
        for row, (title, index, name, summary) in enumerate(rows):
            _draw_dumbbell(axes, row, summary, palette.design(index), palette, name if row < 2 else "")
            rows_by_title.setdefault(title, []).append(row)
        axes.set_yticks(
            [sum(rows_of_title) / len(rows_of_title) for rows_of_title in rows_by_title.values()],
            list(rows_by_title),
        )
        axes.tick_params(axis="y", labelcolor=palette["ink"])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        _format_axis_ms(axes)
        axes.margins(x=0.12)
        axes.legend(loc="lower right", ncols=2, bbox_to_anchor=(1, 1))
        return figure


def draw_over_time(findings: DesignFindings, palette: Palette) -> Figure | None:
    """Draw the latency in every half second of an open loop, of the first round."""
    runs = {
        name: list_levels(design, steps[0])[-1].repeats[0]
        for name, design in findings.designs.items()
        if (steps := list_open_steps(design))
    }
    if not runs:
        return None
    with draw_figure(palette, 2, 2.9, sharey=True) as (figure, panels):
        for axes, (title, percent) in zip(panels, (("p50", 50), ("p99", 99)), strict=True):
            for index, (name, run) in enumerate(runs.items()):
                at = [each.seconds for each in run.moments]
                values = [each.p50_ms if percent == 50 else each.p99_ms for each in run.moments]
                axes.plot(at, values, color=palette.design(index), linewidth=1.6, label=name)
            axes.set_title(f"{title}, ms")
            axes.set_xlabel("seconds into the window")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(_format_plainly)
            axes.yaxis.set_minor_formatter(lambda _value, _place: "")
        panels[0].legend(loc="upper left")
        return figure


def draw_end_to_end(findings: DesignFindings, palette: Palette) -> Figure | None:
    """Draw the distribution of times from submit to done, by the duration of jobs."""
    chosen = select_end_to_end_levels(findings)
    if not chosen:
        return None
    with draw_figure(palette, len(chosen), 3.1, sharey=True) as (figure, panels):
        for axes, (title, by_design) in zip(panels, chosen.items(), strict=True):
            for index, (name, level) in enumerate(by_design.items()):
                points = level.end_to_end.to_distribution()
                axes.step(
                    [0.5, *(max(ms, 0.5) for ms, _ in points)],
                    [0.0, *(share * 100 for _, share in points)],
                    where="post",
                    color=palette.design(index),
                    linewidth=1.8,
                    label=name,
                )
            axes.set_title(title)
            _format_axis_ms(axes)
        panels[0].set_ylabel("% of jobs done within")
        panels[0].legend(loc="lower right")
        return figure


def select_end_to_end_levels(findings: DesignFindings) -> dict[str, dict[str, Level]]:
    """Select a load of jobs without duration, and each with duration; by title, then design."""
    found: dict[str, dict[str, Level]] = {}
    for name, design in findings.designs.items():
        for level in (*_select_ladder(design)[1:2], *_select_with_duration(design)):
            found.setdefault(level.title, {})[name] = level
    return found


def _select_ladder(design: DesignResult) -> list[Level]:
    steps = list_closed_steps(design)
    return list_levels(design, steps[0]) if steps else []


def _select_with_duration(design: DesignResult) -> list[Level]:
    found = [step for step in list_open_steps(design) if design.select(step)[0].load.job_ms]
    return [list_levels(design, step)[-1] for step in found]


def _select_kind(design: DesignResult, kind: RequestKind) -> Summary | None:
    """Select the latency of a kind: of the ladder's second level, or of any step that has it."""
    candidates = [*_select_ladder(design)[1:2], *_select_ladder(design)[:1]]
    candidates += [
        level
        for step in dict.fromkeys(each.load.step for each in design.steps)
        for level in list_levels(design, step)
    ]
    return next((found for each in candidates if (found := each.by_kind(kind)) is not None), None)


def _draw_line(axes: Axes, users: list[float], spreads: list[Spread], name: str, colour: str) -> None:
    axes.plot(users, [each.middle for each in spreads], color=colour, linewidth=2, marker="o", markersize=5)
    axes.fill_between(
        users,
        [each.least for each in spreads],
        [each.most for each in spreads],
        color=colour,
        alpha=0.15,
        linewidth=0,
    )
    if users:
        axes.annotate(
            name,
            (users[-1], spreads[-1].middle),
            textcoords="offset points",
            xytext=(9, 0),
            color=colour,
            va="center",
            weight="bold",
        )
    for at, spread in zip(users, spreads, strict=True):
        axes.annotate(
            f"{spread.middle:,.0f}",
            (at, spread.middle),
            textcoords="offset points",
            xytext=(0, 7),
            ha="center",
            fontsize=8,
        )


def _draw_dumbbell(axes: Axes, row: int, summary: Summary, colour: str, palette: Palette, label: str) -> None:
    axes.plot(
        [summary.p50_ms, summary.p99_ms],
        [row, row],
        color=colour,
        linewidth=3,
        alpha=0.35,
        solid_capstyle="round",
    )
    axes.plot(summary.p50_ms, row, "o", color=colour, markersize=8, label=label or None)
    axes.plot(summary.p95_ms, row, "|", color=colour, markersize=11, markeredgewidth=2)
    axes.plot(summary.p99_ms, row, ">", color=colour, markersize=7)
    axes.annotate(
        f"p50 {summary.p50_ms:.1f}   p95 {summary.p95_ms:.0f}   p99 {summary.p99_ms:.0f}",
        (summary.p99_ms, row),
        textcoords="offset points",
        xytext=(9, 0),
        va="center",
        fontsize=8,
        color=palette["soft"],
    )


def _format_axis_ms(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds")
    axes.xaxis.set_major_formatter(_format_plainly)
    axes.xaxis.set_minor_formatter(lambda _value, _place: "")


def _format_plainly(value: float, _place: object) -> str:
    return f"{value:g}"
