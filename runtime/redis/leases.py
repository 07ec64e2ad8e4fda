"""Leases: a look at the heads of what fits, then one script that takes them and books them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any, Generic

from runtime.bounded import BoundedMap
from runtime.call import Call
from runtime.conditions import Failure
from runtime.guard import require_edge
from runtime.lifecycles import Lease
from runtime.redis.bell import Bell
from runtime.redis.entities import Entities
from runtime.redis.moving import Moving
from runtime.redis.rows import moment_of, texts_of
from runtime.redis.scripts import ScriptCall
from runtime.redis.server import Full, Unavailable
from runtime.store import Held, Record, Settlement

AT_ONCE = 500
"""How many one claim takes at most."""
_SPARES = (10, 50, 250, 250, 250)
"""How many more than are wanted each look goes through; others were faster with all that the last one saw."""
_REMEMBERED = 10_000
_TURNS = 2
"""How many of those who wait look at a time in one process."""

_NOTHING, _WAIT, _AGAIN = "nothing", "wait", "again"
"""What is there for whoever wants more: no room; perhaps some later; or some now, which others got first."""


class Leases(Generic[Record]):
    """The leases of one kind of entity."""

    def __init__(self, entities: Entities[Record], lease: Lease, moving: Moving[Record], bell: Bell) -> None:
        self._entities = entities
        self._lease = lease
        self._moving = moving
        self._bell = bell
        self._turns = asyncio.Semaphore(_TURNS)
        self._edge = next(edge for edge in entities.lifecycle.edges.values() if edge.target == lease.state)
        index = entities.kept.indexes[lease.index or ""]
        self._enum = entities.enum_in(index)
        self._parts = index.parts
        self._version = ""
        self._known: dict[str, frozenset[str]] = {}
        self._offers: BoundedMap[str] = BoundedMap(_REMEMBERED)
        self._fitting: BoundedMap[list[str]] = BoundedMap(1000)

    async def claim(
        self, holder: str, most: int, call: Call, offers: Collection[str] | None, wait_s: float
    ) -> list[Record]:
        """Leases what there is, or waits for it."""
        _, taken = await self.exchange((), holder, most, call, offers, wait_s)
        return taken

    async def exchange(
        self,
        asked: Sequence[Settlement],
        holder: str,
        most: int,
        call: Call,
        offers: Collection[str] | None,
        wait_s: float,
    ) -> tuple[list[int | Failure], list[Record]]:
        """Settles in one exchange with the look for more, and takes what was seen in a second one."""
        entities, edge = self._entities, self._edge
        require_edge(entities.roles, entities.lifecycle, call.caller, call.method, edge.source, edge.target)
        until = call.world.monotonic() + wait_s
        calls, places, refused = await entities.answer(self._moving.settlements(asked, call))
        outcomes: list[int | Failure] = []
        if calls and most < 1:
            answers = await entities.answer(self._settle(calls))
            return await self._settled(asked, places, answers, refused, call), []
        while True:
            try:
                # Of those whom one ring wakes, each finds something else if they do not all look at once.
                async with self._turns if wait_s > 0 else nullcontext():
                    rings = self._bell.rings
                    answers, taken, further = await self._take(
                        calls, holder, min(most, AT_ONCE), call, offers
                    )
            except (Unavailable, Full) as error:
                if outcomes:
                    return outcomes, []  # What has been settled is not to be forgotten for that.
                raise (entities.full() if isinstance(error, Full) else entities.unavailable()) from None
            if calls or not outcomes:
                outcomes = await self._settled(asked, places, answers, refused, call)
                calls = []
            left = until - call.world.monotonic()
            if taken or asked or further == _NOTHING or left <= 0:
                return outcomes, taken
            if further == _WAIT:
                await self._bell.heard_since(rings, left)

    async def settle_all(self, asked: Sequence[Settlement], call: Call) -> list[int | Failure]:
        """Settles and takes nothing."""
        entities = self._entities
        calls, places, refused = await entities.answer(self._moving.settlements(asked, call))
        answers = await entities.answer(self._settle(calls)) if calls else []
        return await self._settled(asked, places, answers, refused, call)

    async def renew(self, key: str, held: Held, seconds: float) -> Any:
        """Lets a lease end so many seconds from now; None when it has ended or is another's."""
        given = {
            "key": key,
            f"believed.{self._lease.owner}": held.owner,
            "fence": held.fence,
            "seconds": seconds,
        }
        (answer,) = await self._entities.answer(self._entities.run("renew", {}, [given], repeatable=True))
        if answer[0] != "done":
            self._entities.measures.lease_lost()
            return None
        return moment_of(answer[2])

    async def _settle(self, calls: Sequence[ScriptCall]) -> list[Any]:
        return await self._entities.server.evaluate(calls, repeatable=True)

    async def _settled(
        self,
        asked: Sequence[Settlement],
        places: Sequence[Sequence[int]],
        answers: Sequence[Any],
        refused: Sequence[Failure | None],
        call: Call,
    ) -> list[int | Failure]:
        """What came of each; one that came twice in a call is looked at again by itself."""
        if not asked:
            return []
        told = [[*part] for part in answers]
        for group, part in zip(places, told, strict=True):
            for at, answer in enumerate(part):
                if answer[0] == "again":
                    repeated = [asked[group[at]]]
                    calls, _, _ = await self._entities.answer(self._moving.settlements(repeated, call))
                    ((part[at],),) = await self._entities.answer(self._settle(calls))
        return self._moving.settled(asked, places, told, refused, call)

    # Taking.

    async def _take(
        self, calls: Sequence[ScriptCall], holder: str, most: int, call: Call, offers: Collection[str] | None
    ) -> tuple[list[Any], list[Record], str]:
        """What came of the calls, what was taken, and what to do for more."""
        settled: list[Any] = []
        taken: list[Record] = []
        narrowed = None if offers is None else frozenset(offers)
        if most < 1:
            return settled, taken, _NOTHING
        if self._offers.get(holder) is None and self._lease.holder is not None:
            settled, calls = await self._introduce(calls, holder), ()
        looks = 0
        while looks < len(_SPARES):
            signatures = self._signatures(holder, narrowed)
            left = most - len(taken)
            # The first look goes through twice as many as are wanted, and not even that for many.
            spare = min(left, _SPARES[0]) if looks == 0 else _SPARES[looks]
            peek = self._entities.calling(
                "peek",
                {"owner": holder, "most": left, "spare": spare},
                [{"signature": each} for each in signatures],
            )
            answers = await self._entities.server.evaluate([*calls, peek], repeatable=True)
            if calls:
                settled, calls = answers[:-1], ()
            version, _, offered, free, found = answers[-1]
            if self._is_stale(holder, version, offered):
                await self._refresh(holder)
                continue
            looks += 1
            if free < 1:
                return settled, taken, _NOTHING
            if not found:
                return settled, taken, _WAIT
            try:
                records, missed = await self._claim(holder, most - len(taken), signatures, found, call)
            except (Unavailable, Full):
                if settled or taken:
                    return settled, taken, _NOTHING  # What has been done is not to be forgotten for that.
                raise
            taken += records
            if len(taken) >= most or not missed:
                return settled, taken, _WAIT
        return settled, taken, _AGAIN

    async def _claim(
        self, holder: str, most: int, signatures: Sequence[str], found: Sequence[Any], call: Call
    ) -> tuple[list[Record], bool]:
        """Takes what was seen; whether others were faster with some of it."""
        entities = self._entities
        each = [
            {
                "key": key,
                f"believed.{self._enum}": word,
                "believed.signature": signatures[number - 1] if self._parts else "",
            }
            for word, number, key in zip(found[0::3], found[1::3], found[2::3], strict=True)
        ]
        once = {"actor": call.caller, "owner": holder, "most": most}
        answers = await entities.run("claim", once, each)
        taken, missed = list[Record](), False
        for answer in answers:
            if answer[0] == "done":
                taken.append(entities.rows.read_values(answer[2]))
            elif answer[0] in ("missed", "none", "state"):
                missed = True
        if taken:
            name = entities.lifecycle.key
            keys = [getattr(record, name) for record in taken]
            entities.applied(call, self._edge, keys, lambda place: self._of_lease(taken[place]))
        return taken, missed

    def _of_lease(self, record: Record) -> dict[str, object]:
        """What the log is told of a lease."""
        trace = self._entities.kept.trace
        named = (self._lease.owner, self._lease.fence, *((trace,) if trace else ()))
        return {name: getattr(record, name) for name in named}

    # What fits a holder.

    def _signatures(self, holder: str, narrowed: frozenset[str] | None) -> list[str]:
        """The signatures of all sets of needs that a holder can meet."""
        if self._parts is None:
            return []
        listed = self._offers.get(holder)
        name = f"{self._version} {listed} {sorted(narrowed) if narrowed is not None else '*'}"
        fitting = self._fitting.get(name)
        if fitting is None:
            offered = None
            if self._lease.holder is not None:
                offered = frozenset(texts_of(listed or "[]"))
                offered = offered if narrowed is None else offered & narrowed
            fitting = [each for each, needs in self._known.items() if offered is None or needs <= offered]
            self._fitting.add(name, fitting)
        return fitting

    def _is_stale(self, holder: str, version: str, offered: str) -> bool:
        if self._lease.holder is not None and self._offers.get(holder) != offered:
            return True
        return self._parts is not None and version != self._version

    async def _introduce(self, calls: Sequence[ScriptCall], holder: str) -> list[Any]:
        """The first time: settles, and learns what the holder offers."""
        answers = await self._entities.server.evaluate(calls, *self._questions(holder), repeatable=True)
        self._learn(holder, answers[len(calls) :])
        return answers[: len(calls)]

    async def _refresh(self, holder: str) -> None:
        self._learn(holder, await self._entities.server.ask(*self._questions(holder)))

    def _questions(self, holder: str) -> list[tuple[Any, ...]]:
        entities, lease = self._entities, self._lease
        asked: list[tuple[Any, ...]] = []
        if lease.holder is not None:
            other = entities.system.lifecycles[lease.holder.entity]
            assert other.in_redis is not None
            asked.append(
                ("HGET", entities.key(other.in_redis.hash, **{other.key: holder}), lease.holder.offers)
            )
        if self._parts is not None:
            known = entities.key(self._parts.known)
            asked += [("GET", f"{known}:version"), ("HGETALL", known)]
        return asked

    def _learn(self, holder: str, answers: Sequence[Any]) -> None:
        left = list(answers)
        if self._lease.holder is not None:
            self._offers.remove(holder)
            self._offers.add(holder, left.pop(0) or "")
        if self._parts is not None:
            self._version = left[0] or "0"
            flat = left[1]
            self._known = {
                each: frozenset(texts_of(texts)) for each, texts in zip(flat[0::2], flat[1::2], strict=True)
            }
