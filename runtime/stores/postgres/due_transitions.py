"""Due transitions: what the clock drives, some entities at a time, by any number of processes at once."""

from __future__ import annotations

import asyncio
from typing import Any

from runtime.call.context import Call
from runtime.model.system import Event
from runtime.stores.contract import DELETION, Record
from runtime.stores.postgres.context import moment_of
from runtime.stores.postgres.steps import PostgresSteps
from runtime.stores.semantics.clocks import batch_size, is_in_force
from runtime.stores.semantics.rules import Clock
from runtime.stores.store import GuardBreach, Unstorable

SET_ASIDE_S = 60.0
"""How long an entity is left alone that could not be changed."""

SWEEP_STUCK = Event("sweep_stuck", "ERROR", always=True)


class PostgresClocks(PostgresSteps[Record]):
    """Drives the due changes of one kind of entity."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._aside: dict[Any, float] = {}

    async def run_due(self, change: str, call: Call) -> int:
        clocks = self._admit_clock(change, call)
        await self._forget()
        done = 0
        for clock in clocks:
            done += await self._run_clock(clock, call, batch_size(self._rules, clock.due))
        return done

    async def _run_clock(self, clock: Clock, call: Call, most: int) -> int:
        """Make a change to one bounded batch; return to how many."""
        skip = self._set_aside()
        try:
            return await self._run_batch(clock, call, skip, most)
        except (Unstorable, GuardBreach):
            return await self._run_one_by_one(clock, call, skip, most)

    async def _run_batch(self, clock: Clock, call: Call, skip: list[Any], most: int) -> int:
        async with self._transaction() as connection:
            rows = await self._run_in(connection, clock.statement, skip=skip, most=most)
            if rows and not is_in_force(self._rules, clock.due, moment_of(rows[0]), self._opened):
                return 0
            taken = await self._drive(connection, clock, rows)
        self._audit_driven(clock, taken, call)
        return len(taken)

    async def _run_one_by_one(self, clock: Clock, call: Call, skip: list[Any], most: int) -> int:
        """Change the others where one stands in the way of a whole batch; that is set aside for a while."""
        async with self._transaction() as connection:
            rows = await self._run_in(connection, clock.statement, skip=skip, most=most)
        done, now = 0, asyncio.get_running_loop().time()
        keys = [row[self._key_field] for row in rows]
        for key in keys:
            others = [*skip, *(each for each in keys if each != key)]
            try:
                done += await self._run_batch(clock, call, others, 1)
            except (Unstorable, GuardBreach) as error:
                self._aside[key] = now + SET_ASIDE_S
                skip = [*skip, key]
                name = clock.change.name if clock.change else DELETION
                call.tell(
                    SWEEP_STUCK,
                    f"this {self._entity} cannot {name}; it is left for {SET_ASIDE_S:g} s: {error}",
                    **{self._key_field: str(key)},
                )
        return done

    def _set_aside(self) -> list[Any]:
        now = asyncio.get_running_loop().time()
        self._aside = {key: until for key, until in self._aside.items() if until > now}
        return [*self._aside]
