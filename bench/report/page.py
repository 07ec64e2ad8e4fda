"""Report on designs: one self-contained HTML file, and the pictures as PNG beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.designs.findings import DesignFindings
from bench.report import cost_figures, load_figures
from bench.report.numbers import list_all_levels
from bench.report.style import DARK, LIGHT, PLACEHOLDERS, Palette, figure_to_png, figure_to_svg
from bench.report.summary import format_sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[DesignFindings, Palette], "Figure | None"]


@dataclass(frozen=True, slots=True)
class DesignPicture:
    """A picture of the report, with its explanation."""

    name: str
    title: str
    text: str
    draw: Draw


PICTURES = (
    DesignPicture(
        "throughput",
        "Throughput over concurrency",
        "Users send their next request when the last answer is there. The band is the spread of the repeats. "
        "Where jobs per second fall behind a quarter of the requests, a backlog grows.",
        load_figures.draw_throughput,
    ),
    DesignPicture(
        "percentiles",
        "Latency of each method",
        "Dot: half of all answers came sooner. Bar: 95 %. Arrow: 99 %. Nearest rank; logarithmic scale.",
        load_figures.draw_percentiles,
    ),
    DesignPicture(
        "over-time",
        "Latency over time",
        "An open loop: requests come at random times whatever the answers do, and each is timed from when it "
        "was meant to be sent. A stall would stand out as a tower.",
        load_figures.draw_over_time,
    ),
    DesignPicture(
        "end-to-end",
        "From submit to done",
        "By the stamps of the job records, for jobs that were submitted in the window.",
        load_figures.draw_end_to_end,
    ),
    DesignPicture(
        "cpu",
        "What a request costs, by node",
        "Processor time of every node and of the clients, divided by the requests that were answered.",
        cost_figures.draw_cpu_per_request,
    ),
    DesignPicture(
        "hops",
        "Where the time of one SubmitJob goes",
        "From traces, with no other load and no job running: stretches between the moments at which a call "
        "came in and its answer went out. Tracing itself is in it.",
        cost_figures.draw_hops,
    ),
    DesignPicture(
        "capacity",
        "What the capacity model says",
        "Processor time of one call times the number of calls. It is fed by an echo and by handlers without "
        "a network, not by the load that it predicts. Six machines: every node alone on one, one processor "
        "each, clients elsewhere.",
        cost_figures.draw_capacity,
    ),
)


def write_page(findings: DesignFindings, folder: Path) -> Path:
    """Write `report.html` and the PNGs; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for picture in PICTURES:
        figure = picture.draw(findings, Palette(PLACEHOLDERS))
        if figure is None:
            continue
        drawn.append((picture, Markup(figure_to_svg(figure))))
        plain = picture.draw(findings, Palette(LIGHT))
        if plain is not None:
            (folder / f"{picture.name}.png").write_bytes(figure_to_png(plain))
    path = folder / "report.html"
    path.write_text(_render_page(findings, drawn))
    return path


def _render_page(findings: DesignFindings, drawn: list[tuple[DesignPicture, Markup]]) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True
    )
    return environment.get_template("page.html.j2").render(
        findings=findings,
        manifest=findings.manifest,
        pictures=drawn,
        sentences=format_sentences(findings),
        levels={name: list_all_levels(design) for name, design in findings.designs.items()},
        light=LIGHT,
        dark=DARK,
        shared=list(findings.designs),
    )
