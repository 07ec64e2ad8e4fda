"""A fresh database with the schema of a system whose entities have everything: lease, waits and give-ups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import asyncpg

from generated.orchestrator.lifecycle import JOB
from generated.orchestrator.messages import CREATED, DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from generated.orchestrator.records import JobRecord
from generated.orchestrator.system import SYSTEM
from runtime.call import Call
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.postgres import Database, PostgresStore
from runtime.stores.store import Held
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines

VALUES = {
    "LEASE_SECONDS": 30.0,
    "BACKOFF_BASE_SECONDS": 2.0,
    "BACKOFF_MAX_SECONDS": 300.0,
    "MAX_RETRIES": 3,
    "CREATED_GRACE_SECONDS": 60.0,
}
STATES = {name: number for number, name in JOB.states.items()}
WORLD = RealWorld()


def unguarded(text: str) -> str:
    """A statement as the owner of a table can have it, who switches its guards off for that."""
    return f"SET session_replication_role = replica; {text}; RESET session_replication_role"


class Kit:
    """A store, a connection that knows nothing of it, and what happened in the log."""

    def __init__(self, url: str, values: Mapping[str, Any] | None = None) -> None:
        self.url = url
        self.lines = Lines()
        self.log = Log("test", "DEBUG", WORLD, self.lines)
        self.metrics = Metrics()
        self.values = {**VALUES, **(values or {})}
        self.database = Database(url)
        self.store: PostgresStore[JobRecord] = PostgresStore(
            SYSTEM, JOB, JobRecord, self.database, self.metrics, self.values
        )
        self._sql: list[asyncpg.Connection[Any]] = []

    async def open(self) -> Kit:
        await self.store.open(self.log)
        self.sql = await self.connect()
        return self

    async def close(self) -> None:
        for each in self._sql:
            each.terminate()
        await self.store.close()
        await self.database.close()
        await asyncio.sleep(0)

    async def connect(self, actor: str | None = None) -> asyncpg.Connection[Any]:
        """A connection as a person or another program has it."""
        found: asyncpg.Connection[Any] = await asyncpg.connect(self.url)
        self._sql.append(found)
        if actor is not None:
            await found.execute("SELECT set_config('app.actor', $1, false)", actor)
        return found

    def call(self, actor: str) -> Call:
        return Call(world=WORLD, log=self.log, caller=actor)

    def intent(self, key: str | None = None, **fields: Any) -> JobRecord:
        given = {"job_type": "echo", "payload": "{}", **fields}
        return JobRecord(job_id=WORLD.new_id(), idempotency_key=key or WORLD.new_id(), **given)

    async def add(self, state: int = CREATED, **fields: Any) -> JobRecord:
        """A job that went the legal way into a state; in RUNNING it is held by `w`."""
        made = await self.store.create(self.intent(**fields), self.call("api"))
        key = made.job_id
        if state != CREATED:
            await self.store.move(key, CREATED, QUEUED, self.call("api"))
        if state in (RUNNING, SUCCESS, RETRY, DEAD):
            await self.sql.execute(
                "UPDATE jobs SET state = 'RUNNING', lease_owner = 'w', attempt = attempt + 1,"
                " lease_expiry = clock_timestamp() + interval '1 hour' WHERE job_id = $1",
                key,
            )
        if state in (SUCCESS, RETRY, DEAD):
            target = SUCCESS if state == SUCCESS else RETRY
            await self.store.settle(key, target, Held("w", 1), self.call("worker"), state == DEAD)
        return await self.job(key)

    async def job(self, key: str) -> JobRecord:
        """What the store says of a job that is there."""
        found = await self.store.get(key)
        assert found is not None
        return found

    async def row(self, key: str) -> dict[str, Any]:
        """What the table says of it."""
        return dict(await self.sql.fetchrow("SELECT * FROM jobs WHERE job_id = $1", key) or {})

    async def edges(self, key: str) -> list[tuple[str, str, str]]:
        """Its history as (from, to, actor)."""
        return [(each.source, each.target, each.actor) for each in await self.store.history(key)]
