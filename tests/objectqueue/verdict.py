"""What must hold of every task after any run, however much went wrong in it: its versions tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.objectqueue.crew import ENDED, Crew, at

ORDER = {
    "Pending": ("Running",),
    "Running": ("Running", "Pending", "Completed", "Failed"),
}
"""What may follow a version; a lease that is renewed, or a word of progress, stays where it is."""


class Count(NamedTuple):
    """A run in numbers."""

    tasks: int
    completed: int
    runs: int
    repeated: int
    put_back: int


def verdict(crew: Crew, keys: Sequence[str], ledger: Path | None) -> Count:
    """Checks every version of every task, and the ledger of what was run."""
    begun = Counter(_lines(ledger))
    completed = put_back = runs = 0
    for key in keys:
        versions = crew.versions(key)
        _check(versions)
        attempts = [each["attempt"] for each in versions if each["status"] == "Running"]
        assert sorted(set(attempts)) == list(range(1, versions[-1]["attempt"] + 1))
        completed += versions[-1]["status"] == "Completed"
        put_back += sum(each["status"] == "Pending" for each in versions[1:])
        runs += versions[-1]["attempt"]
        for attempt in attempts:
            assert begun[key, attempt] <= 1, "an attempt has one claimer, who begins it once"
        if ledger is not None and versions[-1]["status"] == "Completed":
            assert begun[key, versions[-1]["attempt"]] == 1, "what is completed was run"
    return Count(len(keys), completed, runs, runs - len(keys), put_back)


def _lines(ledger: Path | None) -> list[tuple[str, int]]:
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
        if (before["status"], after["status"]) == ("Running", "Pending"):
            assert at(after["updated_at"]) >= at(before["lease_expires_at"]), "nobody is cut short"
