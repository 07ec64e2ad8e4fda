"""Report of a run: one HTML file, and its picture as PNG beside it."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.queuey.findings import QueueyFindings
from bench.report.style import DARK, LIGHT, PLACEHOLDERS, Palette, draw_figure, figure_to_png, figure_to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE = "queuey.png"


def write_page(findings: QueueyFindings, folder: Path) -> Path:
    """Write `report.html` and the PNG; return the page."""
    report = Path(__file__).parents[1] / "report"
    environment = Environment(
        loader=FileSystemLoader([Path(__file__).parent, report]), undefined=StrictUndefined, autoescape=True
    )
    path = folder / "report.html"
    path.write_text(
        environment.get_template("page.html.j2").render(
            findings=findings,
            picture=Markup(figure_to_svg(_draw_ratios(findings, Palette(PLACEHOLDERS)))),
            median=statistics.median,
            light=LIGHT,
            dark=DARK,
        )
    )
    (folder / PICTURE).write_bytes(figure_to_png(_draw_ratios(findings, Palette(LIGHT))))
    return path


def _draw_ratios(findings: QueueyFindings, palette: Palette) -> Figure:
    """Draw the ratios of all rounds, with the median and the goal of each comparison."""
    rows = list(findings.comparisons.values())
    with draw_figure(palette, 1, 0.6 + 0.55 * len(rows)) as (figure, (axes,)):
        for row, each in enumerate(rows):
            axes.plot(each.ratios, [row] * len(each.ratios), "o", color=palette.design(0), alpha=0.35)
            axes.plot([each.ratio], [row], "D", color=palette.design(0))
            axes.plot([each.goal.at_least] * 2, [row - 0.3, row + 0.3], color=palette.design(1))
        axes.set_yticks(range(len(rows)), [each.title for each in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("times as fast, of each round and in the middle; the bar is the goal")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(axis="x", linewidth=0.8)
    return figure
