"""The report of a run: one HTML file, and its picture as PNG beside it."""

from __future__ import annotations

import statistics
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from bench.queuey.findings import Findings
from bench.report.style import DARK, LIGHT, STAND_IN, Palette, as_png, as_svg, drawing

PICTURE = "queuey.png"


def write(findings: Findings, folder: Path) -> Path:
    """Write `report.html` and the PNG; return the page."""
    report = Path(__file__).parents[1] / "report"
    environment = Environment(
        loader=FileSystemLoader([Path(__file__).parent, report]), undefined=StrictUndefined, autoescape=True
    )
    path = folder / "report.html"
    path.write_text(
        environment.get_template("page.html.j2").render(
            findings=findings,
            picture=Markup(as_svg(_drawn(findings, Palette(STAND_IN)))),
            median=statistics.median,
            light=LIGHT,
            dark=DARK,
        )
    )
    (folder / PICTURE).write_bytes(as_png(_drawn(findings, Palette(LIGHT))))
    return path


def _drawn(findings: Findings, palette: Palette) -> Figure:
    """The ratios of all rounds, with the middle and the goal of each."""
    rows = list(findings.comparisons.values())
    with drawing(palette, 1, 0.6 + 0.55 * len(rows)) as (figure, (axes,)):
        for place, each in enumerate(rows):
            axes.plot(each.ratios, [place] * len(each.ratios), "o", color=palette.design(0), alpha=0.35)
            axes.plot([each.ratio], [place], "D", color=palette.design(0))
            axes.plot([each.goal.at_least] * 2, [place - 0.3, place + 0.3], color=palette.design(1))
        axes.set_yticks(range(len(rows)), [each.title for each in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("times as fast, of each round and in the middle; the bar is the goal")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.grid(axis="x", linewidth=0.8)
    return figure
