"""Edges that the clock drives: some entities at a time, by any number of processes at once."""

from __future__ import annotations

import asyncio
from typing import Any, Generic

from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Transition
from runtime.model.system import Event
from runtime.stores.postgres.table import Table
from runtime.stores.store import GuardBreach, Record, Unstorable

MOST = 500
"""How many entities one statement moves: enough to keep up, few enough that nobody waits long for a row."""
SET_ASIDE_S = 60.0
"""How long an entity is left alone that could not be moved."""

SWEEP_STUCK = Event("sweep_stuck", "ERROR", always=True)


class Sweeping(Generic[Record]):
    """Drives the due edges of one kind of entity."""

    def __init__(self, table: Table[Record]) -> None:
        self._table = table
        self._aside: dict[Any, float] = {}

    async def sweep(self, edge: Transition, call: Call) -> int:
        """One bounded batch; how many moved."""
        table = self._table
        if edge.due is None:
            raise GuardBreach(f"{edge.name} of a {table.lifecycle.entity} is not driven by the clock")
        require_edge(table.roles, table.lifecycle, call.caller, call.method, edge.source, edge.target)
        if call.caller != edge.due.by:
            raise table.denied(call, f"only {edge.due.by} does so by the clock")
        return await table.answer(self._sweep(edge, call))

    async def _sweep(self, edge: Transition, call: Call) -> int:
        skip = self._set_aside()
        try:
            return await self._batch(edge, call, skip, MOST)
        except (Unstorable, GuardBreach):
            return await self._one_by_one(edge, call, skip)

    async def _one_by_one(self, edge: Transition, call: Call, skip: list[Any]) -> int:
        """Something stands in the way of a whole batch. It is set aside for a while, and the others move."""
        rows = await self._table.run(f"due_{edge.name}", skip=skip, most=MOST)
        moved = 0
        now = asyncio.get_running_loop().time()
        keys = [row[0] for row in rows]
        for key in keys:
            others = [*skip, *(each for each in keys if each != key)]
            try:
                moved += await self._batch(edge, call, others, 1)
            except (Unstorable, GuardBreach) as error:
                self._aside[key] = now + SET_ASIDE_S
                skip = [*skip, key]
                lifecycle = self._table.lifecycle
                call.tell(
                    SWEEP_STUCK,
                    f"this {lifecycle.entity} cannot {edge.name}; it is left for {SET_ASIDE_S:g} s: {error}",
                    **{lifecycle.key: str(key)},
                )
        return moved

    async def _batch(self, edge: Transition, call: Call, skip: list[Any], most: int) -> int:
        table, moved, ended = self._table, list[Any](), list[Any]()
        end = table.lifecycle.transition(edge.gives_up.transition) if edge.gives_up else None
        given = {"actor": call.caller, "skip": skip, "most": most}
        if end is None:
            moved = [row[0] for row in await table.run(f"sweep_{edge.name}", **given)]
        elif end.source == edge.source:
            # Whatever is over the limit ends instead of going on.
            ended = [row[0] for row in await table.run(f"sweep_{edge.name}_giving_up", **given)]
            moved = [row[0] for row in await table.run(f"sweep_{edge.name}", **given)]
        else:
            async with table.database.transaction() as connection:
                moved = [row[0] for row in await table.run_in(connection, f"sweep_{edge.name}", **given)]
                if moved:
                    over = await table.run_in(
                        connection,
                        f"give_up_{edge.name}",
                        actor=call.caller,
                        keys=moved,
                        final=[False] * len(moved),
                    )
                    ended = [row[0] for row in over]
        self._tell(edge, end, moved, ended, call)
        return len(moved) if end is None or end.source != edge.source else len(moved) + len(ended)

    def _tell(
        self, edge: Transition, end: Transition | None, moved: list[Any], ended: list[Any], call: Call
    ) -> None:
        table, lease = self._table, self._table.lifecycle.lease
        for key in moved:
            table.applied(call, edge, str(key))
            if lease is not None and edge.source == lease.state:
                table.measures.lease_expired()
        for key in ended:
            table.measures.given_up()
            if end is not None:
                table.applied(call, end, str(key))

    def _set_aside(self) -> list[Any]:
        now = asyncio.get_running_loop().time()
        self._aside = {key: until for key, until in self._aside.items() if until > now}
        return [*self._aside]
