"""Leases: one script looks at the heads of what fits, takes those that it was told of, and books them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, TypeVar

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Lease
from runtime.stores.redis.claims.bell import Bell
from runtime.stores.redis.claims.fitting import Fitting
from runtime.stores.redis.claims.handing import Handing, Place
from runtime.stores.redis.connection.server import Full, Unavailable
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.moving import Moving
from runtime.stores.redis.rows import microseconds, moment_of
from runtime.stores.redis.scripts import ScriptCall, decoded
from runtime.stores.store import GuardBreach, Held, Record, Settlement

AT_ONCE = 500
"""How many one claim takes at most."""
_SPARES = (10, 50, 250, 250, 250)
"""How many more than are wanted are named to each look; others were faster with all that the last one saw."""
_FURTHER = 2
"""The first look goes through so many times as many again, for those that come next to be known by then."""
_TURNS = 2
"""How many of those who wait look at a time in one process."""

_NOTHING, _WAIT, _AGAIN = "nothing", "wait", "again"
"""What is there for whoever wants more: no room; perhaps some later; or some now, which others got first."""

Told = TypeVar("Told")


class Leases(Generic[Record]):
    """The leases of one kind of entity."""

    def __init__(self, entities: Entities[Record], lease: Lease, moving: Moving[Record], bell: Bell) -> None:
        self._entities = entities
        self._lease = lease
        self._moving = moving
        self._bell = bell
        self._turns = asyncio.Semaphore(_TURNS)
        self._edge = next(edge for edge in entities.lifecycle.edges.values() if edge.target == lease.state)
        self._fitting = Fitting(entities, lease)
        self._handing = Handing(entities, lease, bell)
        trace = entities.kept.trace
        self._logged = (lease.owner, lease.fence, *((trace,) if trace else ()))
        self._values_logged: Callable[[Record], tuple[object, ...]] = attrgetter(*self._logged)

    async def claim(
        self, holder: str, most: int, call: Call, offers: Collection[str] | None, wait_s: float
    ) -> list[Record]:
        """Leases what there is, or waits for it."""
        self._require(call)
        if not self._is_holder(holder):
            return []
        if wait_s <= 0:
            _, taken, _ = await self._told(self._take((), holder, most, call, offers))
            return taken
        place = self._handing.begun(holder)
        try:
            return await self._awaited(holder, most, call, offers, wait_s, place)
        except (Full, Unavailable) as error:
            raise self._entities.told(error) from None
        finally:
            self._handing.ended(place)

    async def exchange(
        self,
        asked: Sequence[Settlement],
        holder: str,
        most: int,
        call: Call,
        offers: Collection[str] | None,
    ) -> tuple[list[int | Failure], list[Record]]:
        """Settles and takes in one exchange, if what comes next is known by then; else in two."""
        self._require(call)
        calls, places, refused = await self._entities.answer(self._moving.settlements(asked, call))
        if not self._is_holder(holder):
            most = 0
        if calls and most < 1:
            answers, taken = await self._entities.answer(self._settle(calls)), list[Record]()
        else:
            answers, taken, _ = await self._told(self._take(calls, holder, most, call, offers))
        return await self._settled(asked, places, answers, refused, call), taken

    async def settle_all(self, asked: Sequence[Settlement], call: Call) -> list[int | Failure]:
        """Settles and takes nothing."""
        entities = self._entities
        calls, places, refused = await entities.answer(self._moving.settlements(asked, call))
        answers = await entities.answer(self._settle(calls)) if calls else []
        return await self._settled(asked, places, answers, refused, call)

    async def renew(self, key: str, held: Held, seconds: float) -> Any:
        """Lets a lease end so many seconds from now; None when it has ended or is another's."""
        if not self._entities.lifecycle.is_key(key):
            return None
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

    async def held_by(self, holder: str) -> set[str]:
        """What is leased to a holder now."""
        entities, lease = self._entities, self._lease
        if lease.holder is None:
            raise GuardBreach(f"a {entities.lifecycle.entity} is leased to nobody")
        if not self._is_holder(holder):
            return set()
        booked = entities.kept.indexes[lease.holder.booked].key
        work = entities.server.ask(("SMEMBERS", entities.key(booked, **{lease.owner: holder})))
        (found,) = await entities.answer(work)
        return set(found)

    async def disown(
        self,
        holder: str,
        keys: Collection[str],
        before: datetime,
        target: int,
        call: Call,
        given: Mapping[str, str],
    ) -> set[str]:
        """Leaves those leases that were taken before a moment. A lease that has its fence was taken then."""
        entities, lease = self._entities, self._lease
        named = [key for key in keys if entities.lifecycle.is_key(key)]
        if not self._edge.stamps:
            raise GuardBreach(f"no {entities.lifecycle.entity} says when it was taken")
        fields = (lease.owner, lease.fence, *self._edge.stamps)
        work = entities.server.ask(*(("HMGET", entities.hash(key), *fields) for key in named))
        rows = await entities.answer(work) if named else []
        latest = microseconds(before)
        asked = [
            Settlement(key, target, Held(holder, int(fence)), given)
            for key, (owner, fence, *stamps) in zip(named, rows, strict=True)
            if owner == holder and all(stamp and int(stamp) < latest for stamp in stamps)
        ]
        outcomes = await self.settle_all(asked, call)
        return {each.key for each, told in zip(asked, outcomes, strict=True) if not isinstance(told, Failure)}

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

    @property
    def idle(self) -> str | None:
        """The key of those who wait to be handed something."""
        holder = self._lease.holder
        return self._entities.key(holder.idle) if holder and holder.idle else None

    def _is_holder(self, holder: str) -> bool:
        """Whether a text can be the key of a holder; any text can where leases go to no entity."""
        named = self._lease.holder
        return named is None or self._entities.system.lifecycles[named.entity].is_key(holder)

    def _require(self, call: Call) -> None:
        entities, edge = self._entities, self._edge
        require_edge(entities.roles, entities.lifecycle, call.caller, call.method, edge.source, edge.target)

    async def _told(self, work: Awaitable[Told]) -> Told:
        """What comes of it; that the server is away, or full, in words for whoever asks."""
        try:
            return await work
        except (Full, Unavailable) as error:
            raise self._entities.told(error) from None

    # Taking.

    async def _awaited(
        self,
        holder: str,
        most: int,
        call: Call,
        offers: Collection[str] | None,
        wait_s: float,
        place: Place,
    ) -> list[Record]:
        """Takes what there is, or what comes until the time is over."""
        bell, handing, until = self._bell, self._handing, call.world.monotonic() + wait_s
        while True:
            # Of those whom one ring wakes, each finds something else if they do not all look at once.
            async with self._turns:
                rings = bell.rings
                _, taken, further = await self._take((), holder, most, call, offers, place)
            taken += self._handed(place, call)
            if taken or further == _NOTHING:
                return taken
            if further == _WAIT and (left := until - call.world.monotonic()) > 0:
                await handing.heard(place, rings, left)
            is_over = call.world.monotonic() >= until
            if is_over or place.breaks != bell.breaks:
                await handing.settled(place)
            if is_over or place.handed is not None:
                return self._handed(place, call)

    async def _take(
        self,
        calls: Sequence[ScriptCall],
        holder: str,
        most: int,
        call: Call,
        offers: Collection[str] | None,
        place: Place | None = None,
    ) -> tuple[list[Any], list[Record], str]:
        """What came of the calls, what was taken, and what to do for more."""
        most = min(most, AT_ONCE)
        settled: list[Any] = []
        taken: list[Record] = []
        if most < 1:
            return settled, taken, _NOTHING
        if self._fitting.is_unknown(holder):
            settled, calls = await self._introduce(calls, holder), ()
        ahead: Sequence[str] | None = None
        looks = 0
        while looks < len(_SPARES):
            try:
                answers, found = await self._look(
                    calls, holder, most - len(taken), call, offers, looks, ahead, None if taken else place
                )
            except (Unavailable, Full) as error:
                if taken:
                    return settled, taken, _NOTHING  # What has been done is not to be forgotten for that.
                if isinstance(error, Unavailable) and error.unknown:
                    # Perhaps it has been handed what it will never hear of, and then it has to know that.
                    raise  # Whoever settles twice is told the same.
                if calls:
                    return await self._settle(calls), taken, _NOTHING
                if settled:
                    return settled, taken, _NOTHING
                raise
            has_settled, calls = bool(calls), ()
            settled = settled or answers
            if found[0] == "stale":
                self._fitting.learn(holder, await self._entities.server.ask(*self._fitting.questions(holder)))
                continue
            looks += 1
            if found[0] == "full":
                if has_settled:
                    continue  # A script that had to be loaded first may have freed something only now.
                return settled, taken, _NOTHING
            _, free, ahead, rows, gone, *_ = found
            taken += self._taken([decoded(row) for row in rows], call)
            # The same holds for what seems to have no more room.
            if len(taken) >= most or (free < 1 and not has_settled) or not (ahead or gone):
                return settled, taken, _WAIT
        return settled, taken, _AGAIN

    async def _look(
        self,
        calls: Sequence[ScriptCall],
        holder: str,
        most: int,
        call: Call,
        offers: Collection[str] | None,
        looks: int,
        seen: Sequence[str] | None,
        place: Place | None,
    ) -> tuple[list[Any], list[Any]]:
        """Takes what comes first, as far as it was seen in an earlier look."""
        fitting = self._fitting
        fit = fitting.of(holder, offers)
        spare = _SPARES[looks]
        drawn = fit.ahead.draw(most, spare) if seen is None else ()
        once = {
            "actor": call.caller,
            "owner": holder,
            "most": most,
            "window": most + spare + (_FURTHER * most if looks == 0 else 0),
            # What somebody saw earlier may not be first any more.
            "strict": "1" if seen is None else "",
            "waits": "",
            **fitting.believed(holder, fit),
        }
        if place is not None:
            once["waits"] = self._handing.noted(place, call.caller, once["believed_offers"], fit.signatures)
        # Whoever is woken by something new names that, and mostly gets it at once.
        known = seen[: most + spare] if seen is not None else drawn or (self._bell.news,)
        named = [{"key": key} for key in known if key]
        claim = self._entities.calling("claim", once, named, fit.signatures)
        ahead: Sequence[str] = ()
        try:
            *answers, found = await self._entities.server.evaluate([*calls, claim])
            if found[0] == "done":
                ahead = found[2]
            if place is not None:
                self._handing.answered(place, found)
        finally:
            fit.ahead.seen(drawn[:most], ahead)
        return answers, found

    def _handed(self, place: Place, call: Call) -> list[Record]:
        """The record of what was handed over. Whoever waits for it is not kept waiting by the log."""
        if place.handed is None:
            return []
        entities = self._entities
        record = entities.rows.read_fields(place.handed)
        keys = [getattr(record, entities.lifecycle.key)]
        asyncio.get_running_loop().call_soon(
            entities.applied, call, self._edge, keys, lambda _: self._of_lease(record)
        )
        return [record]

    def _taken(self, rows: Sequence[Mapping[str, Any]], call: Call) -> list[Record]:
        """The records of what a claim has taken."""
        entities = self._entities
        taken = [entities.rows.read_fields(row) for row in rows]
        if taken:
            name = entities.lifecycle.key
            keys = [getattr(record, name) for record in taken]
            entities.applied(call, self._edge, keys, lambda place: self._of_lease(taken[place]))
        return taken

    async def _introduce(self, calls: Sequence[ScriptCall], holder: str) -> list[Any]:
        """The first time: settles, and learns what the holder offers."""
        questions = self._fitting.questions(holder)
        answers = await self._entities.server.evaluate(calls, *questions, repeatable=True)
        self._fitting.learn(holder, answers[len(calls) :])
        return answers[: len(calls)]

    def _of_lease(self, record: Record) -> dict[str, object]:
        """What the log is told of a lease."""
        values = self._values_logged(record)
        known = dict(zip(self._logged, values, strict=True))
        return known if all(values) else {name: each for name, each in known.items() if each}
