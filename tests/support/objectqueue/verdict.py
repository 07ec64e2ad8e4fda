"""Invariants of every task after any run with failures, by its versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.objectqueue.crew import ENDED, Crew, parse_time

ORDER = {
    "Pending": ("Running",),
    "Running": ("Running", "Pending", "Completed", "Failed"),
}
"""The states that may follow a version; a renewed lease or a progress report stays in its state."""


class Count(NamedTuple):
    """A run in numbers."""

    tasks: int
    completed: int
    runs: int
    repeated: int
    requeued: int


def verify(crew: Crew, keys: Sequence[str], ledger: Path | None, unacknowledged: int = 0) -> Count:
    """Check every version of every task, and the ledger of runs.

    `unacknowledged` is how many writes were in flight when the store was killed. It may keep a version of
    each that never was the current one, beside the version that won later.
    """
    begun = Counter(_read_lines(ledger))
    completed = requeued = runs = 0
    for key in keys:
        found = crew.versions(key)
        versions = _list_current(found) if unacknowledged else found
        unacknowledged -= len(found) - len(versions)
        assert unacknowledged >= 0, "no more versions are left over than writes were cut off"
        _check(versions)
        attempts = [each["attempt"] for each in versions if each["status"] == "Running"]
        assert sorted(set(attempts)) == list(range(1, versions[-1]["attempt"] + 1))
        completed += versions[-1]["status"] == "Completed"
        requeued += sum(each["status"] == "Pending" for each in versions[1:])
        runs += versions[-1]["attempt"]
        for attempt in attempts:
            assert begun[key, attempt] <= 1, "an attempt has one claimer, who begins it once"
        if ledger is not None and versions[-1]["status"] == "Completed":
            assert begun[key, versions[-1]["attempt"]] == 1, "what is completed was run"
    return Count(len(keys), completed, runs, runs - len(keys), requeued)


def _list_current(versions: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """The versions that follow from each other, without those that a killed store has not deleted."""
    by_revision = [list(each) for _, each in groupby(versions, lambda each: int(each["rev"]))]
    for chain in product(*by_revision):
        with suppress(AssertionError):
            _check(chain)
            return chain
    return versions


def _read_lines(ledger: Path | None) -> list[tuple[str, int]]:
    if ledger is None or not ledger.exists():
        return []
    read = [line.split() for line in ledger.read_text().splitlines()]
    return [(key, int(attempt)) for key, attempt in read]


def _check(versions: Sequence[dict[str, Any]]) -> None:
    assert versions[0]["status"] == "Pending"
    assert versions[-1]["status"] in ENDED, "no task is lost"
    assert [each["rev"] for each in versions] == list(range(1, len(versions) + 1)), "winners are versions"
    for before, after in pairwise(versions):
        assert after["status"] in ORDER[before["status"]]
        assert after["updated_at"] > before["updated_at"]
        assert after["created_at"] == before["created_at"]
        is_claim = before["status"] == "Pending"
        assert after["attempt"] == before["attempt"] + is_claim
        if is_claim:
            assert after["lease_id"] not in {each["lease_id"] for each in versions if each is not after}, (
                "each attempt has a lease of its own"
            )
        # A worker counts from before it asked for the lease, and may end its own run a little earlier.
        if after["status"] == "Pending" and after["last_error"].startswith("lease expired"):
            assert parse_time(after["updated_at"]) >= parse_time(before["lease_expires_at"]), (
                "no run is cut short"
            )
