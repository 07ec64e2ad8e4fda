"""Published numbers can be computed again from the files that are published with them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from bench.designs.findings import DesignFindings
from bench.report import tables

BENCH = Path(__file__).parents[3] / "bench"
PAGE = BENCH / "RESULTS.md"


@pytest.mark.req("TQ-219", "TQ-202")
def test_the_tables_of_the_page_are_those_of_the_files() -> None:
    """Every figure of the designs comes from the histograms that are published."""
    text = PAGE.read_text(encoding="utf-8")
    for name in ("published", "published-containers"):
        for table in ("loads", "methods"):
            assert f"<!-- {name}: {table} -->\n| " in text
    assert "<!-- published-direct: loads -->\n| " in text
    assert tables.fill_page(text, BENCH / "results") == text


@pytest.mark.parametrize("name", ["published", "published-direct", "published-containers"])
def test_the_csv_files_have_the_same_numbers(name: str, tmp_path: Path) -> None:
    """They are what the JSON files give."""
    folder = BENCH / "results" / name
    tables.write_csv(DesignFindings.load(folder), tmp_path)
    for each in ("loads.csv", "methods.csv"):
        assert (folder / each).read_text(encoding="utf-8") == (tmp_path / each).read_text(encoding="utf-8")


@pytest.mark.req("TQ-201", "CH-93")
def test_the_published_run_is_the_decided_one() -> None:
    """10 s of warm-up and 60 s of each load; 1, 8 and 32 users; jobs of no duration and of two others."""
    manifest = DesignFindings.load(BENCH / "results/published").manifest
    workload = manifest.workload
    assert (workload.warm_up_s, workload.run_s) == (10, 60)
    assert not manifest.quick
    assert list(workload.steps["ladder"].levels) == [1, 8, 32]
    assert len({step.job_ms for step in workload.steps.values()} - {0}) == 2
    assert (manifest.place, manifest.carrier) == ("processes", "grpcio")
    assert DesignFindings.load(BENCH / "results/published-direct").manifest.carrier == "direct"
    assert DesignFindings.load(BENCH / "results/published-containers").manifest.place == "containers"
    with (BENCH / "results/published/methods.csv").open(newline="", encoding="utf-8") as file:
        measured = {(row["design"], row["method"]) for row in csv.DictReader(file)}
    for design in ("microservices", "monolith"):
        assert {(design, "CancelJob"), (design, "ListJobs")} <= measured
