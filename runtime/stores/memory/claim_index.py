"""The order of claims in memory, and who holds what."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Set
from typing import Any

from sortedcontainers import SortedList

from runtime.stores.semantics.leases import claim_age, claim_rank, free_at, is_able, is_free, needs
from runtime.stores.semantics.rules import Rules

_Part = tuple[int, frozenset[str]]
"""A rank, and what an owner must be able to do."""
_Entry = tuple[int, int, str]
"""A time, the number of the entity in the order of creation, and its key."""


class ClaimIndex:
    """Those that can be claimed, apart by rank and need, each part oldest first; and the leases by owner."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._parts: dict[_Part, SortedList[_Entry]] = {}
        self._placed: dict[str, tuple[_Part, _Entry]] = {}
        self._later: list[tuple[int, str]] = []
        """A heap of those whose time has not come when they were last looked at; some entries are stale."""
        self._waiting: dict[str, tuple[_Part, _Entry, int]] = {}
        self._held: dict[str, set[str]] = {}
        self._numbers: dict[str, int] = {}
        self._last_number = 0

    def replace(self, key: str, old: Any | None, new: Any | None) -> bool:
        """Follow a change of an entity; whether it can be claimed after it."""
        self._follow_lease(key, old, new)
        if old is not None:
            self._remove(key)
        else:
            self._last_number += 1
            self._numbers[key] = self._last_number
        if new is None:
            del self._numbers[key]
        if new is None or not is_free(self._rules, new):
            return False
        part = (claim_rank(self._rules, new) or 0, needs(self._rules, new))
        entry = (claim_age(self._rules, new), self._numbers[key], key)
        if self._rules.not_before is None:
            self._add(part, entry)
        else:
            at = free_at(self._rules, new)
            self._waiting[key] = (part, entry, at)
            heapq.heappush(self._later, (at, key))
        return True

    def candidates(self, now: int, offered: frozenset[str] | None, paused: Collection[int]) -> Iterator[str]:
        """Iterate over the keys that an owner is able to run, in claim order."""
        self._promote(now)
        lease = self._rules.lease
        first = lease.claim_order if lease else ()
        for rank in sorted({rank for rank, _ in self._parts}):
            if first and first[rank] in paused:
                continue
            parts = [
                entries.islice(0, self._claimable(entries, now))
                for (each, needed), entries in self._parts.items()
                if each == rank and is_able(needed, offered)
            ]
            yield from (key for *_, key in heapq.merge(*parts))

    def sizes(self, now: int) -> dict[int, tuple[int, int]]:
        """Return by rank how many can be claimed, and the time of the oldest."""
        self._promote(now)
        found: dict[int, tuple[int, int]] = {}
        for (rank, _), entries in self._parts.items():
            own = self._claimable(entries, now)
            if own:
                count, oldest = found.get(rank, (0, entries[0][0]))
                found[rank] = (count + own, min(oldest, entries[0][0]))
        return found

    def next_free(self) -> int | None:
        """Return the moment at which the next one can be claimed that waits for its time."""
        while self._later:
            at, key = self._later[0]
            waiting = self._waiting.get(key)
            if waiting is not None and waiting[2] == at:
                return at
            heapq.heappop(self._later)
        return None

    def held_by(self, owner: str) -> Set[str]:
        """Return the keys that are leased to an owner."""
        return self._held.get(owner, frozenset())

    def held(self) -> list[str]:
        """Return the keys of all that is leased, in their order."""
        return sorted(key for keys in self._held.values() for key in keys)

    def _claimable(self, entries: SortedList[_Entry], now: int) -> int:
        """Return how many of a part can be claimed: a clock that stepped back lets some wait again."""
        if self._rules.not_before is None:
            return len(entries)
        return entries.bisect_left((now + 1, 0, ""))

    def _promote(self, now: int) -> None:
        """Make those claimable whose time has come."""
        while (at := self.next_free()) is not None and at <= now:
            _, key = heapq.heappop(self._later)
            part, entry, _ = self._waiting.pop(key)
            self._add(part, entry)

    def _add(self, part: _Part, entry: _Entry) -> None:
        entries = self._parts.get(part)
        if entries is None:
            entries = self._parts[part] = SortedList()
        entries.add(entry)
        self._placed[entry[-1]] = (part, entry)

    def _remove(self, key: str) -> None:
        self._waiting.pop(key, None)
        placed = self._placed.pop(key, None)
        if placed is None:
            return
        part, entry = placed
        entries = self._parts[part]
        entries.remove(entry)
        if not entries:
            del self._parts[part]

    def _follow_lease(self, key: str, old: Any | None, new: Any | None) -> None:
        before, after = self._owner(old), self._owner(new)
        if before == after:
            return
        if before is not None:
            held = self._held[before]
            held.remove(key)
            if not held:
                del self._held[before]
        if after is not None:
            self._held.setdefault(after, set()).add(key)

    def _owner(self, record: Any | None) -> str | None:
        lease = self._rules.lease
        if record is None or lease is None or self._rules.state(record) != lease.state:
            return None
        owner: str = getattr(record, lease.owner) or ""
        return owner
