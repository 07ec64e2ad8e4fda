"""Figures of the comparison with peers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bench.peers.ceiling import DRAINS, PGBENCH
from bench.peers.findings import Measure, MedianRate, PeerFindings
from bench.peers.goals import TITLES
from bench.peers.on_redis.ceiling import DRAINS as EVALSHA_DRAINS
from bench.peers.on_redis.ceiling import EVALSHA
from bench.percentiles import LatencyHistogram
from bench.report.peers_tables import BRIEF
from bench.report.style import Palette, draw_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CEILINGS = frozenset((PGBENCH, *DRAINS, EVALSHA, *EVALSHA_DRAINS))
_OURS = "design-0"
_PEERS = ("part-1", "part-2", "part-3", "part-4", "part-5")


def draw_submits(findings: PeerFindings, palette: Palette) -> Figure | None:
    """Draw the rates of submits, with a panel for each measure."""
    return _draw_rates(findings, palette, ("single-1", "single-16", "bulk"), _compute_height(findings, 2.2))


def draw_drains(findings: PeerFindings, palette: Palette) -> Figure | None:
    """Draw the rates of drains."""
    return _draw_rates(findings, palette, ("drain",), _compute_height(findings, 3.6))


def draw_pickups(findings: PeerFindings, palette: Palette) -> Figure | None:
    """Draw the distribution of times from submit to start."""
    if not any(half.pickups for half in findings.halves.values()):
        return None
    with draw_figure(palette, len(findings.halves), 3.1, sharey=True) as (figure, panels):
        for axes, (name, half) in zip(panels, findings.halves.items(), strict=True):
            for number, (contestant, each) in enumerate(half.pickups.items()):
                points = LatencyHistogram([each.histogram]).to_distribution()
                axes.step(
                    [points[0][0], *(ms for ms, _ in points)],
                    [0.0, *(share * 100 for _, share in points)],
                    where="post",
                    color=palette[choose_colour(contestant, half.pickups)],
                    linestyle="--" if number == len(half.pickups) - 1 else "-",
                    linewidth=1.8,
                    label=contestant,
                )
            axes.set_title(f"with {BRIEF[name]}")
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda value, _place: f"{value:g}")
            axes.set_xlabel("ms")
        panels[0].set_ylabel("% of jobs started within")
        panels[0].legend(loc="lower right")
        return figure


def draw_guards(findings: PeerFindings, palette: Palette) -> Figure | None:
    """Draw our drain with all guards, and without one guard each."""
    if not findings.guards:
        return None
    with draw_figure(palette, 1, 0.8 + 0.5 * len(findings.guards)) as (figure, (axes,)):
        _draw_bars(axes, palette, findings.guards, dict.fromkeys(findings.guards, _OURS))
        axes.set_title("jobs drained per second")
        return figure


def choose_colour(contestant: str, contestants: Iterable[str]) -> str:
    """Choose the colour of a contestant: one for ours, one for ceilings; those of peers alternate."""
    if not _is_peer(contestant):
        return "part-6" if contestant in _CEILINGS else _OURS
    return _PEERS[list(filter(_is_peer, contestants)).index(contestant) % len(_PEERS)]


def _is_peer(contestant: str) -> bool:
    return contestant not in _CEILINGS and not contestant.startswith("charter")


def _compute_height(findings: PeerFindings, least: float) -> float:
    """Compute the height that has room for every contestant."""
    most = max(len(rates) for half in findings.halves.values() for rates in half.rates.values())
    return max(least, 0.6 + 0.26 * most)


def _draw_rates(
    findings: PeerFindings, palette: Palette, measures: tuple[Measure, ...], height: float
) -> Figure | None:
    panels_shown = [
        (half, name, m) for name, half in findings.halves.items() for m in measures if m in half.rates
    ]
    if not panels_shown:
        return None
    columns = len(measures) if len(measures) > 1 else len(findings.halves)
    rows = len(panels_shown) // columns
    with draw_figure(palette, columns, height * rows, rows=rows, sharey=True) as (figure, panels):
        for axes, (half, name, measure) in zip(panels, panels_shown, strict=True):
            rates = half.rates[measure]
            _draw_bars(axes, palette, rates, {each: choose_colour(each, rates) for each in rates})
            title = TITLES[measure].removeprefix("submit, ")
            axes.set_title(f"{title}: {BRIEF[name]}", fontsize=9)
        return figure


def _draw_bars(
    axes: Axes, palette: Palette, rates: Mapping[str, MedianRate], colours: Mapping[str, str]
) -> None:
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", linewidth=0.8)
    widest = max(each.per_s for each in rates.values()) or 1.0
    for row, (name, each) in enumerate(rates.items()):
        axes.barh(row, each.per_s, height=0.62, color=palette[colours[name]])
        axes.annotate(
            f"{each.per_s:,.0f}",
            (each.per_s, row),
            textcoords="offset points",
            xytext=(5, 0),
            va="center",
            fontsize=8,
            weight="bold",
        )
    axes.set_yticks(range(len(rates)), list(rates), fontsize=8)
    axes.tick_params(axis="y", labelcolor=palette["ink"])
    axes.set_ylim(len(rates) - 0.4, -0.6)
    axes.set_xlim(0, widest * 1.25)
