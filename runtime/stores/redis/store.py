"""The store in Redis: every change is one generated script, with all indexes in the same step."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from runtime.call.conditions import Condition, Failure
from runtime.call.context import Answering, Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Due, Lifecycle, Shift, Transition
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.redis.claims.bell import Bell
from runtime.stores.redis.claims.leases import Leases
from runtime.stores.redis.connection.server import Server
from runtime.stores.redis.creation import Creation
from runtime.stores.redis.editing import Editing
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.listing import Listing
from runtime.stores.redis.moving import Moving
from runtime.stores.redis.sweeping import Sweeping
from runtime.stores.redis.upkeep import Upkeep
from runtime.stores.store import (
    Change,
    Created,
    GuardBreach,
    Held,
    Moved,
    NoSuchEntity,
    Record,
    Settlement,
    Size,
)

Told = TypeVar("Told")


class Past(Protocol):
    """The history of entities, in another store."""

    async def get(self, key: str) -> Any:
        """The record of an entity that ended, as it was."""
        ...

    async def history(self, key: str) -> list[Change]:
        """Every state change that has been written, oldest first."""
        ...


class RedisStore(Generic[Record]):
    """The entities of one kind. Any number of processes may have one over the same server."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        server: Server,
        metrics: Metrics,
        values: Mapping[str, Any],
        past: Past | None = None,
    ) -> None:
        self._entities = entities = Entities(system, lifecycle, record, server, metrics, values)
        self._lifecycle = lifecycle
        self._past = past
        self._bell = Bell(server, entities.key(entities.kept.wakes) if entities.kept.wakes else None)
        self._creation = Creation(entities)
        self._creation.past = self.ended if past is not None else None
        self._moving = Moving(entities)
        self._leases = (
            Leases(entities, lifecycle.lease, self._moving, self._bell)
            if lifecycle.lease and lifecycle.lease.index
            else None
        )
        self._sweeping = Sweeping(entities, self._moving)
        self._listing = Listing(entities)
        self._editing = Editing(entities, self._moving)
        self._upkeep = Upkeep(entities)

    async def open(self, log: Log) -> None:
        """Begins to listen. A server that is away is waited for in the background."""
        await self._upkeep.open(log)
        await self._bell.open()

    async def close(self) -> None:
        """Stops listening; the connections are closed by whoever opened the server."""
        await self._bell.close()
        await self._upkeep.close()

    # One at a time.

    async def create(self, record: Record, call: Call) -> Record:
        (made,) = await self._creation.all([record], call)
        if made.full:
            raise self._full()
        if not made.is_new:
            key = getattr(record, self._lifecycle.key)
            raise GuardBreach(f"{self._lifecycle.entity} {key} shares what no two may share")
        return made.record

    def create_or_find_all(self, records: Sequence[Record], call: Call) -> Answering[list[Created[Record]]]:
        return self._creation.all(records, call)

    async def get(self, key: str) -> Record | None:
        if not self._lifecycle.is_key(key):
            return None
        (found,) = await self._entities.answer(self._entities.read_all([key]))
        return found

    async def move(self, key: str, source: int, target: int, call: Call, /, **given: str) -> Moved:
        edge = self._edge(source, target, call)
        self._require_key(key)
        moved = await self._moving.move(edge, key, call, given)
        if moved is None:
            raise NoSuchEntity(key)
        return moved

    async def move_to(self, key: str, target: int, call: Call, /, **given: str) -> Moved:
        self._require_key(key)
        while True:
            work = self._entities.server.ask(("HGET", self._entities.hash(key), self._lifecycle.status))
            (word,) = await self._entities.answer(work)
            if word is None:
                raise NoSuchEntity(key)
            state = self._entities.state_numbers[word]
            if (state, target) not in self._lifecycle.edges:
                return Moved(False, state)
            edge = self._edge(state, target, call)
            moved = await self._moving.move(edge, key, call, given)
            if moved is None:
                raise NoSuchEntity(key)
            if moved.applied or moved.state == state:
                return moved

    async def update(self, key: str, /, **changes: Any) -> Record:
        self._require_key(key)
        await self._editing.update(key, changes)
        found = await self.get(key)
        if found is None:
            raise NoSuchEntity(key)
        return found

    async def delete(self, key: str, expected: int, call: Call) -> Moved:
        self._require_key(key)
        return await self._editing.delete(key, expected, call)

    async def shift(
        self, key: str, shift: Shift, call: Call, held: Held | None = None, /, **given: str
    ) -> bool:
        self._require_key(key)
        answer = await self._moving.shift(shift, key, call, held, given)
        if answer[0] == "none":
            raise NoSuchEntity(key)
        return bool(answer[0] == "done")

    # Leases.

    async def claim(
        self,
        holder: str,
        most: int,
        call: Call,
        *,
        offers: Collection[str] | None = None,
        wait_s: float = 0.0,
    ) -> list[Record]:
        return await self._leased().claim(holder, most, call, offers, wait_s)

    async def exchange(
        self,
        asked: Sequence[Settlement],
        holder: str,
        most: int,
        call: Call,
        *,
        offers: Collection[str] | None = None,
    ) -> tuple[list[int | Failure], list[Record]]:
        return await self._leased().exchange(asked, holder, most, call, offers)

    async def settle_all(self, asked: Sequence[Settlement], call: Call) -> list[int | Failure]:
        return await self._leased().settle_all(asked, call)

    async def renew(self, key: str, held: Held, seconds: float) -> datetime | None:
        renewed: datetime | None = await self._leased().renew(key, held, seconds)
        return renewed

    async def held_by(self, holder: str) -> set[str]:
        return await self._leased().held_by(holder)

    async def disown(
        self, holder: str, keys: Collection[str], before: datetime, target: int, call: Call, /, **given: str
    ) -> set[str]:
        return await self._leased().disown(holder, keys, before, target, call, given)

    async def taken_from(self, holder: str) -> set[str]:
        entities, lease = self._entities, self._lifecycle.lease
        if lease is None or lease.holder is None or lease.holder.taken is None:
            raise GuardBreach(f"nobody is told what was taken of the {self._lifecycle.entity}s")
        other = entities.system.lifecycles[lease.holder.entity]
        if not other.is_key(holder):
            return set()
        key = entities.key(lease.holder.taken, **{other.key: holder})
        (found,) = await entities.answer(entities.server.ask(("SPOP", key, 1000)))
        return set(found)

    # The clock, and what is told of many.

    async def sweep(self, change: Transition | Shift | None, due: Due, call: Call) -> int:
        return await self._sweeping.sweep(change, due, call)

    async def trim(self) -> int:
        """Forgets what has expired, and sets of needs that nobody has any more; how much."""
        return await self._entities.answer(self._upkeep.trim())

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = MappingProxyType({}),
        after: tuple[datetime, str] | None = None,
        size: int = 50,
    ) -> tuple[list[Record], tuple[datetime, str] | None]:
        return await self._entities.answer(self._listing.find(states, equal, after, size))

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        work = self._listing.page(states, offset, size, newest_first=newest_first)
        return await self._entities.answer(work)

    async def history(self, key: str) -> list[Change]:
        if self._past is None or not self._lifecycle.is_key(key):
            return []
        return await self._remembered(self._past.history(key))

    async def ended(self, key: str) -> Record | None:
        found: Record | None = None
        if self._past is not None and self._lifecycle.is_key(key):
            found = await self._remembered(self._past.get(key))
        return found

    async def sizes(self, index: str) -> dict[int, Size]:
        return await self._entities.answer(self._listing.sizes(index))

    async def census(self, states: Collection[int] = ()) -> tuple[dict[int, int], list[Record]]:
        return await self._entities.answer(self._listing.census(states))

    async def recent(self, metric: str) -> dict[tuple[str, ...], int]:
        return await self._entities.answer(self._listing.recent(metric))

    async def pause(self, value: int, *, paused: bool) -> None:
        entities, key, words = self._entities, *self._paused()
        commands: list[tuple[Any, ...]] = [("SADD" if paused else "SREM", key, words[value])]
        if idle := self._leased().idle:
            # Nobody is handed what is paused now, or what came after that which goes on.
            commands += [("DEL", idle), ("INCR", f"{idle}:rings")]
        answers = await entities.answer(entities.server.ask(*commands))
        if not paused and entities.kept.wakes:
            ring = ("PUBLISH", entities.key(entities.kept.wakes), f"{answers[-1] if idle else 0} ")
            await entities.answer(entities.server.ask(ring))

    async def paused(self) -> set[int]:
        key, words = self._paused()
        (found,) = await self._entities.answer(self._entities.server.ask(("SMEMBERS", key)))
        return {number for number, word in words.items() if word in found}

    async def awaited(self, timeout_s: float) -> bool:
        return await self._bell.heard_since(self._bell.rings, timeout_s)

    async def problem(self) -> str | None:
        return await self._upkeep.problem()

    def _require_key(self, key: str) -> None:
        """Raises for what can be no key, so that it never becomes the name of something else in Redis."""
        if not self._lifecycle.is_key(key):
            raise NoSuchEntity(key)

    def _edge(self, source: int, target: int, call: Call) -> Transition:
        edge = require_edge(self._entities.roles, self._lifecycle, call.caller, call.method, source, target)
        self._moving.require(edge, call)
        return edge

    def _leased(self) -> Leases[Record]:
        if self._leases is None:
            raise GuardBreach(f"a {self._lifecycle.entity} has no lease")
        return self._leases

    def _full(self) -> Condition:
        ceiling = self._lifecycle.refuses
        return self._entities.full(int(self._entities.variables[ceiling.most]) if ceiling else 0)

    def _paused(self) -> tuple[str, Mapping[int, str]]:
        entities, lease = self._entities, self._lifecycle.lease
        index = entities.kept.indexes[lease.index or ""] if lease else None
        enum = entities.enum_in(index) if index else None
        if lease is None or lease.paused is None or enum is None:
            raise GuardBreach(f"no {self._lifecycle.entity} can be paused")
        return entities.key(lease.paused), entities.kept.words[enum]

    async def _remembered(self, work: Awaitable[Told]) -> Told:
        """What the history says; that its server is away is all that a caller learns of it."""
        from runtime.stores.postgres.database import Unavailable

        try:
            return await work
        except Unavailable:
            raise self._entities.unavailable() from None
