"""Report of a comparison with peers: one HTML file, and the pictures as PNG beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.peers.findings import PeerFindings
from bench.peers.goals import PICKUP_TITLE, TITLES
from bench.report.peers_stories import STORIES
from bench.report.peers_tables import compute_guard_costs, format_heading
from bench.report.style import DARK, LIGHT, PLACEHOLDERS, Palette, figure_to_png, figure_to_svg


def write_page(findings: PeerFindings, folder: Path) -> Path:
    """Write `report.html` and the PNGs; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    story, drawn = STORIES[findings.system], []
    for picture in story.pictures:
        figure = picture.draw(findings, Palette(PLACEHOLDERS))
        plain = picture.draw(findings, Palette(LIGHT))
        if figure is None or plain is None:
            continue
        drawn.append((picture, Markup(figure_to_svg(figure))))
        (folder / f"{picture.name}.png").write_bytes(figure_to_png(plain))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, autoescape=True
    )
    path = folder / "report.html"
    path.write_text(
        environment.get_template("peers.html.j2").render(
            findings=findings,
            pictures=drawn,
            sentences=list(format_sentences(findings)),
            server=story.server.format(versions=findings.versions),
            circumstances=story.circumstances,
            headings={name: format_heading(findings, name) for name in findings.halves},
            titles=TITLES,
            pickup_title=PICKUP_TITLE,
            costs=compute_guard_costs(findings),
            light=LIGHT,
            dark=DARK,
        )
    )
    return path


def format_sentences(findings: PeerFindings) -> Iterator[str]:
    """Format the main findings as sentences."""
    yield from STORIES[findings.system].sentences(findings)
    met = sum(goal.is_met for goal in findings.goals)
    yield f"{met} of {len(findings.goals)} goals are met."
