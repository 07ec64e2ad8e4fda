"""The store in a bucket: an entity is an object, and a transition is one write under a condition."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic

from runtime.call.conditions import Condition, Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle, Shift, Transition
from runtime.model.system import Event, System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.object_store import FoundPage, Sizes, VersionOf
from runtime.stores.s3.bucket.bucket_settings import is_versioned
from runtime.stores.s3.bucket.fitness import require_fit
from runtime.stores.s3.claims.holding import Holding
from runtime.stores.s3.claims.taking import Taking
from runtime.stores.s3.client.errors import ObjectError
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.entities import Entities, together
from runtime.stores.s3.facts import fits, immutable
from runtime.stores.s3.guarded import Changed, Exists
from runtime.stores.s3.indexes.repairing import Repairing
from runtime.stores.s3.listing import Listing
from runtime.stores.s3.rows import Snapshot, same
from runtime.stores.s3.sweeping import Sweeping
from runtime.stores.store import GuardBreach, Held, Moved, NoSuchEntity, Record
from runtime.world import World

STORE_READY = Event("store_ready", "INFO")
_PATIENCE_S = 10.0


class S3Store(Generic[Record]):
    """The entities of one kind, as objects that any number of processes change."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        objects: Objects,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
    ) -> None:
        self._entities: Entities[Record] = Entities(system, lifecycle, objects, world, metrics, values)
        self._lifecycle = lifecycle
        self._changes = self._entities.changes
        self._guarded = self._entities.guarded
        self._holding: Holding[Record] = Holding(self._entities)
        self._listing: Listing[Record] = Listing(self._entities)
        self._sweeps: dict[str, Sweeping[Record]] = {}
        self._repairing: Repairing[Record] | None = None
        if self._entities.kept.repairs is not None:
            metrics.add_census(self)

    # Creating.

    async def create(self, record: Record, call: Call) -> Record:
        made, is_new = await self.create_or_find(record, call)
        if not is_new:
            raise GuardBreach(f"{self._lifecycle.entity} {self._changes.key(made)} exists already")
        return made

    async def create_or_find(self, record: Record, call: Call) -> tuple[Record, bool]:
        lifecycle = self._lifecycle
        if call.caller not in lifecycle.creators:
            allowed = ", ".join(sorted(lifecycle.creators))
            raise self._entities.denied(call, f"only {allowed} may create a {lifecycle.entity}")
        wanted = self._changes.created(record)
        key = self._changes.key(wanted)
        if not lifecycle.is_key(key):
            raise GuardBreach(f"{key!r} is no key of a {lifecycle.entity}")
        with self._entities.failures(key):
            if self._guarded.apart.is_any(wanted):
                # Where there is such an entity, its values must stay as they are.
                if (known := await self._guarded.read(key)) is not None:
                    return await self._found(wanted, known), False
                wanted = await self._guarded.apart.put(wanted)
            try:
                await self._guarded.create(key, wanted)
            except Exists as exists:
                return await self._found(wanted, exists.found), False
        self._entities.telling.record_applied(call, "create", key, None, lifecycle.initial)
        return wanted, True

    async def create_or_find_all(
        self, records: Sequence[Record], call: Call
    ) -> list[tuple[Record, bool] | Failure]:
        async def one(record: Record) -> tuple[Record, bool] | Failure:
            try:
                return await self.create_or_find(record, call)
            except Failure as failure:
                return failure

        return list(await together(records, one, at_once=32))

    async def _found(self, wanted: Record, found: Snapshot[Record]) -> Record:
        """What has the key already, if it is what was wanted."""
        named = self._entities.kept.keyed_by
        if named and getattr(wanted, named):
            whole = await self._guarded.apart.whole(found.record)
            types = self._entities.kept.shape.types
            if not all(
                same(types[name], getattr(wanted, name), getattr(whole, name))
                for name in immutable(self._lifecycle, self._entities.kept)
            ):
                raise self._entities.key_reused(getattr(wanted, named))
        return found.record

    # Reading.

    async def get(self, key: str) -> Record | None:
        if not self._lifecycle.is_key(key):
            return None
        with self._entities.failures(key):
            found = await self._guarded.read(key)
            return None if found is None else await self._guarded.apart.whole(found.record)

    async def whole(self, record: Record) -> Record:
        with self._entities.failures():
            return await self._guarded.apart.whole(record)

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        with self._entities.failures():
            return await self._listing.page(states, offset, size, newest_first=newest_first)

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = MappingProxyType({}),
        after: tuple[datetime, str] | None = None,
        size: int = 50,
    ) -> list[Record]:
        return (await self.find_page(states=states, equal=equal, after=after, size=size)).records

    async def find_page(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = MappingProxyType({}),
        after: tuple[datetime, str] | None = None,
        size: int = 50,
    ) -> FoundPage[Record]:
        with self._entities.failures():
            return await self._listing.find(states, equal, after, size)

    async def oldest_waiting(self, size: int) -> list[Record]:
        with self._entities.failures():
            return await self._listing.oldest_waiting(size)

    async def versions(self, key: str) -> list[VersionOf[Record]]:
        if not self._lifecycle.is_key(key):
            return []
        with self._entities.failures():
            return await self._listing.versions(key)

    async def sizes(self) -> Sizes:
        with self._entities.failures():
            return await self._listing.sizes()

    # Changing.

    async def move(self, key: str, source: int, target: int, call: Call, /, **given: str) -> Moved:
        edge = self._entities.edge(source, target, call)
        return await self._move(key, {source: edge}, call, given)

    async def move_to(self, key: str, target: int, call: Call, /, **given: str) -> Moved:
        ways = (*self._lifecycle.by_name, *self._lifecycle.edges.values())
        edges = {edge.source: edge for edge in ways if edge.target == target and call.caller in edge.actors}
        return await self._move(key, edges, call, given)

    async def _move(
        self, key: str, edges: Mapping[int, Transition], call: Call, given: Mapping[str, Any]
    ) -> Moved:
        taken: list[Transition] = []
        if not self._lifecycle.is_key(key):
            raise NoSuchEntity(key)

        def build(record: Record) -> Record | None:
            edge = edges.get(self._changes.state(record))
            if edge is None or not fits(record, edge):
                return None
            made, edge = self._changes.moved(record, edge, given, owner=call.caller)
            taken[:] = [edge]
            return made

        with self._entities.failures(key):
            result = await self._guarded.change(key, build)
        if isinstance(result, Changed):
            edge = taken[0]
            self._entities.telling.record_applied(call, edge.name, key, edge.source, edge.target)
            return Moved(True, edge.target)
        if result.found is None:
            raise NoSuchEntity(key)
        state = self._changes.state(result.found.record)
        for edge in edges.values():
            self._entities.telling.record_ignored(call, key, edge.source, edge.target, state)
        return Moved(False, state)

    async def shift(
        self,
        key: str,
        shift: Shift,
        call: Call,
        held: Held | None = None,
        having: Mapping[str, object] = MappingProxyType({}),
        /,
        **given: Any,
    ) -> bool:
        if call.caller not in shift.actors:
            allowed = ", ".join(sorted(shift.actors))
            raise self._entities.denied(call, f"only {allowed} may {shift.name} a {self._lifecycle.entity}")
        if shift.fenced and held is None:
            raise GuardBreach(f"{shift.name} of a {self._lifecycle.entity} is for whoever has its lease")
        if not self._lifecycle.is_key(key):
            return False

        def build(record: Record) -> Record | None:
            if self._changes.state(record) not in shift.states or not fits(record, shift):
                return None
            if not _has(record, having):
                return None
            return self._changes.shifted(record, shift, given)

        with self._entities.failures(key):
            result = await self._holding.change(key, held, build)
        return isinstance(result, Changed)

    async def update(self, key: str, /, **changes: Any) -> Record:
        named = ", ".join(sorted(changes))
        raise GuardBreach(f"{named} of {self._lifecycle.entity} {key} changes by edges and shifts only")

    async def delete(
        self, key: str, expected: int, call: Call, *, having: Mapping[str, object] = MappingProxyType({})
    ) -> Moved:
        lifecycle = self._lifecycle
        if call.caller not in lifecycle.deleters:
            allowed = ", ".join(sorted(lifecycle.deleters)) or "nobody"
            raise self._entities.denied(call, f"only {allowed} may delete a {lifecycle.entity}")
        if not lifecycle.is_key(key):
            raise NoSuchEntity(key)
        with self._entities.failures(key):
            found = await self._guarded.read(key)
            if found is None:
                raise NoSuchEntity(key)
            state = self._changes.state(found.record)
            if state != expected or state not in lifecycle.deletable or not _has(found.record, having):
                return Moved(False, state)
            is_gone = await self._guarded.delete(key, found)
        if is_gone:
            self._holding.forget(key)
            self._entities.telling.record_applied(call, "delete", key, state, None)
        return Moved(is_gone, state)

    # Leases.

    def taking(
        self, parts: Collection[str] | None = None, kinds: Collection[str] | None = None
    ) -> Taking[Record]:
        return Taking(self._entities, self._holding, parts, kinds)

    # The clock.

    async def sweep(self, transition: Transition, call: Call) -> int:
        self._entities.edge(transition.source, transition.target, call, transition.name)
        if transition.name not in self._sweeps:
            self._sweeps[transition.name] = Sweeping(self._entities, transition)
        with self._entities.outages():
            return await self._sweeps[transition.name].step(call)

    async def repair(self, call: Call) -> int:
        if self._repairing is None:
            self._repairing = Repairing(self._entities)
        with self._entities.outages():
            return await self._repairing.step(call)

    def census(self) -> Iterator[tuple[str, str, int, float]]:
        """How many there were in each state when a repair last looked at all of them."""
        for state, count in self._repairing.census() if self._repairing else ():
            yield self._lifecycle.entity, self._lifecycle.states[state], count, 0.0

    # The store itself.

    async def open(self, log: Log, components: Collection[str] = ()) -> None:
        """Finds out whether the bucket is fit for what some components do; raises StoreUnusable if not."""
        self._entities.indexes.log = log
        if await require_fit(self._entities, components):
            log.write(
                STORE_READY,
                f"{self._entities.objects.place.bucket} is there",
                fields={"entity": self._lifecycle.entity},
            )

    async def versioned(self) -> bool:
        with self._entities.failures():
            return await is_versioned(self._entities.objects)

    async def close(self) -> None:
        """Waits for what is still to be written to the indexes, but not for a store that is away."""
        await self._entities.indexes.close(_PATIENCE_S)

    async def hinted(self, key: str) -> bool:
        return await self._entities.indexes.hinted(key)

    async def drained(self) -> int:
        return await self._entities.indexes.drained()

    async def problem(self) -> str | None:
        with suppress(Condition):
            try:
                await self._entities.objects.page(self._entities.keys.prefix(None), most=1)
            except ObjectError as error:
                return str(error)
        return self._entities.clock_problem()


def _has(record: Any, values: Mapping[str, object]) -> bool:
    """Whether a record has all of some values."""
    return all(getattr(record, name) == value for name, value in values.items())
