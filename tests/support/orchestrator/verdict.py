"""Invariants of every job after any run with failures, and the number of these."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

from tests.support.orchestrator.stage import BEGUN
from tests.support.orchestrator.worker_processes import ENDS, Crew, group_by_job

ORDER = {
    "CREATED": ("QUEUED",),
    "QUEUED": ("RUNNING",),
    "RUNNING": ("RUNNING", "SUCCESS", "RETRY"),
    "RETRY": ("QUEUED", "DEAD"),
}
"""The states that may follow a version; a renewed lease stays in its state."""


class Count(NamedTuple):
    """A run in numbers."""

    jobs: int
    succeeded: int
    dead: int
    runs: int
    repeated: int
    leases_lost: int
    failures: int


def verify(crew: Crew) -> Count:
    """Check every version of every row against the ledger of runs."""
    rows = {str(row["job_id"]): row for row in crew.sql.rows("SELECT * FROM jobs")}
    histories = group_by_job(crew.sql.rows("SELECT * FROM versions ORDER BY number"))
    ledger = Counter((run.job_id, run.attempt) for run in crew.stage.runs(BEGUN))
    assert rows.keys() == histories.keys(), "no row ever disappears"
    assert {job for job, _ in ledger} <= rows.keys()
    assert set(ledger.values()) <= {1}, "an attempt is begun once"
    lost = failures = 0
    for job, versions in histories.items():
        expired, failed = _verify(versions, rows[job])
        lost, failures = lost + expired, failures + failed
    for job, attempt in ledger:
        assert attempt <= rows[job]["attempt"], "nothing is run without a lease, nor after the end"
    repeated = len(ledger) - len({job for job, _ in ledger})
    assert repeated <= lost + failures, "a job is run again only after a lost lease or a failure"
    states = Counter(row["state"] for row in rows.values())
    return Count(
        jobs=len(rows),
        succeeded=states["SUCCESS"],
        dead=states["DEAD"],
        runs=len(ledger),
        repeated=repeated,
        leases_lost=lost,
        failures=failures,
    )


def _verify(versions: list[dict[str, Any]], row: dict[str, Any]) -> tuple[int, int]:
    """Check the versions of one job; return how many leases it lost and how often it failed otherwise."""
    lost = failed = 0
    assert versions[0]["state"] == "CREATED"
    for before, after in pairwise(versions):
        assert before["state"] not in ENDS, "nothing follows an end"
        assert after["state"] in ORDER[before["state"]]
        claimed = before["state"] == "QUEUED"
        assert after["attempt"] == before["attempt"] + claimed
        assert (after["lease_owner"] is not None) == (after["state"] == "RUNNING")
        if before["state"] == after["state"] == "RUNNING":
            assert after["lease_owner"] == before["lease_owner"], "a lease never changes hands"
            assert after["lease_expiry"] > before["lease_expiry"]
        if after["state"] == "RETRY":
            assert after["retry_count"] == before["retry_count"] + 1
            if after["actor"] == "reaper":
                assert after["updated_at"] > before["lease_expiry"], "a lease that has not expired stays"
            lost, failed = lost + (after["actor"] == "reaper"), failed + (after["actor"] == "worker")
        if after["state"] == "SUCCESS":
            assert after["updated_at"] < before["lease_expiry"]
    assert row["state"] == versions[-1]["state"]
    assert row["retry_count"] == lost + failed
    return lost, failed
