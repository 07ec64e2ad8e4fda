"""The order of claims in SQLite, who holds what, and what is due."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Set
from typing import Any

from msgspec import json

from runtime.stores.semantics.clocks import delay
from runtime.stores.semantics.leases import claim_age, is_able
from runtime.stores.semantics.rules import Clock, Rules
from runtime.stores.sqlite.rows import Rows


class RowClaims:
    """Those that can be claimed, from an index that has them apart by rank and need; and the leases."""

    def __init__(self, rules: Rules, rows: Rows) -> None:
        assert rules.lease is not None
        self._rules, self._rows, self._lease = rules, rows, rules.lease
        self._unit = 1 if self._lease.oldest_by in rules.instants else 1000

    def candidates(self, now: int, offered: frozenset[str] | None, paused: Collection[int]) -> Iterator[str]:
        """Iterate over the keys that an owner is able to run, in claim order."""
        for rank in self._lease.claim_order or (None,):
            if rank is None or rank not in paused:
                parts = [self._part(now, *given) for given in self._parts(rank, offered)]
                yield from (key for *_, key in (parts[0] if len(parts) == 1 else heapq.merge(*parts)))

    def sizes(self, now: int) -> dict[int, tuple[int, int]]:
        """Return by rank how many can be claimed, and the time of the oldest."""
        found = {}
        for number, rank in enumerate(self._lease.claim_order or (None,)):
            given = {"now": now // self._unit, "rank": rank}
            if "backlog" in self._rows.statements:
                count, oldest = self._rows.execute("backlog", given).fetchone()
                if count:
                    found[number] = (count, (oldest or 0) * self._unit)
        return found

    def next_free(self, now: int) -> int | None:
        """Return the moment at which the next one can be claimed that waits for its time."""
        if "next_free" not in self._rows.statements:
            return None
        (at,) = self._rows.execute("next_free", {"now": now // self._unit}).fetchone()
        return None if at is None else at * self._unit

    def held_by(self, owner: str) -> Set[str]:
        """Return the keys that are leased to an owner."""
        return {key for (key,) in self._rows.execute("held_by", {"owner": owner})}

    def held(self) -> list[str]:
        """Return the keys of all that is leased, in their order."""
        return [key for (key,) in self._rows.execute("held")]

    def _parts(self, rank: int | None, offered: frozenset[str] | None) -> Iterator[list[Any]]:
        """Iterate over the values of the columns by which those are apart that an owner is able to run."""
        ranks = [] if rank is None else [rank]
        if "needs" not in self._rows.statements:
            yield ranks
            return
        for (need,) in self._rows.execute("needs", {"rank": rank}).fetchall():
            needed = frozenset(json.decode(need, type=list[str])) if self._lease.holder else {need}
            if is_able(frozenset(needed), offered):
                yield [*ranks, need]

    def _part(self, now: int, *values: Any) -> Iterator[tuple[int, int, str]]:
        """Iterate over the ages, the numbers and the keys of a part: of equal age the first created."""
        if "claimable" not in self._rows.statements:
            return
        given: dict[str, Any] = {f"part_{number}": value for number, value in enumerate(values)}
        given["now"] = now // self._unit
        for number, key, record in self._rows.iterate_numbered("claimable", given):
            yield claim_age(self._rules, record), number, key


class RowDues:
    """Those that a clock finds due, longest overdue first."""

    def __init__(self, rules: Rules, clock: Clock, rows: Rows) -> None:
        self._rows, self._due, self._rules = rows, clock.due, rules
        self._statement = clock.statement
        self._unit = 1 if clock.due.at in rules.instants else 1000

    def due(self, now: int, most: int) -> list[str]:
        """Return the keys of those that are due, at most so many."""
        before = -(-(now - delay(self._rules, self._due)) // self._unit)
        given = {"before": before, "most": most}
        return [key for key, _ in self._rows.iterate(self._statement, given)]
