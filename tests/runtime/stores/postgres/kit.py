"""A fresh database with the schema of a system whose entities have everything: lease, waits and give-ups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from generated.orchestrator.lifecycle import JOB
from generated.orchestrator.messages import CREATED, DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from generated.orchestrator.records import JobRecord
from generated.orchestrator.system import SYSTEM
from runtime.call import Call
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof, LeaseSettlement, Transitioned
from runtime.stores.postgres import Database, PostgresStore
from runtime.stores.postgres.statements import Statement
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


def arguments(statement: Statement, given: Mapping[str, Any]) -> list[Any]:
    """What a statement takes, in order; None where nothing is given."""
    return [{**given, **VALUES}.get(name) for name in statement.takes]


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
            SYSTEM, JOB, JobRecord, self.database, WORLD, self.metrics, self.values
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
        made = (await self.store.create(self.intent(**fields), self.call("api"))).record
        key = made.job_id
        if state != CREATED:
            await self.move(key, CREATED, QUEUED, self.call("api"))
        if state in (RUNNING, SUCCESS, RETRY, DEAD):
            await self.sql.execute(
                "UPDATE jobs SET state = 'RUNNING', lease_owner = 'w', attempt = attempt + 1,"
                " lease_expiry = clock_timestamp() + interval '1 hour' WHERE job_id = $1",
                key,
            )
        if state in (SUCCESS, RETRY, DEAD):
            target = SUCCESS if state == SUCCESS else RETRY
            await self.settle(key, target, LeaseProof("w", 1), self.call("worker"), is_final=state == DEAD)
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
        return [
            (JOB.states[each.source] if each.source else "", JOB.states[each.target], each.actor)
            for each in await self.store.history(key)
        ]

    # What tests ask by states and one at a time.

    async def move(self, key: str, source: int, target: int, call: Call) -> Transitioned:
        """Take the edge between two states."""
        return await self.store.transition(key, self.store.edge_between(source, target, call).name, call)

    async def move_all(self, keys: Sequence[str], source: int, target: int, call: Call) -> int:
        """Take it for many at the same moment; return to how many it applied."""
        moved = await asyncio.gather(*(self.move(key, source, target, call) for key in keys))
        return sum(each.applied for each in moved)

    async def claim(self, owner: str, call: Call) -> JobRecord | None:
        """Claim one."""
        claimed = await self.store.claim(owner, 1, call)
        return claimed[0] if claimed else None

    async def settle(
        self,
        key: str,
        target: int,
        lease: LeaseProof,
        call: Call,
        *,
        is_final: bool = False,
        edge: str = "",
        **given: Any,
    ) -> int:
        """Leave the lease by the edge to a state."""
        asked = settlement(key, lease, target, given, is_final=is_final, edge=edge)
        return await self.store.settle(asked, call)

    async def renew(self, key: str, lease: LeaseProof) -> bool:
        """Renew one; whether it goes on."""
        (renewed,) = await self.store.renew([(key, lease)])
        return renewed is not None

    async def create_or_find(self, record: JobRecord, call: Call) -> tuple[JobRecord, bool]:
        """Create one; what was created or found, and whether it is new."""
        return (await self.store.create(record, call))[:2]

    async def create_or_find_all(
        self, records: Sequence[JobRecord], call: Call, compare: Any = None
    ) -> list[tuple[JobRecord, bool]]:
        """The same for many."""
        return [each[:2] for each in await self.store.create_many(records, call, compare=compare)]


def settlement(
    key: str,
    lease: LeaseProof,
    target: int,
    given: Mapping[str, Any] | None = None,
    *,
    is_final: bool = False,
    edge: str = "",
) -> LeaseSettlement:
    """The settlement by the edge from RUNNING to a state, or by a named one."""
    name = edge or JOB.edges[RUNNING, target].name
    return LeaseSettlement(key, lease, name, given or {}, is_final)
