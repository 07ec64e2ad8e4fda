"""Changes of entities in a bucket: the semantics computes the next record, a conditional write stores it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle, Transition, Update
from runtime.model.system import Event, System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.base import StoreBase
from runtime.stores.contract import CREATION, DELETION, NOTHING, Given, Record
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3 import journal
from runtime.stores.s3.claims.own_writes import OwnWrites
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.codec import Snapshot
from runtime.stores.s3.conditional_writes import Changed, Draft, Unchanged
from runtime.stores.s3.context import BucketContext
from runtime.stores.s3.layout import default_layout
from runtime.stores.s3.listing import BucketListing
from runtime.stores.s3.unique_values import UniqueValues
from runtime.stores.semantics.clocks import due_at, due_given, is_due, is_in_force
from runtime.stores.semantics.creation import forgotten_at
from runtime.stores.semantics.edges import after_update, take_edge
from runtime.stores.semantics.rules import Change, Clock, revised
from runtime.world import World

LEASE_EXPIRED = Event("lease_expired", "WARNING", always=True)
_ON_ACCESS = 100
"""Most due entities that a claim changes first."""


class Plan(NamedTuple):
    """A planned change of a record: the next record, the changes that lead to it, and their arguments."""

    record: Any
    changes: tuple[Change, ...]
    given: Given = NOTHING


Decide = Callable[[Any], Plan | None]
"""Plans a change of a record; None, or an exception, where it does not apply."""


class S3Changes(StoreBase[Record]):
    """Base of all operations on the objects of one kind of entity.

    `stores` are those of all entities of a process: leases and deletions read those of others.
    """

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        objects: Objects,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any] = NOTHING,
        *,
        layout: KeptInS3 | None = None,
        max_terminal: int = 0,
        stores: dict[str, S3Changes[Any]] | None = None,
        log: Log | None = None,
    ) -> None:
        super().__init__(system, lifecycle, record, world, metrics, values)
        self._layout = layout or lifecycle.stored_as(KeptInS3) or default_layout(lifecycle, record)
        self._context: BucketContext[Record] = BucketContext(
            system.roles, self._rules, self._layout, objects, world, values
        )
        self._writes = self._context.writes
        self._own: OwnWrites[Record] = OwnWrites(self._writes)
        self._listing: BucketListing[Record] = BucketListing(self._context)
        self._unique = UniqueValues(self._context)
        self._stores = {} if stores is None else stores
        self._stores[lifecycle.entity] = self
        self._max_terminal = max_terminal
        self._log = log
        self._opened = self._now()
        self._is_timeless = self._rules.retained_s is None and not self._rules.on_access
        """Whether no transition or removal is due on access."""

    # Reading.

    async def _read(self, key: str, now: int) -> Snapshot[Record] | None:
        """Read an entity; None where it does not exist or its retention has ended."""
        found = await self._writes.read(key) if self._lifecycle.is_key(key) else None
        if found is not None and self._is_forgotten(found, now):
            await self._remove(key, found)
            return None
        return found

    async def _find(self, key: str, now: int, call: Call | None = None) -> Snapshot[Record] | None:
        """Read an entity after the transitions that are due on access."""
        found = await self._read(key, now)
        for clock in self._rules.on_access:
            if found is not None:
                _, found = await self._drive(clock, key, found, now, call)
        return found

    async def _scan(self, now: int) -> list[tuple[str, Snapshot[Record]]]:
        """Read all entities in key order; unchanged ones come from the cache."""
        found = await self._listing.read_all()
        return [each for each in found if not self._is_forgotten(each[1], now)]

    def _journal(self, found: Snapshot[Any]) -> Mapping[str, Any]:
        name = self._layout.journal
        return found.others.get(name, NOTHING) if name is not None else NOTHING

    def _is_forgotten(self, found: Snapshot[Any], now: int) -> bool:
        if self._rules.retained_s is None or (ended := journal.read_ended(self._journal(found))) is None:
            return False
        until = forgotten_at(self._rules, ended[0])
        return until is not None and until <= now

    # Writing.

    async def _apply(
        self,
        key: str,
        decide: Decide,
        call: Call | None,
        now: int,
        *,
        known: Snapshot[Record] | None = None,
        noted: Mapping[str, Any] = NOTHING,
        actor: str = "",
        is_own: bool = False,
        once: bool = False,
        is_mine: Callable[[Record, Record], bool] | None = None,
    ) -> Changed[Record] | Unchanged[Record]:
        """Apply a plan to the current record of an entity, and audit its changes.

        `is_own` is for entities that this process has leased: its last write saves reading them.
        """
        applied: list[Change] = []
        position = await self._next_position(now)

        def build(found: Snapshot[Record]) -> Draft[Record] | None:
            plan = decide(found.record)
            if plan is None:
                return None
            applied[:] = plan.changes
            return self._draft(found, plan, call, actor, now, position)

        if is_own:
            result = await self._own.change(key, build)
        else:
            result = await self._writes.change(key, build, known, once=once, is_mine=is_mine)
        if isinstance(result, Changed):
            self._cache_write(key, result, is_own=is_own)
            before, after = result.before.record, result.after.record
            for change in applied:
                self._audit(
                    change, key, call, {**self._lease_note(change, before, after), **noted}, actor=actor
                )
            await self._retain(result)
        return result

    def _draft(
        self, found: Snapshot[Record], plan: Plan, call: Call | None, actor: str, now: int, position: int
    ) -> Draft[Record]:
        old, new = found.record, revised(self._rules, found.record, plan.record)
        if self._layout.large is not None:
            written = _written_fields(plan.changes)
            refs = self._layout.large.refs.items()
            stale = {ref: None for name, ref in refs if name in written and getattr(new, ref) is not None}
            new = replace(new, **stale)
        name = self._layout.journal
        if name is None:
            return Draft(new, found.others)
        edges = [each for each in plan.changes if isinstance(each, Transition)]
        entries = [self._journal_entry(each, old, new, call, actor, now, plan.given) for each in edges]
        journey = journal.add_entries(self._journal(found), entries) if entries else self._journal(found)
        if self._ends(old, new):
            journey = journal.mark_ended(journey, now, position)
        return Draft(new, {**found.others, name: journey})

    def _journal_entry(
        self,
        edge: Transition | None,
        old: Any,
        new: Any,
        call: Call | None,
        actor: str,
        now: int,
        given: Given,
    ) -> journal.JournalEntry:
        note = self._history_note(edge, old, new, call, given) or (0, "", "", "")
        driver = actor or (call.caller if call else "")
        left = (edge.source,) if edge is not None and edge.others else ()
        left = (self._rules.state(new),) if edge is None and self._lifecycle.begins else left
        return (edge.name if edge else CREATION, driver, now, *note, *left)

    def _cache_write(self, key: str, result: Changed[Record], *, is_own: bool) -> None:
        """Cache a write of this process."""
        path = self._context.keys.path_of(key)
        self._listing.note(path, result.after)
        if not is_own:
            self._own.replace(key, result.after)

    async def _remove(self, key: str, found: Snapshot[Record]) -> bool:
        """Delete the unchanged object of an entity, and release its unique values; return whether it did."""
        if not await self._writes.delete(key, found):
            return False
        self._own.forget(key)
        self._listing.forget(self._context.keys.path_of(key))
        await self._unique.release(key, found.record)
        return True

    async def _drop(
        self,
        key: str,
        found: Snapshot[Record],
        call: Call | None,
        actor: str = "",
        noted: Mapping[str, Any] = NOTHING,
    ) -> bool:
        is_gone = await self._remove(key, found)
        if is_gone:
            self._audit(DELETION, key, call, noted, actor=actor)
        return is_gone

    # Retention.

    def _ends(self, old: Any | None, new: Any) -> bool:
        """Whether a change ends an entity: its new state is terminal."""
        state = self._rules.state
        is_other = old is None or state(old) != state(new)
        return is_other and state(new) in self._lifecycle.terminal

    async def _next_position(self, now: int) -> int:
        """Return the position of the next entity that ends, where their number is bounded."""
        if not self._max_terminal:
            return 0
        return max((position for position, _, _ in await self._list_ended(now)), default=0) + 1

    async def _retain(self, result: Changed[Record] | None) -> None:
        """Delete the ended entities above the bound, the earliest first."""
        if not self._max_terminal:
            return
        if result is not None and not self._ends(result.before.record, result.after.record):
            return
        ended = sorted(await self._list_ended(self._now()), key=lambda each: each[0])
        for _, key, found in ended[: max(0, len(ended) - self._max_terminal)]:
            await self._remove(key, found)

    async def _list_ended(self, now: int) -> list[tuple[int, str, Snapshot[Record]]]:
        found = []
        for key, each in await self._scan(now):
            if (ended := journal.read_ended(self._journal(each))) is not None:
                found.append((ended[1], key, each))
        return found

    # Due changes.

    async def _run_batch(self, clock: Clock, now: int, call: Call | None, most: int) -> int:
        """Apply a due change to at most so many entities; return how many."""
        if not is_in_force(self._rules, clock.due, now, self._opened):
            return 0
        found = []
        for key, each in await self._scan(now):
            if await self._is_due(clock, each.record, now):
                at = due_at(self._rules, clock.due, each.record) or 0
                found.append((at, key, each))
        found.sort(key=lambda each: each[:2])
        done = 0
        for _, key, each in found[:most]:
            is_done, _ = await self._drive(clock, key, each, now, call)
            done += is_done
        return done

    async def _run_on_access(self, now: int, call: Call) -> None:
        for clock in self._rules.on_access:
            await self._run_batch(clock, now, call, _ON_ACCESS)

    async def _is_due(self, clock: Clock, record: Any, now: int) -> bool:
        """Whether a change is due by the slowest clock within the allowed skew."""
        if not is_in_force(self._rules, clock.due, now, self._opened):
            return False
        state = await self._holder_state(record) if clock.due.holder_in is not None else None
        return is_due(self._rules, clock, record, self._slowest_now(now), holder_state=state)

    def _slowest_now(self, now: int) -> int:
        return now - int(self._context.skew_s * 1_000_000)

    async def _drive(
        self, clock: Clock, key: str, found: Snapshot[Record], now: int, call: Call | None
    ) -> tuple[bool, Snapshot[Record] | None]:
        """Apply a change if it is due; return whether it was, and the entity after it."""
        if not await self._is_due(clock, found.record, now):
            return False, found
        due, change = clock.due, clock.change
        call = call or self._own_call(due.by)
        actor = due.by if call is None or call.caller != due.by else ""
        if change is None:
            if await self._held_count(key):
                return False, found
            is_gone = await self._drop(key, found, call, actor)
            return is_gone, None if is_gone else await self._writes.read(key)

        def decide(record: Record) -> Plan | None:
            # An entity that was changed concurrently is for the next batch.
            if record is not found.record:
                return None
            return self._plan(change, record, due_given(due, record), now)

        result = await self._apply(key, decide, call, now, known=found, actor=actor, once=True)
        if not isinstance(result, Changed):
            return False, await self._writes.read(key)
        self._log_expired(change, key, result, call)
        return True, result.after

    def _plan(
        self, change: Change, record: Any, given: Given, now: int, owner: str = "", *, is_final: bool = False
    ) -> Plan:
        """Plan an edge or an update of a record."""
        if isinstance(change, Update):
            return Plan(after_update(self._rules, change, record, given, now), (change,), given)
        new, edges = take_edge(
            self._rules, change, record, given, now, self._world, owner=owner, is_final=is_final
        )
        return Plan(new, edges, given)

    def _log_expired(self, change: Change, key: str, result: Changed[Record], call: Call | None) -> None:
        """Log an expired lease."""
        lease, lifecycle = self._rules.lease, self._lifecycle
        if (
            lease is None
            or call is None
            or not isinstance(change, Transition)
            or self._rules.state(result.before.record) != lease.state
        ):
            return
        held = {name: getattr(result.before.record, name) for name in (lease.owner, lease.fence)}
        state = lifecycle.states[self._rules.state(result.after.record)]
        message = f"the lease of a {self._entity} expired before its owner settled it"
        call.tell(
            LEASE_EXPIRED, message, entity=self._entity, to_status=state, **{lifecycle.key: key, **held}
        )

    def _own_call(self, actor: str) -> Call | None:
        return None if self._log is None else Call(world=self._world, log=self._log, caller=actor)

    # Other entities.

    async def _holder(self, owner: str) -> tuple[Any | None, str]:
        """Return the record of a lease's holder, and the name of its state."""
        lease = self._rules.lease
        if lease is None or lease.holder is None or lease.holder.entity not in self._stores:
            return None, ""
        store = self._stores[lease.holder.entity]
        found = await store._writes.read(owner) if store._lifecycle.is_key(owner) else None
        if found is not None and store._is_forgotten(found, self._now()):
            found = None
        return None if found is None else found.record, store._lifecycle.status

    async def _holder_state(self, record: Any) -> int | None:
        lease = self._rules.lease
        holder, status = await self._holder((getattr(record, lease.owner) if lease else "") or "")
        return None if holder is None else getattr(holder, status)

    async def _count_leases(self, owner: str) -> int:
        """Count the leases of an owner."""
        lease = self._rules.lease
        if lease is None:
            return 0
        return sum(
            self._rules.state(each.record) == lease.state
            and (getattr(each.record, lease.owner) or "") == owner
            for _, each in await self._scan(self._now())
        )

    async def _held_count(self, key: str) -> int:
        """Count the leases of an entity as a holder, where `unless_holding` forbids its deletion."""
        store = self._stores.get(self._lifecycle.unless_holding or "")
        return await store._count_leases(key) if store is not None else 0


def _written_fields(changes: Iterable[Change]) -> set[str]:
    """Return the fields that some changes write."""
    found: set[str] = set()
    for change in changes:
        found |= {*change.sets, *change.from_request, *change.clear}
        found |= {*change.copy} if isinstance(change, Transition) else set()
    return found
