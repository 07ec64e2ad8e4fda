"""Writes what came of leased entities, and finds out why something was not written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple

from runtime.model.lifecycles import Transition
from runtime.stores.bounded import BoundedMap
from runtime.stores.postgres.database import Locked, Unavailable
from runtime.stores.postgres.rows import WAITED, as_key
from runtime.stores.postgres.table import Table
from runtime.stores.store import Busy, Held, Record, Settling, Unstorable

_REMEMBERED = 10_000
_Sent = tuple[Any, int, int]
"""A key as the database has it, its fence, and the state that it ended in."""


class Lost(Exception):
    """Nothing was written, because the lease had ended or is another's."""


class Written(NamedTuple):
    """What came of each, in their order, and the rows that were taken in the same step, if it was made."""

    outcomes: Sequence[int | Exception]
    taken: Sequence[Any] | None = None


class Settlement(Generic[Record]):
    """The results of one kind of entity. Those of one edge are written together."""

    def __init__(self, table: Table[Record], fence: str) -> None:
        self._table = table
        self._key, self._fence = table.lifecycle.key, fence
        self._unsure: BoundedMap[bool] = BoundedMap(_REMEMBERED)

    async def write(
        self, edge: Transition, actor: str, asked: Sequence[Settling], *, alone: bool = False
    ) -> Sequence[int | Exception]:
        """Writes results; one that somebody else has is left, unless it is written alone and so waits."""
        statement = f"settle_{edge.name}_alone" if alone else f"settle_{edge.name}"
        return (await self._written(statement, edge, actor, asked)).outcomes

    async def trade(self, edge: Transition, actor: str, asked: Sequence[Settling], **taking: Any) -> Written:
        """Writes results and takes others in the same statement."""
        return await self._written(f"exchange_{edge.name}", edge, actor, asked, **taking)

    async def _written(
        self, statement: str, edge: Transition, actor: str, asked: Sequence[Settling], **taking: Any
    ) -> Written:
        try:
            sent, taken = await self._send(statement, edge, actor, asked, **taking)
        except Locked:
            # Somebody has one of them; the others do not wait for that.
            return Written(await self.write(edge, actor, asked))
        except Unavailable as error:
            if error.unknown:
                self._doubt(asked)
            return Written([error] * len(asked))
        except Unstorable as error:
            if len(asked) == 1:
                return Written([error])
            # One of them has a value that the database refuses; the others are not to suffer for it.
            return Written([(await self.write(edge, actor, [each]))[0] for each in asked])
        outcomes = await self._outcomes(edge, asked, sent)
        if len(self._unsure):
            for each, outcome in zip(asked, outcomes, strict=True):
                if not isinstance(outcome, Unavailable | Busy):
                    self._unsure.remove(_mark(each))
        return Written(outcomes, taken)

    async def _outcomes(
        self, edge: Transition, asked: Sequence[Settling], sent: Sequence[_Sent]
    ) -> Sequence[int | Exception]:
        """What came of each; those that nothing was written for are looked at again."""
        if len(sent) == len(asked) and edge.gives_up is None:
            return [edge.target] * len(asked)
        told: dict[str, int | Exception] = {f"{key} {fence}": state for key, fence, state in sent}
        if left := [each for each in asked if _mark(each) not in told]:
            try:
                told |= await self._explained(edge, left)
            except Unavailable as error:
                told |= {_mark(each): error for each in left}
        return [told.get(_mark(each)) or Lost() for each in asked]

    async def _send(
        self, statement: str, edge: Transition, actor: str, asked: Sequence[Settling], **taking: Any
    ) -> tuple[Sequence[_Sent], Sequence[Any]]:
        """Sends one statement, or two where the failure may be the last one."""
        table = self._table
        given: dict[str, Any] = {
            "actor": actor,
            **columns((each.key, each.held) for each in asked),
            **table.taken(statement, edge, [each.given for each in asked]),
            **taking,
        }
        if edge.gives_up is None:
            rows = await table.run(statement, **given)
            # What was taken is known by how long it had waited; what was settled comes first.
            count = sum(row[WAITED] is None for row in rows) if taking else len(rows)
            return [(row[self._key], row[self._fence], edge.target) for row in rows[:count]], rows[count:]
        async with table.database.transaction() as connection:
            rows = await table.run_in(connection, statement, **given)
            final = {(as_key(each.key), each.held.fence) for each in asked if each.final}
            over = await table.run_in(
                connection,
                f"give_up_{edge.name}",
                actor=actor,
                keys=[row[0] for row in rows],
                final=[(str(row[0]), row[1]) in final for row in rows],
            )
        given_up = {row[0] for row in over}
        for _ in given_up:
            table.measures.given_up()
        end = table.lifecycle.transition(edge.gives_up.transition).target
        return [(row[0], row[1], end if row[0] in given_up else edge.target) for row in rows], ()

    async def _explained(self, edge: Transition, left: Sequence[Settling]) -> dict[str, int | Exception]:
        """Looks again at those that nothing was written for: locked by somebody, written before, or lost."""
        table, told = self._table, dict[str, int | Exception]()
        rows = {
            str(row[0]): row for row in await table.run("holds", keys=[as_key(each.key) for each in left])
        }
        possible = {edge.target}
        if edge.gives_up is not None:
            possible.add(table.lifecycle.transition(edge.gives_up.transition).target)
        for each in left:
            row = rows.get(as_key(each.key))
            if row is None or row[3] != each.held.fence:
                continue
            state = table.rows.number[row[1]]
            if row[4] and row[2] == each.held.owner:
                told[_mark(each)] = Busy("somebody else has it")
            elif state in possible and self._unsure.get(_mark(each)):
                # The answer to an earlier attempt was lost, and that attempt had been carried out.
                told[_mark(each)] = state
        return told

    def _doubt(self, asked: Sequence[Settling]) -> None:
        """Nobody knows whether these were written; that is found out when they are written again."""
        for each in asked:
            if self._unsure.get(_mark(each)) is None:
                self._unsure.add(_mark(each), True)


def columns(held: Iterable[tuple[str, Held]]) -> dict[str, list[Any]]:
    """Keys and leases as a statement takes them."""
    keys, owners, fences = list[str](), list[str](), list[int]()
    for key, (owner, fence) in held:
        keys.append(as_key(key))
        owners.append(owner)
        fences.append(fence)
    return {"keys": keys, "owners": owners, "fences": fences}


def _mark(asked: Settling) -> str:
    return f"{as_key(asked.key)} {asked.held.fence}"
