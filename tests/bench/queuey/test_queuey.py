"""Measures of the queue for WASI jobs: equal sides, finished jobs, and goals."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from bench.queuey.findings import Comparison, QueueyFindings, RatioGoal
from bench.queuey.finished_jobs import insert_finished_jobs
from bench.queuey.page import PICTURE, write_page
from bench.queuey.processes import start_bare, start_ours


def create_comparison(*ratios: float) -> Comparison:
    return Comparison(
        title="taken",
        first="by hand",
        second="ours",
        first_per_s=[100.0] * len(ratios),
        second_per_s=[100 * each for each in ratios],
        first_cpu_us=1.0,
        second_cpu_us=2.0,
        first_p50_ms=1.0,
        second_p50_ms=2.0,
        goal=RatioGoal(at_least=0.8),
    )


def test_both_sides_do_the_same(tmp_path: Path) -> None:
    """Jobs that the clients create are claimed and completed on either side."""
    with start_bare(tmp_path / "bare.db") as theirs, start_ours(tmp_path / "ours.db") as own:
        for served in (theirs, own):
            for what in ("create", "pair"):
                assert served.measure(what, 8, 4).per_s > 0
    for name in ("bare", "ours"):
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            rows = connection.execute("SELECT status, count(*) FROM jobs GROUP BY status").fetchall()
            assert rows == [("completed", 8)]
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        connection.close()


def test_inserted_jobs_look_finished(tmp_path: Path) -> None:
    """Finished jobs are counted, the guards are back, and new jobs are claimed."""
    file = tmp_path / "q.db"
    with start_ours(file):
        pass
    insert_finished_jobs(file, 500)
    with start_ours(file, batched=False) as served:
        served.measure("create", 2, 1)
        served.measure("claim", 2, 1)
    with sqlite3.connect(file) as connection:
        found = dict(connection.execute("SELECT status, entities FROM jobs_in_state"))
        guards = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()
    connection.close()
    assert (found["completed"], found["active"], found["pending"]) == (500, 2, 0)
    assert guards[0] >= 7


def test_goals_are_judged_by_the_median(tmp_path: Path) -> None:
    """One bad round does not miss a goal; the page has the numbers."""
    good, bad = create_comparison(0.1, 0.9, 0.9), create_comparison(0.9, 0.7, 0.7)
    findings = QueueyFindings(
        stamp="now",
        commit="abc",
        quick=True,
        machine={"cores": 2, "load_before": [1.0]},
        comparisons={"good": good, "bad": bad},
        figures={"instance_p50_ms": 1.0},
    )
    assert (good.is_met, bad.is_met, findings.missed) == (True, False, ["taken"])
    page = write_page(findings, tmp_path).read_text()
    assert "0.70 times as fast as by hand; missed" in page
    assert (tmp_path / PICTURE).read_bytes().startswith(b"\x89PNG")
