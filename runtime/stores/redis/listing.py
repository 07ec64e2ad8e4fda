"""What is told of many entities at once: listings, sizes, how many are in each state, and recent counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from heapq import nlargest, nsmallest
from typing import Any, Generic, TypeGuard

from runtime.model.lifecycles import Index
from runtime.model.measuring import Counts
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.rows import microseconds, moment_of
from runtime.stores.store import GuardBreach, Record, Size

_SLOTS = 128
"""The ring of seconds in which scripts count recent things."""
_SCANNED = 1000
"""How many entities a search looks at for one page; what is left is for the next one."""


class Listing(Generic[Record]):
    """Reads of one kind of entity."""

    def __init__(self, entities: Entities[Record]) -> None:
        self._entities = entities

    async def find(
        self,
        states: Collection[int],
        equal: Mapping[str, object],
        after: tuple[datetime, str] | None,
        size: int,
    ) -> tuple[list[Record], tuple[datetime, str] | None]:
        """A page of the listing, newest first; what does not match is left out, so a page may be short."""
        entities = self._entities
        if unknown := sorted(set(equal) - set(entities.rows.names)):
            raise ValueError(f"a listing cannot be narrowed by {', '.join(unknown)}")
        found: list[Record] = []
        looked = 0
        while True:
            wanted = min(max(size + 1, 2 * size if equal else 0), _SCANNED)
            rows = await self._newest(states, after, wanted)
            records = await entities.read_all([key for _, key in rows])
            for (score, key), record in zip(rows, records, strict=True):
                if len(found) == size:
                    return found, after
                after = (moment_of(score), key)
                if self._is_still(record, states) and all(
                    getattr(record, name) == value for name, value in equal.items()
                ):
                    found.append(record)
            looked += len(rows)
            if len(rows) < wanted:
                return found, None
            if looked >= _SCANNED:
                return found, after

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        """A part of the listing, and whether there is more after it."""
        keys, most = self._keys(states), offset + size + 1
        command = "ZREVRANGE" if newest_first else "ZRANGE"
        parts = await self._entities.server.ask_at_once(
            *((command, key, 0, most - 1, "WITHSCORES") for key in keys)
        )
        rows = [(int(float(score)), key) for part in parts for key, score in _pairs(part)]
        chosen = (nlargest if newest_first else nsmallest)(most, rows)[offset:]
        records = await self._entities.read_all([key for _, key in chosen[:size]])
        return [each for each in records if self._is_still(each, states)], len(chosen) > size

    async def sizes(self, name: str) -> dict[int, Size]:
        """The sizes of an index, by the value of the enum in its key."""
        entities = self._entities
        index = entities.kept.indexes[name]
        keys = entities.index_keys(index)
        card = "ZCARD" if index.score else "SCARD"
        asked: list[tuple[Any, ...]] = [("TIME",), *((card, key) for key in keys.values())]
        if index.score:
            asked += [("ZRANGE", key, 0, 0, "WITHSCORES") for key in keys.values()]
        (seconds, fraction), *answers = await entities.server.ask_at_once(*asked)
        now = int(seconds) * 1_000_000 + int(fraction)
        counts, oldest = answers[: len(keys)], answers[len(keys) :] or [[]] * len(keys)
        return {
            value or 0: Size(count, max(now - float(first[1]), 0.0) / 1e6 if first else 0.0)
            for value, count, first in zip(keys, counts, oldest, strict=True)
        }

    async def census(self, states: Collection[int] = ()) -> tuple[dict[int, int], list[Record]]:
        """How many are in each state, and all of some states; nobody is counted in two of them, or in none.

        Those that ended are counted for as long as they are kept. Who goes away while the records are read is
        not counted either; who goes on to another state is still counted where it was.
        """
        entities, index = self._entities, self._listed()
        keys = {state: key for state, key in entities.index_keys(index).items() if state in index.states}
        ((seconds, fraction),) = await entities.server.ask(("TIME",))
        expires = entities.kept.expires
        kept = float(entities.variables[expires]) if expires else 0.0
        earliest = f"({int(seconds) * 1_000_000 + int(fraction) - kept * 1e6:.0f}"
        ending = entities.lifecycle.terminal if expires else ()
        within = {
            state: (key, earliest if state in ending else "-inf", "+inf") for state, key in keys.items()
        }
        answers = await entities.server.ask_at_once(
            *(("ZCOUNT", *each) for each in within.values()),
            *(("ZRANGEBYSCORE", *within[state]) for state in states),
        )
        found = dict(zip(within, answers, strict=False))
        counts = {state: found.get(state, 0) for state in entities.lifecycle.states}
        listed = zip(states, answers[len(within) :], strict=True)
        members = [(state, key) for state, part in listed for key in part]
        records = await entities.read_all([key for _, key in members])
        for (state, _), record in zip(members, records, strict=True):
            counts[state] -= record is None
        return counts, [each for each in records if each is not None]

    async def recent(self, name: str) -> dict[tuple[str, ...], int]:
        """What was counted within the window of a metric."""
        entities = self._entities
        measured = next((each for each in entities.system.measured if each.name == name), None)
        if measured is None or not isinstance(measured.source, Counts) or measured.source.seconds is None:
            raise GuardBreach(f"{name} is no window of {entities.system.name}")
        source = measured.source
        seconds = min(int(entities.variables[source.seconds or ""]), _SLOTS - 1)
        ((now, _),) = await entities.server.ask(("TIME",))
        last = int(now)
        slots = [each % _SLOTS for each in range(last - seconds + 1, last + 1)]
        names = {labels: "|".join((name, *labels)) for labels in source.series}
        fields = [f"{text}|{slot}" for text in names.values() for slot in slots]
        (values,) = await entities.server.ask(("HMGET", entities.key(source.hash), *fields))
        found = dict.fromkeys(names, 0)
        for place, value in enumerate(values):
            if value is not None:
                second, _, count = value.partition(":")
                if last - seconds < int(second) <= last:
                    found[[*names][place // len(slots)]] += int(count)
        return found

    async def _newest(
        self, states: Collection[int], after: tuple[datetime, str] | None, most: int
    ) -> list[tuple[int, str]]:
        """(score, key) in the order of the listing, from behind an entity."""
        keys = self._keys(states)
        if after is None:
            parts = await self._entities.server.ask_at_once(
                *(("ZREVRANGEBYSCORE", key, "+inf", "-inf", "WITHSCORES", "LIMIT", 0, most) for key in keys)
            )
        else:
            mark = microseconds(after[0])
            parts = await self._entities.server.ask_at_once(
                # Of the same moment all, of which some were told before; then the older ones.
                *(("ZRANGEBYSCORE", key, mark, mark, "WITHSCORES") for key in keys),
                *(
                    ("ZREVRANGEBYSCORE", key, f"({mark}", "-inf", "WITHSCORES", "LIMIT", 0, most)
                    for key in keys
                ),
            )
        rows = [(int(float(score)), key) for part in parts for key, score in _pairs(part)]
        if after is not None:
            rows = [row for row in rows if row < (microseconds(after[0]), after[1])]
        return nlargest(most, rows)

    def _is_still(self, record: Record | None, states: Collection[int]) -> TypeGuard[Record]:
        """Whether an entity has neither gone nor gone on since its key was read."""
        if record is None:
            return False
        return not states or getattr(record, self._entities.lifecycle.status) in states

    def _keys(self, states: Collection[int]) -> list[str]:
        wanted = set(states) or set(self._entities.lifecycle.states)
        index = self._listed()
        keys = self._entities.index_keys(index)
        return [key for state, key in keys.items() if state in wanted and state in index.states]

    def _listed(self) -> Index:
        """The index of all entities by their state."""
        lifecycle = self._entities.lifecycle
        for index in self._entities.kept.indexes.values():
            if f"{{{lifecycle.status}}}" in index.key and index.score == lifecycle.listed_by:
                return index
        raise GuardBreach(f"no index lists every {lifecycle.entity}")


def _pairs(flat: list[str]) -> list[tuple[str, str]]:
    return list(zip(flat[0::2], flat[1::2], strict=True))
