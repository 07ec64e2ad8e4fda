"""Transitions without a lease: together with others, and alone where somebody else has the row."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Generic

from runtime.model.lifecycles import Transition
from runtime.stores.batch import Batch
from runtime.stores.postgres.table import Table
from runtime.stores.store import Moved, Record

FEW = 10
"""So few moves wait for company; more of them make a statement of their own."""
PATIENT = 3
"""How many wait for another transaction at a time: the connections are for the others too."""

_Move = tuple[str, Mapping[str, str]]
"""A key, and what was given with it."""


class Moving(Generic[Record]):
    """Moves the entities of one kind."""

    def __init__(self, table: Table[Record]) -> None:
        self._table = table
        self._together: dict[tuple[str, str], Batch[_Move, Moved | None]] = {}
        self._alone: dict[tuple[str, str], Batch[_Move, Moved | None]] = {}

    async def one(self, edge: Transition, key: str, given: Mapping[str, str], actor: str) -> Moved | None:
        """Moves an entity; None if there is none."""
        return await self._table.answer(self._one(edge, (key, given), actor))

    async def all(self, edge: Transition, keys: Sequence[str], actor: str) -> list[str]:
        """Moves many; the keys of those that it applied to."""
        known = [*dict.fromkeys(keys)]
        if len(known) > FEW:
            work = self._send(self._patient(edge), edge, actor, [(key, {}) for key in known])
            return await self._table.answer(work)
        moved = await asyncio.gather(*(self.one(edge, key, {}, actor) for key in known))
        return [key for key, each in zip(known, moved, strict=True) if each is not None and each.applied]

    async def states(self, keys: Sequence[str]) -> dict[str, int]:
        """The states of those that are there."""
        if not keys:
            return {}
        rows = await self._table.run("states", keys=list(keys))
        return {str(row[0]): self._table.rows.number[row[1]] for row in rows}

    async def _one(self, edge: Transition, asked: _Move, actor: str) -> Moved | None:
        together = self._together.get((edge.name, actor))
        if together is None:
            run = self._mover(f"move_{edge.name}_shared", edge, actor)
            together = self._together[edge.name, actor] = Batch(run, concurrency=2)
        moved = await together(asked)
        if moved is None or moved.applied or moved.state != edge.source:
            return moved
        # It is where it should be and did not move: somebody had it locked. That is waited for alone.
        alone = self._alone.get((edge.name, actor))
        if alone is None:
            run = self._mover(self._patient(edge), edge, actor)
            alone = self._alone[edge.name, actor] = Batch(run, max_items=1, concurrency=PATIENT)
        return await alone(asked)

    def _patient(self, edge: Transition) -> str:
        """The statement that waits for rows that others have locked."""
        relaxed = f"move_{edge.name}_relaxed"
        return relaxed if relaxed in self._table.statements else f"move_{edge.name}"

    def _mover(self, statement: str, edge: Transition, actor: str) -> Any:
        async def move(asked: Sequence[_Move]) -> Sequence[Moved | None]:
            first = {ask[0]: ask for ask in reversed(asked)}
            moved = set(await self._send(statement, edge, actor, [*first.values()]))
            left = await self.states([key for key in first if key not in moved])
            states = {**dict.fromkeys(moved, edge.target), **left}
            return [
                Moved(ask is first[ask[0]] and ask[0] in moved, states[ask[0]]) if ask[0] in states else None
                for ask in asked
            ]

        return move

    async def _send(self, statement: str, edge: Transition, actor: str, asked: Sequence[_Move]) -> list[str]:
        # In one order everywhere, so that two who move the same ones do not wait for each other in a circle.
        ordered = sorted(asked, key=lambda ask: ask[0])
        taken = self._table.taken(statement, edge, [given for _, given in ordered])
        rows = await self._table.run(statement, actor=actor, keys=[key for key, _ in ordered], **taken)
        return [str(row[0]) for row in rows]
