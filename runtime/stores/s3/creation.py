"""Creation of entities in a bucket: a conditional write of an object that must not exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from runtime.call.context import Call
from runtime.model.lifecycles import Transition
from runtime.stores.contract import CREATION, NOTHING, Compare, CreateResult, Record
from runtime.stores.s3 import journal
from runtime.stores.s3.codec import Snapshot
from runtime.stores.s3.conditional_writes import Draft, Exists
from runtime.stores.s3.context import run_together
from runtime.stores.s3.keys import derived_uuid
from runtime.stores.s3.leasing import S3Leases
from runtime.stores.semantics.creation import Begun, begin, read_ceiling, unique_values
from runtime.stores.semantics.leases import is_in_index
from runtime.stores.store import GuardBreach

_AT_ONCE = 32


class S3Creation(S3Leases[Record]):
    """The creation of one kind of entity."""

    async def create(self, record: Record, call: Call, *, then: Sequence[str] = ()) -> CreateResult[Record]:
        self._require_creator(call)
        first = self._admit_first(then, call)
        now, record = self._now(), self._complete_record(record)
        with self._context.failures(self._rules.key(record)):
            found = await self._unique.find(record, now)
            if found is not None and not self._is_forgotten(found, now):
                return CreateResult(await self._writes.large.load(found.record), False)
            self._require_key(record)
            if await self._is_full(now):
                if await self._read(self._rules.key(record), now) is not None:
                    raise self._exists(record)
                raise self._condition("store_full")
            made = begin(self._rules, record, first, now, self._world, call.caller)
            return await self._create(record, made, call, now)

    async def create_many(
        self,
        records: Sequence[Record],
        call: Call,
        *,
        compare: Compare[Record] | None = None,
        then: Sequence[str] = (),
    ) -> list[CreateResult[Record]]:
        self._require_creator(call)
        first, now = self._admit_first(then, call), self._now()
        complete = [self._complete_record(record) for record in records]

        async def create(each: tuple[Record, Begun | CreateResult[Record]]) -> CreateResult[Record]:
            record, plan = each
            if not isinstance(plan, Begun):
                return plan
            return await self._create(record, plan, call, now, compare)

        with self._context.failures():
            plans = await self._plan_many(complete, compare, first, call, now)
            # Where the number of ended entities is bounded, their positions are assigned one after the other.
            at_once = 1 if self._max_terminal else _AT_ONCE
            return list(await run_together(zip(complete, plans, strict=True), create, at_once=at_once))

    async def _plan_many(
        self,
        records: Sequence[Record],
        compare: Compare[Record] | None,
        first: Sequence[Transition],
        call: Call,
        now: int,
    ) -> list[Begun | CreateResult[Record]]:
        """Plan each creation without a write; any of them may raise."""
        rules = self._rules
        plans: list[Begun | CreateResult[Record]] = []
        ahead: dict[tuple[str, Any], Record] = {}
        keys: set[str] = set()
        most = read_ceiling(rules)
        depth = await self._depth(now) if most is not None else 0
        known = await run_together(records, lambda each: self._look_up(each, now), at_once=_AT_ONCE)
        for record, (stored, exists) in zip(records, known, strict=True):
            pairs = [*unique_values(rules, record).items()]
            found = stored or next((ahead[pair] for pair in pairs if pair in ahead), None)
            if found is not None:
                if compare is not None:
                    compare(record, found)
                plans.append(CreateResult(found, False))
                continue
            self._require_key(record)
            key = rules.key(record)
            if key in keys or exists:
                raise self._exists(record)
            if most is not None and depth >= most:
                plans.append(CreateResult(record, False, True))
                continue
            made = begin(rules, record, first, now, self._world, call.caller)
            depth += self._is_under_ceiling(made.record)
            keys.add(key)
            ahead |= dict.fromkeys(pairs, made.record)
            plans.append(made)
        return plans

    async def _look_up(self, record: Record, now: int) -> tuple[Record | None, bool]:
        """Find the entity with a unique value of a record, and whether one has its key."""
        found = await self._find_unique(record, now)
        if found is not None:
            return found, True
        return None, await self._read(self._rules.key(record), now) is not None

    async def _find_unique(self, record: Record, now: int) -> Record | None:
        """Find the entity with a unique value of a record, by its key or by the object of the value."""
        found = await self._unique.find(record, now)
        if found is None and self._layout.keyed_by and getattr(record, self._layout.keyed_by):
            found = await self._read(self._rules.key(record), now)
        if found is None or self._is_forgotten(found, now):
            return None
        return await self._writes.large.load(found.record)

    async def _create(
        self, record: Record, made: Begun, call: Call, now: int, compare: Compare[Record] | None = None
    ) -> CreateResult[Record]:
        key: str = self._rules.key(record)
        found = await self._unique.reserve(key, record, now)
        if found is not None and not self._is_forgotten(found, now):
            return await self._return_existing(record, found, compare)
        new: Record = made.record
        if self._writes.large.has_any(new):
            # The values of an existing entity must not be overwritten.
            if (known := await self._read(key, now)) is not None:
                return await self._return_existing(record, known, compare)
            new = await self._writes.large.put(new)
        draft = Draft(new, await self._first_journal(made, call, now))
        try:
            written = await self._writes.create(key, draft)
        except Exists as exists:
            # The retention of the existing one may have ended.
            if await self._read(key, now) is not None:
                return await self._return_existing(record, exists.found, compare)
            written = await self._writes.create(key, draft)
        self._listing.note(self._context.keys.path_of(key), written)
        self._audit(CREATION, key, call, self._first_note(made.created))
        for edge in made.edges:
            self._audit(edge, key, call, self._lease_note(edge, made.created, new))
        if self._ends(None, new):
            await self._retain(None)
        return CreateResult(await self._writes.large.load(new), True)

    async def _first_journal(self, made: Begun, call: Call, now: int) -> dict[str, Any]:
        if (name := self._layout.journal) is None:
            return {}
        edges: list[Transition | None] = [None]
        edges += [each for each in made.edges if isinstance(each, Transition)]
        old, new = made.created, made.record
        entries = [
            self._journal_entry(each, old if each else None, new if each else old, call, "", now, NOTHING)
            for each in edges
        ]
        first = journal.add_entries({}, entries)
        if self._ends(None, new):
            first = journal.mark_ended(first, now, await self._next_position(now))
        return {name: first}

    async def _return_existing(
        self, record: Record, found: Snapshot[Record], compare: Compare[Record] | None
    ) -> CreateResult[Record]:
        """Return an existing entity as the result, if it has a unique value of the record."""
        whole = await self._writes.large.load(found.record)
        wanted, has = unique_values(self._rules, record), unique_values(self._rules, whole)
        if not wanted.items() & has.items():
            raise self._exists(record)
        if compare is not None:
            compare(record, whole)
        return CreateResult(whole, False)

    def _complete_record(self, record: Record) -> Record:
        """Complete a record with the fields of its location: key, shard and schema."""
        layout, made = self._layout, dict[str, Any]()
        key: str = self._rules.key(record)
        if layout.keyed_by is not None:
            named = getattr(record, layout.keyed_by)
            key = made[self._lifecycle.key] = derived_uuid(named) if named else key or self._world.new_id()
        if layout.shard is not None:
            made[layout.shard.field] = self._context.keys.shard_of(key)
        if layout.schema is not None:
            made[layout.schema.field] = layout.schema.value
        return replace(record, **made) if made else record

    def _require_key(self, record: Record) -> None:
        key: str = self._rules.key(record)
        if not self._lifecycle.is_key(key) or not self._context.keys.is_storable(key):
            raise GuardBreach(f"{key!r} is no key of a {self._entity}")

    def _exists(self, record: Record) -> GuardBreach:
        return GuardBreach(f"{self._entity} {self._rules.key(record)} exists already")

    # The ceiling.

    async def _is_full(self, now: int) -> bool:
        most = read_ceiling(self._rules)
        return most is not None and await self._depth(now) >= most

    async def _depth(self, now: int) -> int:
        return sum(self._is_under_ceiling(each.record) for _, each in await self._scan(now))

    def _is_under_ceiling(self, record: Any) -> bool:
        ceiling = self._lifecycle.ceiling
        return ceiling is not None and is_in_index(self._rules, self._rules.indexes[ceiling.index], record)
