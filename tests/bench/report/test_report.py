"""The report: one self-contained page, with listings in a section of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.designs.findings import DesignFindings
from bench.report import page, summary
from bench.report.rerender import main as again
from tests.support.bench.canned_findings import create_findings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found: Path = tmp_path_factory.mktemp("report")
    create_findings().save(found)
    assert again([str(found)]) == 0
    return found


def test_the_page_needs_nothing_else(folder: Path) -> None:
    """Every picture is in it, and nothing is fetched from anywhere."""
    text = (folder / "report.html").read_text()
    assert text.count("<svg") == len(page.PICTURES)
    assert not re.search(r'(src|href)="https?:', text)
    assert "prefers-color-scheme: dark" in text


def test_the_pictures_take_their_colours_from_the_page(folder: Path) -> None:
    """So that they are readable in the light and in the dark."""
    text = (folder / "report.html").read_text()
    assert "var(--design-0)" in text
    assert "#0100f1" not in text


def test_every_picture_is_a_file_too(folder: Path) -> None:
    """For places that cannot show the page."""
    for picture in page.PICTURES:
        assert (folder / f"{picture.name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.req("TQ-204")
def test_listings_have_a_section_of_their_own(folder: Path) -> None:
    """The section of primary numbers is without them."""
    text = (folder / "report.html").read_text()
    primary, secondary = re.findall(r'<section id="(?:numbers|listings)">.*?</section>', text, re.DOTALL)
    assert "SubmitJob, GetJobStatus, GetJobResult, CancelJob" in primary
    assert "listings/s" not in primary
    assert "Secondary: ListJobs" in secondary
    assert secondary.count("five methods") == 2


def test_the_sentences_come_from_the_numbers() -> None:
    """Two designs with the same numbers have the same sentences."""
    sentences = summary.format_sentences(create_findings())
    assert sentences[0] == (
        "With 32 users the monolith answers 8 requests a second, 1.0 times as many as the microservices (8)."
    )


def test_one_design_alone_is_reported_too(tmp_path: Path) -> None:
    """Without the model, the traces and a second design the page still comes out."""
    both = create_findings()
    alone = DesignFindings(
        manifest=both.manifest.model_copy(
            update={"designs": {"monolith": both.manifest.designs["monolith"]}}
        ),
        designs={"monolith": both.designs["monolith"]},
        anatomies={},
        model=None,
    )
    assert "<svg" in page.write_page(alone, tmp_path).read_text()
