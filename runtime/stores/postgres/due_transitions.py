"""Due transitions: batches of changes that the clock drives, by any number of concurrent processes."""

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
"""Seconds for which an entity is skipped after a failed change."""

SWEEP_STUCK = Event("sweep_stuck", "ERROR", always=True)


class PostgresClocks(PostgresSteps[Record]):
    """The due changes of one kind of entity."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._skipped_until: dict[Any, float] = {}

    async def run_due(self, change: str, call: Call) -> int:
        clocks = self._admit_clock(change, call)
        await self._forget()
        done = 0
        for clock in clocks:
            done += await self._run_clock(clock, call, batch_size(self._rules, clock.due))
        return done

    async def _run_clock(self, clock: Clock, call: Call, most: int) -> int:
        """Apply a change to one bounded batch; return how many entities it changed."""
        skip = self._list_skipped()
        try:
            return await self._run_batch(clock, call, skip, most)
        except (Unstorable, GuardBreach):
            return await self._run_one_by_one(clock, call, skip, most)

    async def _run_batch(self, clock: Clock, call: Call, skip: list[Any], most: int) -> int:
        async with self._transaction() as connection:
            rows = await self._run_in(connection, clock.statement, skip=skip, most=most)
            if rows and not is_in_force(self._rules, clock.due, moment_of(rows[0]), self._opened):
                return 0
            outcomes = await self._drive(connection, clock, rows)
            self._audit_driven(clock, outcomes, call)
            return len(outcomes)

    async def _run_one_by_one(self, clock: Clock, call: Call, skip: list[Any], most: int) -> int:
        """Change the entities of a failed batch one by one; skip the failing ones for a while."""
        async with self._transaction() as connection:
            rows = await self._run_in(connection, clock.statement, skip=skip, most=most)
        done, now = 0, asyncio.get_running_loop().time()
        keys = [row[self._key_field] for row in rows]
        for key in keys:
            others = [*skip, *(each for each in keys if each != key)]
            try:
                done += await self._run_batch(clock, call, others, 1)
            except (Unstorable, GuardBreach) as error:
                self._skipped_until[key] = now + SET_ASIDE_S
                skip = [*skip, key]
                name = clock.change.name if clock.change else DELETION
                call.tell(
                    SWEEP_STUCK,
                    f"this {self._entity} cannot {name}; it is skipped for {SET_ASIDE_S:g} s: {error}",
                    **{self._key_field: str(key)},
                )
        return done

    def _list_skipped(self) -> list[Any]:
        now = asyncio.get_running_loop().time()
        self._skipped_until = {key: until for key, until in self._skipped_until.items() if until > now}
        return [*self._skipped_until]
