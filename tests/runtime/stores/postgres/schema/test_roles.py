"""What the role of the service can do in a database that another role owns: its work, and nothing else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from generated.orchestrator.messages import CREATED, DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.stores.contract import LeaseProof
from runtime.stores.postgres import Database
from runtime.stores.postgres.database import PostgresUnavailable
from runtime.stores.postgres.schema.migrations import MigrationError, list_migrations, migrate
from runtime.stores.postgres.schema.roles import prepare
from runtime.stores.postgres.statements import load_statements
from tests.runtime.stores.postgres.kit import Kit, settlement
from tests.support.eventually import eventually

ROOT = Path(__file__).parents[5]
SYSTEM = "orchestrator"
ACTORS = ("", "api", "worker", "reaper", "scheduler", "operator", "client")
NEVER = ("idempotency_key = 'other'", "payload = '[]'", "job_type = 'other'", "created_at = '2001-01-01Z'")
REWRITING = (
    "UPDATE job_transitions SET actor = 'me'",
    "DELETE FROM job_transitions",
    "TRUNCATE job_transitions",
    "TRUNCATE jobs",
    "TRUNCATE jobs, job_transitions",
)
FORGING = (
    "INSERT INTO job_transitions (job_id, to_state, actor, fence, at)"
    " SELECT job_id, 'SUCCESS', 'worker', 1, clock_timestamp() FROM jobs",
    "ALTER TABLE jobs DISABLE TRIGGER ALL",
    "DROP TRIGGER jobs_1_keep ON jobs",
    "SET session_replication_role = replica",
    "CREATE OR REPLACE FUNCTION jobs_keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "UPDATE charter_migrations SET digest = ''",
    "DROP TABLE jobs",
)


@pytest.fixture
async def service(server: EmbeddedPostgres, fresh_url: str) -> AsyncIterator[Kit]:
    """A store of the service's role on a database that the owner has prepared."""
    url = server.service_url_of(fresh_url.rpartition("/")[2])
    assert await prepare(fresh_url, url, SYSTEM) == [each.name for each in list_migrations(SYSTEM)]
    kit = await Kit(url).open()
    yield kit
    await kit.close()


@pytest.fixture(params=["service", "alone"])
async def either(
    request: pytest.FixtureRequest, server: EmbeddedPostgres, fresh_url: str
) -> AsyncIterator[tuple[Kit, bool]]:
    """A store of the service's role, or of one that does all, as where a deployment names one role only."""
    url, is_service = fresh_url, request.param == "service"
    if is_service:
        url = server.service_url_of(fresh_url.rpartition("/")[2])
        await prepare(fresh_url, url, SYSTEM)
    kit = await Kit(url).open()
    yield kit, is_service
    await kit.close()


async def test_the_service_does_its_work(service: Kit) -> None:
    """Every state is reached, by every statement that the store has."""
    for state in (CREATED, QUEUED, RUNNING, SUCCESS, RETRY, DEAD):
        assert (await service.add(state)).state == state
    assert await service.claim("v", service.call("worker")) is not None
    queued = await service.add(QUEUED)
    (taken,), _ = await service.store.exchange("v", [], 1, service.call("worker"))
    assert taken.job_id == queued.job_id
    settling = settlement(taken.job_id, LeaseProof("v", taken.attempt), SUCCESS, {"result": None})
    _, outcomes = await service.store.exchange("v", [settling], 0, service.call("worker"))
    assert outcomes == [SUCCESS]
    statement = load_statements("orchestrator", "job")["create_accept"]
    given = service.intent()
    row = ("api", [given.job_id], ["echo"], ["{}"], [given.idempotency_key])
    assert await service.sql.fetchval(statement.text, *row) is None
    assert (await service.job(given.job_id)).state == QUEUED
    assert len((await service.store.find(states=[SUCCESS])).records) == 2
    assert await service.store.health() is None


async def test_what_never_changes_never_changes(either: tuple[Kit, bool]) -> None:
    """Whatever a session of the service says of itself, and though its role may own the tables."""
    kit, is_service = either
    key = (await kit.add(QUEUED)).job_id
    before = await kit.row(key)
    for actor in ACTORS:
        session = await kit.connect(actor)
        for change in NEVER:
            with pytest.raises(asyncpg.PostgresError) as caught:
                await session.execute(f"UPDATE jobs SET {change} WHERE job_id = $1", key)
            assert caught.value.sqlstate == ("42501" if is_service else "CH003"), (actor, change)
            with pytest.raises(asyncpg.PostgresError):
                await session.execute(f"UPDATE jobs SET state = 'RUNNING', {change} WHERE job_id = $1", key)
    assert await kit.row(key) == before


async def test_the_history_is_only_added_to(either: tuple[Kit, bool]) -> None:
    kit, is_service = either
    key = (await kit.add(SUCCESS)).job_id
    before = await kit.sql.fetch("SELECT * FROM job_transitions ORDER BY number")
    for actor in ACTORS:
        session = await kit.connect(actor)
        for change in (*REWRITING, *(FORGING if is_service else ())):
            with pytest.raises(asyncpg.PostgresError):
                await session.execute(change)
    assert await kit.sql.fetch("SELECT * FROM job_transitions ORDER BY number") == before
    assert (await kit.job(key)).state == SUCCESS


