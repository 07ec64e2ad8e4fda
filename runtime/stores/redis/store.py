"""The store in Redis: an operation is one call of a script, with all indexes in the same step."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from heapq import nlargest
from typing import Any

from runtime.observe.log import Log
from runtime.stores.contract import (
    CREATION,
    NOTHING,
    Cursor,
    HistoryEntry,
    Record,
    RecordPage,
)
from runtime.stores.redis.changes import Changes
from runtime.stores.redis.codec import decode_json, parse_moment
from runtime.stores.redis.maintenance import RedisMaintenance
from runtime.stores.redis.metrics.census import RedisCensus
from runtime.stores.redis.wakeups import RedisWakeups
from runtime.stores.semantics.leases import equals
from runtime.stores.semantics.rules import to_moment
from runtime.stores.store import GuardBreach

Row = tuple[int, str]
"""The time and the key of an entity in a listing."""
_SCANNED = 5000
"""How many entities a page looks at; what is left is for the next one."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.25
"""How often an entity is looked at that is waited for."""


class RedisStore(Changes[Record]):
    """The entities of one kind. Any number of processes may have one over the same server."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._waiting = {}
        self._wakeups = RedisWakeups(self._server, self._layout.wake_up if self._rules.lease else None)
        self._maintenance = RedisMaintenance(self._server, self._entity, self._layout.trimming, self.trim)
        if self._layout.kept is None:
            # No metrics of a spec can name an index that has no name.
            self._census = RedisCensus(self._server, self._lifecycle, self._layout)
            self._metrics.add_census(self._census, self._census.refresh)

    async def open(self, log: Log) -> None:
        """Start to listen. A server that is away is waited for in the background."""
        await self._maintenance.open(log)
        await self._wakeups.open()

    async def close(self) -> None:
        """Stop listening; the connections are closed by those who opened them."""
        await self._wakeups.close()
        await self._maintenance.close()

    # Reading.

    async def get(self, key: str) -> Record | None:
        if not self._lifecycle.is_key(key):
            return None
        found: Record | None
        if self._is_timeless:
            (row,) = await self._answer(self._server.ask(("HGETALL", self._hash(key))))
            found = self._codec.decode_row(row)
        else:
            arguments = self._arguments(None, key=key)
            reply = await self._run("get", arguments, None, [key])
            (found,) = self._codec.decode_all(reply.values)
        return await self._find_archived(key) if found is None else found

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = NOTHING,
        since: datetime | int | None = None,
        until: datetime | int | None = None,
        after: Cursor | None = None,
        offset: int = 0,
        size: int = 50,
        newest_first: bool = True,
    ) -> RecordPage[Record]:
        self._require_fields(equal)
        await self._forget()
        if (keys := await self._held_keys(states, equal)) is not None:
            return await self._page_of(keys, states, equal, size)
        lowest, highest = to_moment(since), to_moment(until)
        bounds = ("-inf" if lowest is None else lowest, "+inf" if highest is None else f"({highest}")
        found: list[Record] = []
        looked, place = 0, after
        while True:
            wanted = min(size + 1 + offset, _SCANNED) if not equal else _SCANNED
            rows = await self._listed(states, bounds, place, wanted, newest_first=newest_first)
            records = await self._read_all([key for _, key in rows])
            for (at, key), record in zip(rows, records, strict=True):
                is_there = record is not None and self._is_still(record, states)
                if record is None or not is_there or not equals(record, equal):
                    place = Cursor(at, key)
                    continue
                if offset:
                    offset -= 1
                elif len(found) == size:
                    return RecordPage(found, place)
                else:
                    found.append(record)
                place = Cursor(at, key)
            looked += len(rows)
            if len(rows) < wanted:
                return RecordPage(found, None)
            if looked >= _SCANNED:
                return RecordPage(found, place)

    async def history(self, key: str) -> list[HistoryEntry]:
        if not self._lifecycle.is_key(key):
            return []
        if self._layout.kept is not None and self._layout.kept.outbox is not None:
            return [] if self._archive is None else await self._ask_archive(self._archive.history(key))
        await self._forget()
        (lines,) = await self._answer(self._server.ask(("LRANGE", f"{self._layout.history}{key}", 0, -1)))
        return [self._to_entry(*decode_json(line)) for line in lines]

    async def count(
        self, states: Collection[int] = (), *, since: datetime | int | None = None
    ) -> dict[int, int]:
        await self._forget()
        wanted = [*(states or self._lifecycle.states)]
        retained_s, expiring = self._rules.retained_s, self._lifecycle.terminal
        least = "-inf"
        if retained_s is not None and self._layout.does_hash_expire:
            ((seconds, fraction),) = await self._answer(self._server.ask(("TIME",)))
            least = f"({int(seconds) * 1_000_000 + int(fraction) - int(retained_s * 1e6)}"
        begin = to_moment(since)
        bounds = {state: least if state in expiring else "-inf" for state in wanted}
        if begin is not None:
            bounds = {state: max(each, str(begin), key=_bound) for state, each in bounds.items()}
        asked = [("ZCOUNT", self._layout.listed_key(state), least, "+inf") for state, least in bounds.items()]
        counts = await self._answer(self._server.ask_at_once(*asked))
        return dict(zip(wanted, counts, strict=True))

    async def health(self) -> str | None:
        return await self._maintenance.find_problem()

    # Pausing and waiting.

    async def pause(self, value: int) -> None:
        await self._answer(self._server.ask(("SADD", self._layout.paused, self._pausable(value))))

    async def resume(self, value: int) -> None:
        wake_up = ("PUBLISH", self._layout.wake_up, self._entity)
        await self._answer(self._server.ask(("SREM", self._layout.paused, self._pausable(value)), wake_up))

    async def paused(self) -> frozenset[int]:
        field = self._rules.rank_field
        (words,) = await self._answer(self._server.ask(("SMEMBERS", self._layout.paused)))
        return frozenset(self._codec.number(field or "", word) for word in words)

    def _pausable(self, value: int) -> str:
        if self._rules.rank_field is None:
            raise GuardBreach(f"claims of a {self._entity} are in no order that could be paused")
        return self._codec.word(self._rules.rank_field, value)

    async def wait(self, timeout_s: float, *, key: str | None = None) -> bool:
        if key is not None:
            return await self._wait_for(key, timeout_s)
        free_s = await self._next_free_s()
        if free_s is not None and free_s <= timeout_s:
            await self._wakeups.wait(free_s)
            return True
        return await self._wakeups.wait(timeout_s)

    async def _next_free_s(self) -> float | None:
        """Return the seconds until the next one can be claimed that waits for its time."""
        if self._rules.not_before is None:
            return None
        ((seconds, fraction),) = await self._answer(self._server.ask(("TIME",)))
        now = self._clock() if self._clock else int(seconds) * 1_000_000 + int(fraction)
        asked = [
            ("ZRANGEBYSCORE", rank.key, f"({now}", "+inf", "WITHSCORES", "LIMIT", 0, 1)
            for rank in self._layout.ranks
        ]
        found = await self._answer(self._server.ask(*asked))
        times = [float(each[1]) for each in found if each]
        return (min(times) - now) / 1e6 if times else None

    async def _wait_for(self, key: str, timeout_s: float) -> bool:
        """Look at an entity until it changes: nothing that changes one has to tell of it."""
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE_S
        deadline = loop.time() + timeout_s
        before = await self._read_row(key)
        while (left := deadline - loop.time()) > 0:
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            if await self._read_row(key) != before:
                return True
        return False

    async def _read_row(self, key: str) -> list[str]:
        (row,) = await self._answer(self._server.ask(("HGETALL", self._hash(key))))
        return list(row)

    # Maintenance.

    async def trim(self) -> int:
        """Forget what has expired, and sets of needs that no entity has any more; return how much."""
        return int((await self._run("trim", self._arguments(None), None, repeatable=True)).answer)

    async def _forget(self) -> None:
        """Forget what has ended long enough ago, where Redis does not do so by itself."""
        if self._rules.retained_s is not None and not self._layout.does_hash_expire:
            await self._run("forget", self._arguments(None), None)

    # Parts of a listing.

    async def _read_all(self, keys: list[str]) -> list[Record | None]:
        if not keys:
            return []
        rows = await self._answer(self._server.ask(*(("HGETALL", self._hash(key)) for key in keys)))
        return [self._codec.decode_row(row) for row in rows]

    def _is_still(self, record: Record, states: Collection[int]) -> bool:
        return not states or self._rules.state(record) in states

    async def _held_keys(self, states: Collection[int], equal: Mapping[str, object]) -> list[str] | None:
        """Return what an owner has, where that is what a listing is about; None where it is not."""
        lease = self._rules.lease
        if lease is None or lease.owner not in equal or {*states} != {lease.state}:
            return None
        head, tail = self._layout.held
        (keys,) = await self._answer(self._server.ask(("SMEMBERS", f"{head}{equal[lease.owner]}{tail}")))
        return list(keys)

    async def _page_of(
        self, keys: list[str], states: Collection[int], equal: Mapping[str, object], size: int
    ) -> RecordPage[Record]:
        records = [each for each in await self._read_all(sorted(keys)) if each is not None]
        found = [each for each in records if self._is_still(each, states) and equals(each, equal)]
        return RecordPage(found[:size], None)

    async def _listed(
        self,
        states: Collection[int],
        bounds: tuple[Any, Any],
        after: Cursor | None,
        most: int,
        *,
        newest_first: bool,
    ) -> list[Row]:
        """Return times and keys in the order of a listing, from behind an entity; keys ascend in both."""
        lowest, highest = bounds
        keys = [self._layout.listed_key(state) for state in sorted({*states} or {*self._lifecycle.states})]
        same: list[tuple[Any, ...]] = []
        if after is not None:
            # Of the same moment all, some of which were on the page before; then the others.
            same = [("ZRANGEBYSCORE", key, after.at, after.at, "WITHSCORES") for key in keys]
            lowest, highest = (lowest, f"({after.at}") if newest_first else (f"({after.at}", highest)
        asked = [_range(key, lowest, highest, most, newest_first=newest_first) for key in keys]
        parts = await self._answer(self._server.ask_at_once(*same, *asked))
        rows = [
            (int(float(at)), key) for part in parts for key, at in zip(part[0::2], part[1::2], strict=True)
        ]
        if newest_first:
            rows = await self._complete(rows, keys, most)
        rows = sorted({*rows}, key=lambda row: (-row[0] if newest_first else row[0], row[1]))
        if after is not None:
            rows = [row for row in rows if row[0] != after.at or row[1] > after.key]
        return rows[:most]

    async def _complete(self, rows: list[tuple[int, str]], keys: list[str], most: int) -> list[Row]:
        """Add the rest of the last moment: Redis lists the keys of a moment from the last to the first."""
        if len(rows) < most:
            return rows
        last = nlargest(most, rows)[-1][0]
        parts = await self._answer(
            self._server.ask_at_once(*(("ZRANGEBYSCORE", key, last, last, "WITHSCORES") for key in keys))
        )
        return rows + _to_rows(parts)

    def _to_entry(
        self,
        sequence: str,
        edge: str,
        source: str,
        target: str,
        actor: str,
        at: str,
        fence: str,
        owner: str,
        reason: str,
        trace: str,
    ) -> HistoryEntry:
        return HistoryEntry(
            int(sequence),
            edge,
            None if edge == CREATION and not source else self._state(source),
            self._state(target),
            actor,
            parse_moment(at),
            int(fence),
            owner,
            reason,
            trace,
        )


def _to_rows(parts: list[list[str]]) -> list[Row]:
    """Convert members and their scores, in turn, to times and keys."""
    return [(int(float(at)), key) for part in parts for key, at in zip(part[0::2], part[1::2], strict=True)]


def _bound(text: str) -> float:
    return float(text.removeprefix("("))


def _range(key: str, lowest: Any, highest: Any, most: int, *, newest_first: bool) -> tuple[Any, ...]:
    if newest_first:
        return ("ZREVRANGEBYSCORE", key, highest, lowest, "WITHSCORES", "LIMIT", 0, most)
    return ("ZRANGEBYSCORE", key, lowest, highest, "WITHSCORES", "LIMIT", 0, most)
