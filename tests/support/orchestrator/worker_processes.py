"""Workers with job functions for tests, their jobs, and every version that a row of them had."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from generated.orchestrator.lifecycle import JOB
from generated.orchestrator.records import JobRecord
from generated.orchestrator.system import SYSTEM
from runtime.call import Call
from runtime.node.settings import read
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.postgres import Database, PostgresStore, context
from runtime.stores.postgres import database as databases
from runtime.stores.postgres.schema.migrations import migrate
from runtime.world import RealWorld
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import PATIENCE, Node, Stack, wait_until
from tests.support.orchestrator.stage import BEGUN, VARIABLE, Run, Stage

STAGED = "tests.support.orchestrator.staged_node"
ENDS = ("SUCCESS", "DEAD")

BRISK = {
    "WORKER_CONCURRENCY": "1",
    "POLL_INTERVAL_MS": "100",
    "LEASE_SECONDS": "60",
    "LEASE_RENEW_SECONDS": "0.3",
    "REAPER_INTERVAL_SECONDS": "0.1",
    "SCHEDULER_INTERVAL_SECONDS": "0.1",
    "BACKOFF_BASE_SECONDS": "0.05",
    "BACKOFF_MAX_SECONDS": "0.2",
    "SHUTDOWN_GRACE_SECONDS": "5",
}
"""Settings under which due transitions happen soon, and a lease expires only where a test ends it."""

LONG_LEASES = {"LEASE_SECONDS": "30", "LEASE_RENEW_SECONDS": "10"}
"""Ordinary leases, which are hardly ever renewed while a test lasts."""

BRIEF = {"LEASE_SECONDS": "2.5", "MAX_RETRIES": "1000"}
"""Leases that expire while a test waits. A busy machine loses some too, so that no test may count them."""

_WATCH = """
CREATE TABLE versions (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id uuid, state text, retry_count integer, attempt integer, lease_owner text, lease_expiry timestamptz,
    next_attempt_at timestamptz, updated_at timestamptz, result jsonb, last_error text,
    txid xid8 DEFAULT pg_current_xact_id(), actor text DEFAULT current_setting('app.actor', true)
);
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO versions (job_id, state, retry_count, attempt, lease_owner, lease_expiry,
        next_attempt_at, updated_at, result, last_error)
    VALUES (NEW.job_id, NEW.state, NEW.retry_count, NEW.attempt, NEW.lease_owner, NEW.lease_expiry,
        NEW.next_attempt_at, NEW.updated_at, NEW.result, NEW.last_error);
    RETURN NULL;
