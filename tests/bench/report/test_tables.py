"""The numbers of a run as CSV and as the tables of a page: the same as in its JSON files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from rich.console import Console

from bench.designs.findings import DesignFindings
from bench.report import tables
from bench.report.numbers import list_all_levels
from bench.report.summary import make_table
from tests.support.bench.canned_findings import create_findings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create_findings().save(tmp_path / "run")
    tables.write_csv(DesignFindings.load(tmp_path / "run"), tmp_path / "run")
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.req("TQ-202")
def test_every_load_has_a_row(folder: Path) -> None:
    """Rates, three percentiles, end to end and job duration of each load of each repeat are in one file."""
    found = rows(folder / "run/loads.csv")
    steps = [step for design in create_findings().designs.values() for step in design.steps]
    assert len(found) == len(steps)
    for row, step in zip(found, steps, strict=True):
        assert float(row["requests_per_s"]) == step.primary.per_s
        assert float(row["latency_p95_ms"]) == step.primary.latency.p95_ms
        assert float(row["end_to_end_p99_ms"]) == step.jobs.end_to_end.p99_ms
        assert int(row["job_ms"]) == step.load.job_ms
    assert len({int(row["job_ms"]) for row in found} - {0}) >= 2


@pytest.mark.req("TQ-202", "TQ-204")
def test_every_method_has_a_row_of_its_own(folder: Path) -> None:
    """CancelJob and ListJobs, which only one load has, are there for both designs."""
    found = rows(folder / "run/methods.csv")
    for method in ("SubmitJob", "GetJobStatus", "GetJobResult", "CancelJob", "ListJobs"):
        mine = [row for row in found if row["method"] == method]
        assert {row["design"] for row in mine} == {"microservices", "monolith"}
        assert all(float(row["latency_p50_ms"]) == pytest.approx(5, rel=1e-3) for row in mine)
        assert all(float(row["latency_p99_ms"]) == pytest.approx(10, rel=1e-3) for row in mine)


def test_a_page_gets_its_tables_from_the_files(folder: Path) -> None:
    """The text between the placeholders is replaced, and the rest of the page stays."""
    loads, methods = "<!-- run: loads -->\nold\n<!-- end -->", "<!-- run: methods -->\n<!-- end -->"
    text = f"before\n{loads}\nbetween\n{methods}\nafter\n"
    made = tables.fill_page(text, folder)
    assert made.startswith("before\n<!-- run: loads -->\n| load |")
    assert made.endswith("<!-- end -->\nafter\n")
    assert "old" not in made
    assert "| ladder, 8 users | microservices | 8 | 5.0 / 10.0 / 10.0 |" in made
    assert "| CancelJob; five methods, 8 users | microservices | 5.0 / 10.0 / 10.0 |" in made
    assert "| | monolith | 5.0 / 10.0 / 10.0 |" in made
    assert tables.fill_page(made, folder) == made


def test_the_table_fits_on_a_terminal() -> None:
    """At 80 columns every number stands on its line, and no cell is cut."""
    console = Console(width=80)
    with console.capture() as shown:
        console.print(make_table(create_findings()))
    lines = shown.get().splitlines()
    assert all(len(line) <= 80 for line in lines)
    for design in create_findings().designs.values():
        for level in list_all_levels(design):
            assert any(line.startswith(level.title.replace("requests/s", "/s")) for line in lines)
    assert "…" not in shown.get()
