"""The S3 store: an entity is an object, and a change is one conditional write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.model.lifecycles import Update
from runtime.model.system import Event
from runtime.observe.log import Log
from runtime.stores.bucket_store import BucketPage, Sizes, VersionOf
from runtime.stores.contract import (
    CREATION,
    NOTHING,
    Cursor,
    Given,
    HistoryEntry,
    LeaseProof,
    Record,
    Transitioned,
)
from runtime.stores.s3 import journal
from runtime.stores.s3.bucket.bucket_settings import is_versioned
from runtime.stores.s3.bucket.preflight import require_fit
from runtime.stores.s3.changes import Plan
from runtime.stores.s3.client.errors import ObjectError
from runtime.stores.s3.codec import Snapshot
from runtime.stores.s3.conditional_writes import Changed
from runtime.stores.s3.creation import S3Creation
from runtime.stores.s3.due_transitions import DueSearch, find_due_index
from runtime.stores.s3.indexes.repair import IndexRepair
from runtime.stores.s3.listing import Query
from runtime.stores.semantics.clocks import batch_size, is_in_force
from runtime.stores.semantics.creation import is_deletable, is_purgeable
from runtime.stores.semantics.edges import applies, is_of_lease
from runtime.stores.semantics.leases import lease_problem
from runtime.stores.semantics.rules import Change, Clock, to_moment
from runtime.stores.store import NoSuchEntity

STORE_READY = Event("store_ready", "INFO")
_PATIENCE_S = 10.0
"""Grace in which a closing store writes the pending index entries."""


class S3Store(S3Creation[Record]):
    """The entities of one kind as objects, which any number of processes change."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._due: dict[int, DueSearch[Record]] = {}
        self._repair: IndexRepair[Record] | None = None
        if self._layout.repairs is not None:
            self._metrics.add_census(self)

    # Reading.

    async def get(self, key: str) -> Record | None:
        with self._context.failures(key):
            found = await self._find(key, self._now())
            return None if found is None else await self._writes.large.load(found.record)

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
    ) -> BucketPage[Record]:
        self._require_fields(equal)
        query = Query(states, equal, to_moment(since), to_moment(until), after, newest_first)
        now = self._now()
        with self._context.failures():
            return await self._listing.find(query, offset, size, lambda each: self._is_forgotten(each, now))

    async def history(self, key: str) -> list[HistoryEntry]:
        with self._context.failures(key):
            if self._layout.journal is None:
                return self._derive_history(await self.versions(key))
            found = await self._read(key, self._now())
            return [] if found is None else journal.read_history(self._rules, self._journal(found))

    def _derive_history(self, versions: Sequence[VersionOf[Record]]) -> list[HistoryEntry]:
        """Derive the history from versions; the actor is known where only one is permitted."""
        rules, entries = self._rules, list[HistoryEntry]()
        lease = rules.lease
        before: Record | None = None
        for each in versions:
            if each.record is None:
                continue
            source: int | None = None if before is None else rules.state(before)
            target: int = rules.state(each.record)
            if source != target:
                edge = None if source is None else rules.lifecycle.edges.get((source, target))
                actors = edge.actors if edge else rules.lifecycle.creators if source is None else frozenset()
                fence = (getattr(each.record, lease.fence) or 0) if lease else 0
                owner = (getattr(each.record, lease.owner) or "") if lease else ""
                entries.append(
                    HistoryEntry(
                        len(entries) + 1,
                        edge.name if edge else CREATION if source is None else "",
                        source,
                        target,
                        next(iter(actors)) if len(actors) == 1 else "",
                        each.at,
                        fence,
                        owner,
                    )
                )
            before = each.record
        return entries

    async def count(
        self, states: Collection[int] = (), *, since: datetime | int | None = None
    ) -> dict[int, int]:
        begin, listed_by = to_moment(since), self._lifecycle.listed_by
        with self._context.failures():
            records = [each.record for _, each in await self._scan(self._now())]
        if begin is not None and listed_by is not None:
            records = [each for each in records if (self._rules.moment_at(each, listed_by) or 0) >= begin]
        found = Counter(self._rules.state(each) for each in records)
        return {state: found[state] for state in states or self._lifecycle.states}

    async def health(self) -> str | None:
        with suppress(Condition):
            try:
                await self._context.objects.page(self._context.keys.prefix(None), most=1)
            except ObjectError as error:
                return str(error)
        return self._context.clock_problem()

    # Changing.

    async def transition(
        self,
        key: str,
        edge: str | Sequence[str],
        call: Call,
        *,
        lease: LeaseProof | None = None,
        owner: str = "",
        given: Given = NOTHING,
        noted: Mapping[str, str] = NOTHING,
        is_final: bool = False,
    ) -> Transitioned:
        names = (edge,) if isinstance(edge, str) else edge
        changes = [self._admit(name, call, has_proof=lease is not None) for name in names]
        now, rules = self._now(), self._rules
        ignored: list[Change] = []

        def decide(record: Record) -> Plan | None:
            new, applied = record, tuple[Change, ...]()
            for change in changes:
                if not applies(rules, change, new):
                    ignored[:] = [change]
                    return None
                if lease is not None:
                    self._require_proof(change, new, key, lease, now)
                if is_final:
                    self._require_ending(change)
                plan = self._plan(change, new, given, now, owner or call.caller, is_final=is_final)
                new, applied = plan.record, applied + plan.changes
            return Plan(new, applied, given)

        with self._context.failures(key):
            known = await self._require(key, now, call)
            # Lease owners and heartbeats write repeatedly: the cached last write spares a read.
            is_own = known is None and (
                lease is not None or any(isinstance(each, Update) for each in changes)
            )
            result = await self._apply(key, decide, call, now, known=known, noted=noted, is_own=is_own)
        if isinstance(result, Changed):
            return Transitioned(True, rules.state(result.after.record))
        if result.found is None:
            raise NoSuchEntity(key)
        state: int = rules.state(result.found.record)
        self._audit_ignored(ignored[0], key, call, state)
        return Transitioned(False, state)

    def _require_proof(self, change: Change, record: Any, key: str, lease: LeaseProof, now: int) -> None:
        """Raise LeaseLost for a wrong proof of a change of the leased state."""
        if not is_of_lease(self._rules, change, record):
            return
        if (problem := lease_problem(self._rules, record, *lease, now)) is not None:
            raise self._lease_lost(key, lease.owner, problem)

    async def _require(self, key: str, now: int, call: Call | None = None) -> Snapshot[Record] | None:
        """Read an entity where transitions may be due on access; None where no read is necessary."""
        if not self._lifecycle.is_key(key):
            raise NoSuchEntity(key)
        if self._is_timeless:
            return None
        found = await self._find(key, now, call)
        if found is None:
            raise NoSuchEntity(key)
        return found

    async def update(self, key: str, /, **changes: Any) -> Record:
        self._require_unguarded(changes)
        now = self._now()
        with self._context.failures(key):
            known = await self._require(key, now)
            result = await self._apply(
                key, lambda record: Plan(replace(record, **changes), ()), None, now, known=known
            )
        if not isinstance(result, Changed):
            raise NoSuchEntity(key)
        record: Record = result.after.record
        return record

    async def delete(self, key: str, expected: int, call: Call) -> Transitioned:
        self._require_deleter(call)
        with self._context.failures(key):
            found = await self._find(key, self._now(), call)
            if found is None:
                raise NoSuchEntity(key)
            state: int = self._rules.state(found.record)
            if not is_deletable(self._rules, found.record, expected):
                return Transitioned(False, state)
            if held := await self._held_count(key):
                raise self._condition("still_held", entity=self._entity, key=key, held=held)
            noted = {"from_status": self._lifecycle.states[state]}
            return Transitioned(await self._drop(key, found, call, noted=noted), state)

    async def purge(self, older_than_s: float, call: Call) -> int:
        self._require_deleter(call)
        now, done = self._now(), 0
        with self._context.failures():
            for key, found in await self._scan(now):
                is_old = is_purgeable(self._rules, found.record, older_than_s, now)
                if is_old and not await self._held_count(key):
                    done += await self._drop(key, found, call)
        return done

    async def run_due(self, change: str, call: Call) -> int:
        clocks, done = self._admit_clock(change, call), 0
        with self._context.outages():
            for clock in clocks:
                done += await self._run_clock(clock, call)
        return done

    async def _run_clock(self, clock: Clock, call: Call) -> int:
        now = self._now()
        index = find_due_index(self._context, clock)
        if index is None:
            return await self._run_batch(clock, now, call, batch_size(self._rules, clock.due))
        if not is_in_force(self._rules, clock.due, now, self._opened):
            return 0
        if clock.number not in self._due:

            async def drive(key: str, found: Snapshot[Record], by: Call) -> bool:
                return (await self._drive(clock, key, found, self._now(), by))[0]

            self._due[clock.number] = DueSearch(self._context, clock, index, drive)
        return await self._due[clock.number].step(call)

    # Specific to buckets.

    async def versions(self, key: str) -> list[VersionOf[Record]]:
        if not self._lifecycle.is_key(key):
            return []
        with self._context.failures():
            return await self._listing.versions(key)

    async def is_versioned(self) -> bool:
        with self._context.failures():
            return await is_versioned(self._context.objects)

    async def sizes(self) -> Sizes:
        with self._context.failures():
            return await self._listing.sizes()

    async def oldest_waiting(self, size: int) -> list[Record]:
        with self._context.failures():
            return await self._listing.oldest_waiting(size)

    async def repair(self, call: Call) -> int:
        if self._repair is None:
            self._repair = IndexRepair(self._context)
        with self._context.outages():
            return await self._repair.step(call)

    async def wait_indexed(self, key: str) -> bool:
        return await self._context.indexes.wait_written(key)

    async def drain_indexes(self) -> int:
        return await self._context.indexes.drain()

    # The store itself.

    def census(self) -> Iterator[tuple[str, str, int, float]]:
        """Iterate over the counts by state of the last complete repair."""
        for state, count in self._repair.census() if self._repair else ():
            yield self._entity, self._lifecycle.states[state], count, 0.0

    async def open(self, log: Log, components: Collection[str] = ()) -> None:
        """Run the preflight check for some components; raises StoreUnusable where it fails."""
        self._context.indexes.log = log
        if await require_fit(self._context, components):
            bucket = self._context.objects.location.bucket
            log.write(STORE_READY, f"{bucket} is ready", fields={"entity": self._entity})

    async def close(self) -> None:
        """Wait a limited time for the pending index entries."""
        await self._context.indexes.close(_PATIENCE_S)