END $$;
CREATE TRIGGER watch AFTER INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION watch();
"""


class Crew(Stack):
    """One database with a stage, any number of workers, and jobs that tests insert."""

    def __init__(self, database: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(database, folder)
        self.stage = Stage(folder)
        asyncio.run(_prepare(database))
        self.sql.run(_WATCH)

    def make_worker(self, name: str = "", **settings: str) -> Node:
        """A worker with the functions of the stage, not started yet."""
        named = {"WORKER_ID": name} if name else {}
        variables = {VARIABLE: str(self.stage.folder), **BRISK, **named, **settings}
        return self.node("worker", program=STAGED, **variables)

    def start_workers(self, *names: str, **settings: str) -> list[Node]:
        """Workers that are ready, started at the same time."""
        return start_all(self.make_worker(name, **settings) for name in names)

    def insert_jobs(
        self, job_type: str = "act", /, *, count: int = 1, state: str = "QUEUED", **payload: object
    ) -> list[str]:
        """Insert equal jobs, in the order of their creation; return their ids."""
        return self._insert(job_type, payload, count, state)

    def insert_job(self, job_type: str = "act", /, **payload: object) -> str:
        """Insert one queued job."""
        return self._insert(job_type, payload, 1, "QUEUED")[0]

    def _insert(self, job_type: str, payload: Mapping[str, object], count: int, state: str) -> list[str]:
        ids = [uuid.uuid4() for _ in range(count)]
        self.sql.rows(
            "INSERT INTO jobs (job_id, job_type, payload, idempotency_key, created_at)"
            " SELECT id, $2, $3::jsonb, id::text, clock_timestamp()"
            " FROM unnest($1::uuid[]) WITH ORDINALITY AS given (id, place) ORDER BY place",
            ids,
            job_type,
            payload,
        )
        if state == "QUEUED":
            self.sql.rows("UPDATE jobs SET state = 'QUEUED' WHERE job_id = ANY($1::uuid[])", ids)
        return [str(each) for each in ids]

    def states(self, jobs: Collection[str] = ()) -> Counter[str]:
        """How many of some jobs, or of all, are in each state."""
        text = "SELECT state, count(*) FROM jobs WHERE $1 OR job_id = ANY($2::uuid[]) GROUP BY state"
        return Counter({row["state"]: row["count"] for row in self.sql.rows(text, not jobs, list(jobs))})

    def wait_for_state(self, job: str, *states: str) -> dict[str, Any]:
        """The row of a job once it is in one of some states."""
        return wait_until(
            lambda: self.sql.job(job), f"it is {' or '.join(states)}", lambda row: row["state"] in states
        )

    def wait_until_ended(self, jobs: Collection[str] = ()) -> Counter[str]:
        """The states of jobs, or of all, once every one of them has ended."""
        return wait_until(lambda: self.states(jobs), "all have ended", lambda seen: set(seen) <= set(ENDS))

    def wait_for_run(self, job: str, attempt: int = 1) -> Run:
        """The run of a job with this number once it has begun."""

        def look() -> list[Run]:
            return [run for run in self.stage.runs(BEGUN, [job]) if run.attempt == attempt]

        return wait_until(look, f"attempt {attempt} of {job} has begun")[0]

    def versions(self, job: str) -> list[dict[str, Any]]:
        """Every version that the row of a job had, oldest first."""
        return self.sql.rows("SELECT * FROM versions WHERE job_id = $1 ORDER BY number", uuid.UUID(job))

    def path(self, job: str) -> list[str]:
        """The states that a job went through."""
        return [row["to_state"] for row in self.sql.history(job)]

    def transition(self, job: str, *states: str, wait: str = "0 s") -> None:
        """Bring a job through states in one transaction, so that no worker sees the states in between."""
        steps = []
        for state in states:
            lease = "'nobody', clock_timestamp() + interval '1 hour'" if state == "RUNNING" else "NULL, NULL"
            until = f"clock_timestamp() + interval '{wait}'" if state == "RETRY" else "NULL"
            steps.append(
                f"UPDATE jobs SET state = '{state}', (lease_owner, lease_expiry) = ROW({lease}),"
                f" next_attempt_at = {until}, retry_count = retry_count + {int(state == 'RETRY')},"
                f" attempt = attempt + {int(state == 'RUNNING')} WHERE job_id = '{job}'"
            )
        self.sql.run(";".join(steps))

    @staticmethod
    def session(url: str) -> Sql:
        """One more session, for a concurrent transaction."""
        return Sql(url)

    def reconnect(self) -> None:
        """Open our session once more, after the server was down."""
        self.sql.close()
        self.sql = Sql(self.database)

    def expire(self, job: str) -> None:
        """End the lease of a job, however long it was meant to be."""
        text = "UPDATE jobs SET lease_expiry = clock_timestamp() - interval '1 second' WHERE job_id = $1"
        self.sql.rows(text, uuid.UUID(job))


def start_all(nodes: Iterable[Node]) -> list[Node]:
    """Start all of them at once and wait for each."""
    begun = [node.begin() for node in nodes]
    for node in begun:
        node.wait()
    return begun


def wait_for_exit(node: Node) -> int:
    """Wait until a node has ended by itself; return its exit code."""
    wait_until(lambda: not node.running, f"{node.name} has ended")
    return node.stop()


def wait_for_lines(node: Node, event: str, **fields: object) -> list[dict[str, Any]]:
    """Lines of a node's log about an event, once there is one that has these fields."""

    def look() -> list[dict[str, Any]]:
        return [line for line in lines(node, event) if fields.items() <= line.items()]

    return wait_until(look, f"{node.name} logs {event} {fields}")


def lines(node: Node, event: str) -> list[dict[str, Any]]:
    """Lines of a node's log about an event, as far as it is written.

    Ordinary lines are written some milliseconds late: to expect one, use `wait_for_lines`; to expect
    that there is none, wait first for one that comes later.
    """
    return [line for line in node.lines() if line["event"] == event]


def read_metric(node: Node, name: str, **labels: str) -> float:
    """The value of one of a node's metrics, summed over all series that have these labels.

    A node counts a transition when the database has confirmed it, which others may see before.
    """
    text = node.http.get("/metrics").text
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.partition("{")[0].partition(" ")[0] == name and all(each in line for each in wanted)
    )


def wait_for_metric(node: Node, wanted: float, name: str, **labels: str) -> None:
    """Wait until one of a node's metrics has a value."""
    description = f"{node.name} counts {wanted} {name} {labels}"
    wait_until(lambda: read_metric(node, name, **labels), description, lambda seen: seen == wanted)


def group_by_job(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows by their job."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row["job_id"]), []).append(row)
    return found


@asynccontextmanager
async def open_store(url: str, **settings: str) -> AsyncIterator[PostgresStore[JobRecord]]:
    """The store itself, with connections of its own, as a worker process has it."""
    names = SYSTEM.deployments["local"].nodes["worker"].variables
    values = read([SYSTEM.variables[name] for name in names], (), {**BRISK, "DATABASE_URL": url, **settings})
    with extended_timeouts():
        database = Database(url)
        try:
            yield PostgresStore(SYSTEM, JOB, JobRecord, database, RealWorld(), Metrics(), values)
        finally:
            await database.close()


@contextmanager
def extended_timeouts() -> Iterator[None]:
    """Let stores of this process wait for connections and statements for as long as a busy machine needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(databases, "WAIT_S", PATIENCE)
        patch.setattr(context, "STATEMENT_S", PATIENCE)
        yield


def make_call(component: str) -> Call:
    """A call in the background work of a component."""
    world = RealWorld()
    return Call(world=world, log=Log(component, "ERROR", world), caller=component)


async def _prepare(url: str) -> None:
    with extended_timeouts():
        database = Database(url)
        await migrate(database, SYSTEM.name)
        await database.close()
