"""New entities: added, or found under what no two of them share. The unique constraint alone decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Generic

from runtime.call.context import Call
from runtime.stores.batch import Batch
from runtime.stores.postgres.database import Locked
from runtime.stores.postgres.rows import as_key
from runtime.stores.postgres.table import Table
from runtime.stores.store import Compare, GuardBreach, Record, Unstorable

Run = Callable[..., Awaitable[Sequence[Any]]]
"""Runs a statement by its name, in a transaction of its own or in one that has more of them."""

_PATIENT = 3
"""How many wait for another transaction at a time: the connections are for the others too."""
_ATTEMPTS = 3
"""An entity that was found and then purged before it could be read is created after all."""


class Creation(Generic[Record]):
    """Creates the entities of one kind."""

    def __init__(self, table: Table[Record]) -> None:
        self._table = table
        self._unique = table.kept.unique or (table.lifecycle.key,)
        takes = table.statements["create"].takes
        self._takes = [name.removeprefix("record_") for name in takes if name != "actor"]
        self._creating: dict[str, Batch[Record, tuple[Record, bool]]] = {}
        self._waiting: dict[str, Batch[Record, tuple[Record, bool]]] = {}

    async def one(self, record: Record, call: Call) -> tuple[Record, bool]:
        """Adds an entity or finds its like; calls that wait at the same moment share a statement."""
        self._require_creator(call)
        made = await self._table.answer(self._one(record, call.caller))
        self._created(call, made)
        return made

    async def _one(self, record: Record, actor: str) -> tuple[Record, bool]:
        """With others first; alone where another transaction has to end before anybody knows the outcome."""
        batch = self._creating.get(actor)
        if batch is None:
            batch = self._creating[actor] = self._creator(actor)
        try:
            return await batch(record)
        except Locked:
            waiting = self._waiting.get(actor)
            if waiting is None:
                waiting = self._waiting[actor] = Batch(
                    partial(self._create, actor), max_items=1, concurrency=_PATIENT
                )
            return await waiting(record)

    async def all(
        self, records: Sequence[Record], call: Call, compare: Compare[Record] | None = None
    ) -> list[tuple[Record, bool]]:
        """Adds all entities or none: in one statement, unless what is found may still undo it."""
        self._require_creator(call)
        work = self._create if compare is None else partial(self._create_compared, compare)
        made = await self._table.answer(work(call.caller, records))
        for each in made:
            self._created(call, each)
        return made

    async def _create_compared(
        self, compare: Compare[Record], actor: str, records: Sequence[Record]
    ) -> list[tuple[Record, bool]]:
        async with self._table.database.transaction() as connection:
            made = await self._create(actor, records, partial(self._table.run_in, connection))
            for wanted, (found, is_new) in zip(records, made, strict=True):
                if not is_new:
                    compare(wanted, found)
        return made

    def _creator(self, actor: str) -> Batch[Record, tuple[Record, bool]]:
        async def create(records: Sequence[Record]) -> Sequence[tuple[Record, bool] | Exception]:
            try:
                return await self._create(actor, records, statement="create_shared")
            except (Unstorable, Locked) as error:
                if len(records) == 1:
                    return [error]
                # It is about one of them; the others only happened to come with it.
                return [(await create([each]))[0] for each in records]

        return Batch(create, concurrency=2)

    async def _create(
        self, actor: str, records: Sequence[Record], run: Run | None = None, statement: str = "create"
    ) -> list[tuple[Record, bool]]:
        run = run or self._table.run
        first = {self._identity(each): each for each in reversed(records)}
        left, made, new = dict(first), dict[Any, Record](), set[Any]()
        for _ in range(_ATTEMPTS):
            added = self._read(await run(statement, actor=actor, **self._columns([*left.values()])))
            new |= added.keys()
            made |= added
            left = {each: record for each, record in left.items() if each not in made}
            if not left:
                break
            made |= self._read(await self._find([*left], run))
            left = {each: record for each, record in left.items() if each not in made}
            if not left:
                break
        if left:
            raise GuardBreach(f"a {self._table.lifecycle.entity} was neither created nor found")
        return [
            (made[each], each in new and record is first[each])
            for record in records
            for each in (self._identity(record),)
        ]

    async def _find(self, identities: Sequence[tuple[Any, ...]], run: Run) -> Sequence[Any]:
        names = [f"record_{name}" for name in self._unique]
        columns = dict(zip(names, map(list, zip(*identities, strict=True)), strict=True))
        if not self._table.kept.unique:
            (keys,) = columns.values()
            found = [await run("get", key=as_key(key)) for key in keys]
            return [row for rows in found for row in rows]
        return await run("find_unique", **columns)

    def _read(self, rows: Sequence[Any]) -> dict[Any, Record]:
        records = [self._table.rows.read(row) for row in rows]
        return {self._identity(each): each for each in records}

    def _identity(self, record: Any) -> tuple[Any, ...]:
        return tuple(getattr(record, name) for name in self._unique)

    def _columns(self, records: Sequence[Any]) -> dict[str, list[Any]]:
        columns = {f"record_{name}": [getattr(each, name) for each in records] for name in self._takes}
        key = f"record_{self._table.lifecycle.key}"
        columns[key] = [as_key(each) for each in columns[key]]
        return columns

    def _require_creator(self, call: Call) -> None:
        lifecycle = self._table.lifecycle
        if call.caller not in lifecycle.creators:
            allowed = ", ".join(sorted(lifecycle.creators))
            raise self._table.denied(call, f"only {allowed} may create a {lifecycle.entity}")

    def _created(self, call: Call, made: tuple[Any, bool]) -> None:
        record, is_new = made
        if is_new:
            lifecycle = self._table.lifecycle
            self._table.metrics.count_transition(lifecycle.entity, "create", call.caller)
            self._table.tell(call, "create", getattr(record, lifecycle.key), None, lifecycle.initial)
