"""Creation of entities: insert them, or find the existing ones with their unique values.

Where a unique constraint decides, one statement inserts the new ones. Ceilings, unique values that expire,
and whatever else depends on the time of the creation, take a transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from runtime.call.context import Call
from runtime.model.lifecycles import Transition
from runtime.stores.batch import Batch
from runtime.stores.contract import CREATION, Compare, CreateResult, Record
from runtime.stores.postgres.context import Connection, moment_of
from runtime.stores.postgres.database import Locked
from runtime.stores.postgres.due_transitions import PostgresClocks
from runtime.stores.postgres.steps import StepOutcome
from runtime.stores.semantics.creation import Begun, begin, read_ceiling, unique_values
from runtime.stores.semantics.leases import is_in_index
from runtime.stores.store import GuardBreach, Unstorable

Run = Callable[..., Awaitable[Sequence[Any]]]
"""Runs a statement by its name, in a transaction of its own or in one of several."""

_PATIENT = 3
"""Most creations that wait for locks at a time, so that connections stay free for others."""
_ATTEMPTS = 3
"""Tries to insert or find; an entity may be purged between the two."""
_Created = tuple[Any, bool]
_BatchKey = tuple[str, bool]
"""The actor, and whether the first edge is applied with the creation."""


class PostgresCreation(PostgresClocks[Record]):
    """The creation of entities of one kind."""

    _apart_us = 1
    """Microseconds between two entities of one call, so that they are claimed in their order."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._creating: dict[_BatchKey, Batch[Record, _Created]] = {}
        self._waiting: dict[_BatchKey, Batch[Record, _Created]] = {}
        quick = self._statements.get("create")
        self._parameters = [name for name in quick.takes if name.startswith("record_")] if quick else []
        self._first = next(
            (name.removeprefix("create_") for name in self._statements if _is_at_once(name)), ""
        )
        self._defaults = self._default_fields()

    async def create(self, record: Record, call: Call, *, then: Sequence[str] = ()) -> CreateResult[Record]:
        self._require_creator(call)
        first = self._admit_first(then, call)
        self._require_key_form(record)
        if not self._is_quick([record], first):
            (result,) = await self._create_in_order([record], call, None, first)
        else:
            made, is_new = await self._answer(self._create_batched(record, (call.caller, bool(first))))
            result = CreateResult(made, is_new)
            self._audit_created(result, first, call)
        if result.is_refused:
            raise self._condition("store_full")
        return result

    async def create_many(
        self,
        records: Sequence[Record],
        call: Call,
        *,
        compare: Compare[Record] | None = None,
        then: Sequence[str] = (),
    ) -> list[CreateResult[Record]]:
        self._require_creator(call)
        first = self._admit_first(then, call)
        for record in records:
            self._require_key_form(record)
        if not self._is_quick(records, first):
            return await self._create_in_order(records, call, compare, first)
        batch_key = (call.caller, bool(first))
        work = (
            self._create_quick(batch_key, records)
            if compare is None
            else self._create_compared(compare, batch_key, records)
        )
        results = [CreateResult(made, is_new) for made, is_new in await self._answer(work)]
        for each in results:
            self._audit_created(each, first, call)
        return results

    # In one statement.

    def _is_quick(self, records: Sequence[Record], first: Sequence[Transition]) -> bool:
        """Whether one statement creates these: they set no field that only the store writes."""
        if (
            not self._parameters
            or not self._is_timeless
            or [each.name for each in first] not in ([], [self._first])
        ):
            return False
        return all(getattr(record, name) == value for record in records for name, value in self._defaults)

    def _default_fields(self) -> list[tuple[str, Any]]:
        """Return the fields that are no argument of the statement, with their defaults."""
        rules, lease = self._rules, self._rules.lease
        written = {rules.lifecycle.status, *rules.lifecycle.creation_stamps}
        if lease is not None:
            written |= {lease.owner, lease.fence, lease.expires, lease.token or ""}
        arguments = {name.removeprefix("record_") for name in self._parameters}
        return [(name, rules.unset(name)) for name in rules.names if name not in written | arguments]

    async def _create_batched(self, record: Record, batch_key: _BatchKey) -> _Created:
        """Create in a batch; alone where another transaction has a lock that decides the outcome."""
        batch = self._creating.get(batch_key)
        if batch is None:
            batch = self._creating[batch_key] = self._make_batch(batch_key)
        try:
            return await batch(record)
        except Locked:
            waiting = self._waiting.get(batch_key)
            if waiting is None:
                waiting = self._waiting[batch_key] = Batch(
                    partial(self._create_quick, batch_key), max_items=1, concurrency=_PATIENT
                )
            return await waiting(record)

    def _make_batch(self, batch_key: _BatchKey) -> Batch[Record, _Created]:
        async def create(records: Sequence[Record]) -> Sequence[_Created | Exception]:
            try:
                return await self._create_quick(batch_key, records, statement="create_shared")
            except (Unstorable, Locked, GuardBreach) as error:
                if len(records) == 1:
                    return [error]
                # One of them is the cause; create the others without it.
                return [(await create([each]))[0] for each in records]

        return Batch(create, concurrency=2)

    async def _create_compared(
        self, compare: Compare[Record], batch_key: _BatchKey, records: Sequence[Record]
    ) -> list[_Created]:
        async with self._transaction() as connection:
            made = await self._create_quick(batch_key, records, partial(self._run_in, connection))
            for wanted, (found, is_new) in zip(records, made, strict=True):
                if not is_new:
                    compare(wanted, found)
        return made

    async def _create_quick(
        self,
        batch_key: _BatchKey,
        records: Sequence[Record],
        run: Run | None = None,
        statement: str = "create",
    ) -> list[_Created]:
        run = run or self._run
        actor, then = batch_key
        first = {self._identity(each): each for each in reversed(records)}
        keys = [each for each in map(self._identity, records) if isinstance(each, str)]
        if len({*keys}) < len(keys):
            raise GuardBreach(f"two of these new entities have one key of a {self._entity}")
        remaining, created, new = dict(first), dict[Any, Record](), set[Any]()
        for _ in range(_ATTEMPTS):
            columns = self._columns([*remaining.values()])
            added = self._read(await run(statement, actor=actor, then=then, **columns))
            new |= added.keys()
            created |= added
            remaining = {each: record for each, record in remaining.items() if each not in created}
            if not remaining:
                break
            created |= self._read(await self._find([*remaining.values()], run))
            remaining = {each: record for each, record in remaining.items() if each not in created}
            if not remaining:
                break
        if remaining:
            raise GuardBreach(f"a {self._entity} was neither created nor found")
        return [
            (created[each], each in new and record is first[each])
            for record in records
            for each in (self._identity(record),)
        ]

    async def _find(self, records: Sequence[Record], run: Run) -> Sequence[Any]:
        """Find the entities with a unique value of one of the records."""
        wanted: dict[str, list[Any]] = {f"record_{name}": [] for name in self._kept.unique}
        wanted |= {"fields": [], "values": []}
        for record in records:
            for name, value in unique_values(self._rules, record).items():
                if f"record_{name}" in wanted:
                    wanted[f"record_{name}"].append(value)
                else:
                    wanted["fields"].append(name)
                    wanted["values"].append(str(value))
        if "find_unique" not in self._statements or not any(wanted.values()):
            return ()
        return await run("find_unique", **wanted)

    def _read(self, rows: Sequence[Any]) -> dict[Any, Record]:
        records = [self._codec.decode(row) for row in rows]
        return {self._identity(each): each for each in records}

    def _identity(self, record: Any) -> Any:
        """Return the identity of a record: its first unique value, or the key where there is none."""
        for pair in unique_values(self._rules, record).items():
            return pair
        return self._codec.as_key(self._rules.key(record))

    def _columns(self, records: Sequence[Any]) -> dict[str, list[Any]]:
        codec, columns = self._codec, dict[str, list[Any]]()
        for parameter in self._parameters:
            name = parameter.removeprefix("record_")
            columns[parameter] = [getattr(each, name) for each in records]
        key = f"record_{self._key_field}"
        columns[key] = [codec.as_key(each) for each in columns[key]]
        return columns

    # In a transaction.

    async def _create_in_order(
        self,
        records: Sequence[Record],
        call: Call,
        compare: Compare[Record] | None,
        first: Sequence[Transition],
    ) -> list[CreateResult[Record]]:
        await self._forget()
        async with self._transaction() as connection:
            (started,) = await self._run_in(connection, "begin", actor=call.caller)
            results, new = await self._plan(connection, records, compare, first, call, moment_of(started))
            await self._add(connection, new, call)
        for made in new:
            self._audit(CREATION, self._rules.key(made.created), call, self._first_note(made.created))
        for made in new:
            if made.edges:
                self._audit_outcome(_to_outcome(made), call)
        return results

    async def _plan(
        self,
        connection: Connection,
        records: Sequence[Record],
        compare: Compare[Record] | None,
        first: Sequence[Transition],
        call: Call,
        now: int,
    ) -> tuple[list[CreateResult[Record]], list[Begun]]:
        """Plan each creation without a write; any of them may raise."""
        rules, codec = self._rules, self._codec
        run = partial(self._run_in, connection)
        keys = [codec.as_key(rules.key(each)) for each in records]
        existing = {rules.key(codec.decode(row)) for row in await run("lock", keys=keys)}
        known: dict[Any, Any] = {}
        for record in [codec.decode(row) for row in await self._find(records, run)]:
            known |= dict.fromkeys(unique_values(rules, record).items(), record)
        most, ceiling = read_ceiling(rules), rules.lifecycle.ceiling
        depth = 0 if most is None else (await run("depth"))[0][0]
        results: list[CreateResult[Record]] = []
        new: list[Begun] = []
        for record, key in zip(records, keys, strict=True):
            pairs = [*unique_values(rules, record).items()]
            found = next((known[pair] for pair in pairs if pair in known), None)
            if found is not None:
                if compare is not None:
                    compare(record, found)
                results.append(CreateResult(found, False))
                continue
            if key in existing:
                raise GuardBreach(f"{self._entity} {key} exists already")
            if most is not None and depth >= most:
                results.append(CreateResult(record, False, True))
                continue
            made = begin(rules, record, first, now + self._apart_us * len(new), self._world, call.caller)
            depth += ceiling is not None and is_in_index(rules, rules.indexes[ceiling.index], made.record)
            existing.add(key)
            known |= dict.fromkeys(pairs, made.record)
            new.append(made)
            results.append(CreateResult(made.record, True))
        return results, new

    async def _add(self, connection: Connection, new: Sequence[Begun], call: Call) -> None:
        if not new:
            return
        rules = self._rules
        rows = self._codec.encode([each.created for each in new])
        await self._run_in(connection, "insert", rows=rows)
        fields, values, keys, seconds = list[str](), list[str](), list[str](), list[float]()
        for each in new:
            for name, value in unique_values(rules, each.created).items():
                if (variable := rules.unique[name]) is not None:
                    fields.append(name)
                    values.append(str(value))
                    keys.append(self._codec.as_key(rules.key(each.created)))
                    seconds.append(float(rules.values[variable]))
        if keys:
            await self._run_in(
                connection, "remember", fields=fields, values=values, keys=keys, seconds=seconds
            )
        outcomes = [_to_outcome(each) for each in new if each.edges]
        await self._write(connection, call.caller, outcomes, call, is_new=True)

    # Shared parts.

    def _require_key_form(self, record: Record) -> None:
        key = self._rules.key(record)
        lifecycle = self._lifecycle
        is_formed = lifecycle.key_form is None or lifecycle.is_key(key)
        if not is_formed or not self._codec.is_key(key):
            raise GuardBreach(f"{key!r} is no key of a {self._entity}")

    def _audit_created(self, result: CreateResult[Record], first: Sequence[Transition], call: Call) -> None:
        if result.is_new:
            key = self._rules.key(result.record)
            for name in (CREATION, *(each.name for each in first)):
                self._audit(name, key, call)


def _is_at_once(name: str) -> bool:
    return name.startswith("create_") and name != "create_shared"


def _to_outcome(made: Begun) -> StepOutcome:
    changes = tuple((each.edge, each.record) for each in made.steps)
    return StepOutcome(made.created, changes, requested=tuple(each.name for each in made.edges))