@pytest.mark.req("ORC-049")
async def test_rows_are_deleted_as_the_lifecycle_says(either: tuple[Kit, bool]) -> None:
    """What waits stays; what has ended goes by the operator, and by its way where another role owns it."""
    kit, is_service = either
    waiting, ended = (await kit.add(QUEUED)).job_id, (await kit.add(SUCCESS)).job_id
    by_function = "SELECT count(*) FROM jobs_remove($1, $2, $3)"
    for actor in ACTORS:
        session = await kit.connect(actor)
        for key, state in ((waiting, "QUEUED"), (ended, "SUCCESS")):
            if key == waiting or is_service or actor != "operator":
                with pytest.raises(asyncpg.PostgresError):
                    await session.execute("DELETE FROM jobs WHERE job_id = $1", key)
            if key == waiting or actor != "operator":
                with pytest.raises(asyncpg.PostgresError, match="may not delete"):
                    await session.fetchval(by_function, actor, key, state)
    operator = await kit.connect("operator")
    assert await operator.fetchval(by_function, "operator", ended, "SUCCESS") == 1
    for table in ("jobs", "job_transitions"):
        assert {str(row[0]) for row in await kit.sql.fetch(f"SELECT job_id FROM {table}")} == {waiting}


async def test_a_purge_takes_the_history_along(either: tuple[Kit, bool]) -> None:
    kit, _ = either
    kept, *gone = [await kit.add(state) for state in (QUEUED, SUCCESS, DEAD)]
    assert await kit.store.purge(0.0, kit.call("operator")) == len(gone)
    assert {str(row[0]) for row in await kit.sql.fetch("SELECT job_id FROM job_transitions")} == {kept.job_id}
    assert await kit.store.delete(kept.job_id, SUCCESS, kit.call("operator")) == (False, QUEUED)


async def test_whatever_runs_as_the_owner_cannot_be_led_astray(service: Kit) -> None:
    """Tables of the session's own, under the names that a function has, are not what it means."""
    session = await service.connect("api")
    await session.execute("CREATE TEMP TABLE job_transitions (LIKE public.job_transitions)")
    await session.execute("CREATE TEMP TABLE jobs (LIKE public.jobs)")
    await session.execute(
        "INSERT INTO public.jobs (job_type, payload, idempotency_key, job_id)"
        " VALUES ('a', '{}', 'k', gen_random_uuid())"
    )
    assert await service.sql.fetchval("SELECT count(*) FROM public.job_transitions") == 1


async def test_a_node_waits_for_the_owner_to_migrate(server: EmbeddedPostgres, fresh_url: str) -> None:
    """It may not do so itself, and goes on as soon as that was done."""
    url = server.service_url_of(fresh_url.rpartition("/")[2])
    owner = Database(fresh_url)
    await prepare(fresh_url, url, SYSTEM)  # The role is there.
    await owner.fetch("DROP SCHEMA public CASCADE")
    await owner.fetch("CREATE SCHEMA public")
    await owner.fetch("GRANT USAGE ON SCHEMA public TO PUBLIC")
    database = Database(url)
    with pytest.raises(PostgresUnavailable, match="as the owner of the tables"):
        await migrate(database, SYSTEM)
    await database.close()
    kit = await Kit(url).open()
    try:
        assert await kit.store.health() == "the database lacks the schema of this release"
        assert "migrate orchestrator" in kit.lines.read_back("store_unavailable")[0]["message"]
        await prepare(fresh_url, url, SYSTEM)
        await eventually(lambda: kit.lines.read_back("store_ready"))
        assert (await kit.add(QUEUED)).state == QUEUED
    finally:
        await kit.close()
        await owner.close()


async def test_preparing_again_changes_nothing(
    server: EmbeddedPostgres, service: Kit, fresh_url: str
) -> None:
    assert await prepare(fresh_url, service.url, SYSTEM) == []
    assert await prepare(fresh_url, fresh_url, SYSTEM) == []
    with pytest.raises(MigrationError, match="names no role"):
        await prepare(fresh_url, "postgresql://127.0.0.1/x", SYSTEM)
    assert (await service.add(SUCCESS)).state == SUCCESS


async def test_the_command_takes_both_roles(server: EmbeddedPostgres, fresh_url: str) -> None:
    url = server.service_url_of(fresh_url.rpartition("/")[2])
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "runtime.stores.postgres", "migrate", SYSTEM],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, "OWNER_DATABASE_URL": fresh_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "0001_initial.sql" in done.stdout
    kit = await Kit(url).open()
    try:
        owners: Any = await kit.sql.fetch("SELECT tableowner FROM pg_tables WHERE schemaname = 'public'")
        assert {row[0] for row in owners} == {"charter"}
        assert (await kit.add(SUCCESS)).state == SUCCESS
    finally:
        await kit.close()
