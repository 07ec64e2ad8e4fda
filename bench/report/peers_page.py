"""The report of the comparison with the peers: one HTML file, and the pictures as PNG beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from bench.peers.contestants import PGQUEUER, PROCRASTINATE
from bench.peers.findings import Findings
from bench.peers.goals import DRAINS, PICKUP_TITLE, TITLES, ratio
from bench.peers.ours import IN_DATABASE, OVER_HTTP
from bench.report import peers_figures
from bench.report.peers_tables import guard_costs, heading
from bench.report.style import DARK, LIGHT, STAND_IN, Palette, as_png, as_svg

Draw = Callable[[Findings, Palette], Figure | None]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the report, and what to look for in it."""

    name: str
    title: str
    text: str
    draw: Draw


PICTURES = (
    Picture(
        "drains",
        "Draining a full queue",
        "One worker process and jobs that do nothing, from the first finished job to the last by the "
        "database's own stamps. pgbench does no more than take a row and mark it done: no events, no owner, "
        "no job function.",
        peers_figures.drains,
    ),
    Picture(
        "submits",
        "Submitting",
        "One producer process. The peers are called within it; so is our enqueue function. Over HTTP a call "
        "goes through the API, which checks it, stores the job and then queues it.",
        peers_figures.submits,
    ),
    Picture(
        "pickups",
        "From submit to start when idle",
        "From before the call that submits to the first line of the job function, in a worker that waits.",
        peers_figures.pickups,
    ),
    Picture(
        "guards",
        "What the guards cost",
        "Our drain with 100 at a time as it is, and on scratch databases that lack one guard each.",
        peers_figures.guards,
    ),
)


def write(findings: Findings, folder: Path) -> Path:
    """Writes `report.html` and the PNGs; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for picture in PICTURES:
        figure = picture.draw(findings, Palette(STAND_IN))
        plain = picture.draw(findings, Palette(LIGHT))
        if figure is None or plain is None:
            continue
        drawn.append((picture, Markup(as_svg(figure))))
        (folder / f"{picture.name}.png").write_bytes(as_png(plain))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True
    )
    path = folder / "report.html"
    path.write_text(
        environment.get_template("peers.html.j2").render(
            findings=findings,
            pictures=drawn,
            sentences=list(sentences(findings)),
            headings={name: heading(findings, name) for name in findings.halves},
            titles=TITLES,
            pickup_title=PICKUP_TITLE,
            costs=guard_costs(findings),
            light=LIGHT,
            dark=DARK,
        )
    )
    return path


def sentences(findings: Findings) -> Iterator[str]:
    """What a reader should take away."""
    for name, half in findings.halves.items():
        drains, single = half.rates["drain"], half.rates["single-1"]
        told = ", ".join(
            f"{ratio(drains[own], drains[peer]):.2f} times {peer} ({own}: {drains[own].per_s:,.0f}/s)"
            for peer, (own, _) in DRAINS.items()
        )
        yield f"Drain with {heading(findings, name)}: {told}."
        yield (
            f"Submit with {heading(findings, name)}, one at a time: {single[IN_DATABASE].per_s:,.0f}/s in "
            f"the database and {single[OVER_HTTP].per_s:,.0f}/s over HTTP, where procrastinate has "
            f"{single[PROCRASTINATE].per_s:,.0f} and pgqueuer {single[PGQUEUER].per_s:,.0f}."
        )
    met = sum(goal.met for goal in findings.goals)
    yield f"{met} of {len(findings.goals)} goals are met."
