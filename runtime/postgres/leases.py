"""Leases: taken oldest first, made longer, and given back with what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, NamedTuple

from runtime.bounded import BoundedMap
from runtime.call import Call
from runtime.conditions import Condition
from runtime.guard import require_edge
from runtime.batch import Batch
from runtime.postgres.database import Locked, Unavailable
from runtime.postgres.rows import as_key, is_key
from runtime.postgres.table import Table
from runtime.store import GuardBreach, Held, Record, Unstorable
from runtime.tables import Lease, Transition

_EVER = datetime(1, 1, 1, tzinfo=UTC)
_LOOK_BACK_S = 1.0
"""How often at least those are looked for that are older than the last one taken."""
_REMEMBERED = 10_000
_PATIENT = 3
"""How many results wait for another transaction at a time: the connections are for the others too."""


class _Settling(NamedTuple):
    key: str
    held: Held
    final: bool
    given: Mapping[str, str | None]


class Leases(Generic[Record]):
    """The leases of one kind of entity."""

    def __init__(self, table: Table[Record], lease: Lease) -> None:
        self._table = table
        self._lease = lease
        self._entering = next(edge for edge in table.lifecycle.edges.values() if edge.target == lease.state)
        self._holder = sorted(self._entering.actors)[0]
        self._acquiring: dict[str, Batch[str, Record | None]] = {}
        self._settling: dict[tuple[int, str], tuple[Batch[_Settling, int], Batch[_Settling, int]]] = {}
        self._renewing: Batch[tuple[str, Held], bool] = Batch(self._renew)
        self._spare: list[tuple[float, Record]] = []
        self._unsure: BoundedMap[bool] = BoundedMap(_REMEMBERED)
        self._oldest, self._looked_back, self._found = _EVER, 0.0, False
        self.looked: Callable[[], bool] = lambda: True
        """Called whenever a look for something to acquire begins; whether there was news since the last."""

    async def acquire(self, owner: str, call: Call) -> Record | None:
        edge = self._entering
        require_edge(
            self._table.roles, self._table.lifecycle, call.caller, call.method, edge.source, edge.target
        )
        record = self._spared(owner)
        if record is None:
            batch = self._acquiring.get(call.caller)
            if batch is None:
                batch = self._acquiring[call.caller] = self._acquirer(call.caller)
            record = await self._table.answer(batch(owner))
        if record is not None:
            key, fence = self._key(record), getattr(record, self._lease.fence)
            self._table.applied(call, edge, key, **self._named(Held(owner, fence)))
        return record

    async def renew(self, key: str, held: Held) -> bool:
        renewed = await self._table.answer(self._renewing((key, held)))
        if not renewed:
            self._table.measures.lease_lost()
        return renewed

    async def settle(
        self, key: str, target: int, held: Held, call: Call, *, final: bool = False, **given: str | None
    ) -> int:
        table, source = self._table, self._lease.state
        require_edge(table.roles, table.lifecycle, call.caller, call.method, source, target)
        edge = table.lifecycle.edges[source, target]
        if final and edge.gives_up is None:
            raise GuardBreach(f"{edge.name} is never the last try of a {table.lifecycle.entity}")
        if not is_key(key):
            raise self._lost(key, held)
        try:
            ended = await table.answer(self._settled(edge, _Settling(key, held, final, given), call.caller))
        except _LeaseLost:
            table.measures.lease_lost()
            raise self._lost(key, held) from None
        table.applied(call, edge, key, **self._named(held))
        if ended != target and edge.gives_up is not None:
            end = table.lifecycle.transition(edge.gives_up.transition)
            table.applied(call, end, key, **self._named(held))
        return ended

    def _named(self, held: Held) -> dict[str, object]:
        """A lease for the log, by the names that the record has for it."""
        return {self._lease.owner: held.owner, self._lease.fence: held.fence}

    def _lost(self, key: str, held: Held) -> Condition:
        make: Callable[..., Condition] = self._table.roles["lease_lost"]
        return make(holder=held.owner, key=key)

    def _key(self, record: Any) -> str:
        key: str = getattr(record, self._table.lifecycle.key)
        return key

    # Acquiring.

    def _acquirer(self, actor: str) -> Batch[str, Record | None]:
        async def acquire(owners: Sequence[str]) -> Sequence[Record | None]:
            return await self._acquire(actor, owners)

        return Batch(acquire, unclaimed=self._keep)

    async def _acquire(self, actor: str, owners: Sequence[str]) -> list[Record | None]:
        found = await self._look(actor, owners, self.looked())
        by_owner: dict[str, list[Record]] = {}
        for row in found:
            record = self._table.rows.read(row)
            self._table.measures.waited(row["waited"])
            by_owner.setdefault(getattr(record, self._lease.owner), []).append(record)
        return [by_owner[owner].pop(0) if by_owner.get(owner) else None for owner in owners]

    async def _look(self, actor: str, owners: Sequence[str], is_news: bool) -> Sequence[Any]:
        """Takes the next ones from where the last were taken, and every so often from the very beginning.

        What was taken leaves its traces in the index until it is vacuumed, which a forgotten transaction can
        hold up for hours. Passing all of them on every look would take longer and longer. Where nothing is
        expected, one look at all of it is enough.
        """
        now = asyncio.get_running_loop().time()
        start = self._oldest
        if now - self._looked_back > _LOOK_BACK_S or not (is_news or self._found):
            start, self._looked_back = _EVER, now
        found = await self._take(actor, owners, start)
        if len(found) < len(owners) and start is not _EVER:
            self._looked_back = now
            try:
                found = [*found, *await self._take(actor, owners[len(found) :], _EVER)]
            except Unavailable:
                if not found:
                    raise  # What has been taken is not to be forgotten for that.
        self._found = bool(found)
        if found:
            self._oldest = max(row[self._lease.oldest_by] for row in found)
        return found

    async def _take(self, actor: str, owners: Sequence[str], start: datetime) -> Sequence[Any]:
        return await self._table.run("acquire", actor=actor, owners=list(owners), skip=[], **{"from": start})

    def _keep(self, _owner: str, record: Record | None) -> None:
        """Whoever asked has gone: the next who asks in this name gets it."""
        if record is not None:
            seconds = float(self._table.variables[self._lease.seconds])
            self._spare.append((asyncio.get_running_loop().time() + seconds, record))

    def _spared(self, owner: str) -> Record | None:
        """One that nobody came for. How long it is held goes by a clock that nobody sets."""
        now = asyncio.get_running_loop().time()
        self._spare = [(until, record) for until, record in self._spare if until > now]
        for kept in self._spare:
            if getattr(kept[1], self._lease.owner) == owner:
                self._spare.remove(kept)
                return kept[1]
        return None

    # Renewing.

    async def _renew(self, asked: Sequence[tuple[str, Held]]) -> list[bool | Exception]:
        known = [(as_key(key), held) for key, held in asked if is_key(key)]
        found = await self._table.run("renew", actor=self._holder, **_columns(known))
        renewed = {(str(row[0]), row[1]) for row in found}
        left = [key for key, held in known if (str(key), held.fence) not in renewed]
        goes_on: set[tuple[str, str, int]] = set()
        if left:
            rows = await self._table.run("holds", keys=left)
            goes_on = {(str(row[0]), row[2], row[3]) for row in rows if row[4]}
        outcomes: list[bool | Exception] = []
        for key, held in asked:
            if (key.lower(), held.fence) not in renewed and (key.lower(), *held) in goes_on:
                # Somebody else has locked it for a moment, which takes the lease from nobody.
                outcomes.append(Unavailable("it is locked"))
            else:
                outcomes.append((key.lower(), held.fence) in renewed)
        return outcomes

    # Settling.

    async def _settled(self, edge: Transition, asked: _Settling, actor: str) -> int:
        """With others first; alone where somebody else has the row, so that nobody else waits for that."""
        batches = self._settling.get((edge.target, actor))
        if batches is None:
            together = partial(self._settle, f"settle_{edge.name}", edge, actor)
            alone = partial(self._settle, f"settle_{edge.name}_alone", edge, actor)
            batches = Batch(together, lanes=2), Batch(alone, most=1, lanes=_PATIENT)
            self._settling[edge.target, actor] = batches
        try:
            return await batches[0](asked)
        except Locked:
            return await batches[1](asked)

    async def _settle(
        self, statement: str, edge: Transition, actor: str, asked: Sequence[_Settling]
    ) -> Sequence[int | Exception]:
        told: dict[str, int | Exception] = {}
        try:
            told.update(await self._send(statement, edge, actor, asked))
        except Unavailable as error:
            if error.unknown:
                for each in asked:
                    if self._unsure.get(_mark(each)) is None:
                        self._unsure.add(_mark(each), True)
            raise
        except Unstorable as error:
            if len(asked) == 1:
                return [error]
            # One of them has a value that the database refuses; the others are not to suffer for it.
            return [(await self._settle(statement, edge, actor, [each]))[0] for each in asked]
        if left := [each for each in asked if _mark(each) not in told]:
            try:
                told.update(await self._explain(edge, left))
            except Unavailable as error:
                told.update((_mark(each), error) for each in left)
        for each in asked:
            if not isinstance(told.get(_mark(each)), Unavailable):
                self._unsure.remove(_mark(each))
        return [told.get(_mark(each)) or _LeaseLost() for each in asked]

    async def _send(
        self, statement: str, edge: Transition, actor: str, asked: Sequence[_Settling]
    ) -> dict[str, int]:
        """Sends one statement, or two where the failure may be the last one; the states by key and fence."""
        table = self._table
        given: dict[str, Any] = {
            "actor": actor,
            **_columns([(as_key(each.key), each.held) for each in asked]),
            **table.taken(statement, edge, [each.given for each in asked]),
        }
        if edge.gives_up is None:
            rows = await table.run(statement, **given)
            return {f"{row[0]} {row[1]}": edge.target for row in rows}
        async with table.database.transaction() as connection:
            rows = await table.run_in(connection, statement, **given)
            moved = {str(row[0]): row[1] for row in rows}
            final = {as_key(each.key) for each in asked if each.final}
            over = await table.run_in(
                connection,
                f"give_up_{edge.name}",
                actor=actor,
                keys=[*moved],
                final=[key in final for key in moved],
            )
        given_up = {str(row[0]) for row in over}
        for _ in given_up:
            table.measures.given_up()
        end = table.lifecycle.transition(edge.gives_up.transition).target
        return {f"{key} {fence}": end if key in given_up else edge.target for key, fence in moved.items()}

    async def _explain(self, edge: Transition, left: Sequence[_Settling]) -> dict[str, int | Exception]:
        """Looks again at those that nothing was written for: locked by somebody, written before, or lost."""
        table, told = self._table, dict[str, int | Exception]()
        rows = {
            str(row[0]): row for row in await table.run("holds", keys=[as_key(each.key) for each in left])
        }
        possible = {edge.target}
        if edge.gives_up is not None:
            possible.add(table.lifecycle.transition(edge.gives_up.transition).target)
        for each in left:
            row = rows.get(each.key.lower())
            if row is None or row[3] != each.held.fence:
                continue
            state = table.rows.number[row[1]]
            if row[4] and row[2] == each.held.owner:
                told[_mark(each)] = Locked("somebody else has it")
            elif state in possible and self._unsure.get(_mark(each)):
                # The answer to an earlier attempt was lost, and that attempt had been carried out.
                told[_mark(each)] = state
        return told


class _LeaseLost(Exception):
    """Nothing was written, because the lease had ended or is another's."""


def _mark(asked: _Settling) -> str:
    return f"{asked.key.lower()} {asked.held.fence}"


def _columns(asked: Sequence[tuple[Any, Held]]) -> dict[str, list[Any]]:
    return {
        "keys": [key for key, _ in asked],
        "owners": [held.owner for _, held in asked],
        "fences": [held.fence for _, held in asked],
    }
