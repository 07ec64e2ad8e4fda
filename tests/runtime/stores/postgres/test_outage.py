"""A database that is away, restarts or is too busy: told quickly, and recovered from without help."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from generated.orchestrator.messages import CREATED, QUEUED, RETRY, SUCCESS
from runtime.call.conditions import Condition
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.stores.contract import LeaseProof
from runtime.stores.postgres import Database, database
from runtime.stores.postgres.database import PostgresUnavailable
from tests.runtime.stores.postgres.kit import Kit, unguarded
from tests.runtime.stores.postgres.test_store import blocked
from tests.support.eventually import eventually
from tests.support.postgres_clusters import Clusters

ENOUGH_S, LONG_ENOUGH_S = 30.0, 60.0
"""Far more than any answer may take; what is tested is that nobody waits for the database."""


@pytest.fixture(scope="module")
def own_server(clusters: Clusters) -> Iterator[EmbeddedPostgres]:
    """A server that a test may stop."""
    with clusters.started(shared_buffers="16MB") as made:
        yield made


@pytest.fixture
async def own(own_server: EmbeddedPostgres) -> AsyncIterator[Kit]:
    if not own_server.running:
        own_server.spawn()
        own_server.wait()
    kit = await Kit(own_server.url).open()
    await kit.sql.execute(unguarded("TRUNCATE jobs, job_transitions"))
    yield kit
    await kit.close()


async def unavailable(kit: Kit) -> None:
    """Every call says so, says it soon, and says nothing else."""
    key = kit.intent().job_id
    asked = (
        kit.create_or_find(kit.intent(), kit.call("api")),
        kit.create_or_find_all([kit.intent()], kit.call("api")),
        kit.store.get(key),
        kit.move(key, CREATED, QUEUED, kit.call("api")),
        kit.claim("w", kit.call("worker")),
        kit.renew(key, LeaseProof("w", 1)),
        kit.settle(key, SUCCESS, LeaseProof("w", 1), kit.call("worker")),
        kit.settle(key, RETRY, LeaseProof("w", 1), kit.call("worker")),
        kit.store.find(),
        kit.store.history(key),
        kit.store.purge(1, kit.call("operator")),
    )
    async with asyncio.timeout(ENOUGH_S):
        for told in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(told, Condition), told
            assert told.code == "service_unavailable"
            assert "5432" not in told.message
            assert "charter" not in told.message


@pytest.mark.req("ORC-079", "ORC-097", "ORC-145")
async def test_a_database_that_is_down_is_told_and_found_again(
    own: Kit, own_server: EmbeddedPostgres
) -> None:
    made = await own.add(QUEUED)
    own_server.stop()
    await unavailable(own)
    assert await own.store.health() == "the database does not answer"
    own_server.spawn()
    own_server.wait()
    async with asyncio.timeout(LONG_ENOUGH_S):
        while True:
            try:
                taken = await own.claim("w", own.call("worker"))
                break
            except Condition:
                await asyncio.sleep(0.05)
    assert taken is not None
    assert taken.job_id == made.job_id
    assert await own.store.health() is None


@pytest.mark.req("ORC-002", "ORC-058", "ORC-145")
async def test_what_was_answered_outlives_a_crash(own: Kit, own_server: EmbeddedPostgres) -> None:
    """The server dies at once; whatever was created is there, and at worst not queued yet."""
    made, _ = await own.create_or_find(own.intent(), own.call("api"))
    await own.move(made.job_id, CREATED, QUEUED, own.call("api"))
    own_server.stop(immediate=True)
    own_server.spawn()
    own_server.wait()
    await recovered(own)
    assert (await own.job(made.job_id)).state in (CREATED, QUEUED)


async def test_a_store_may_be_opened_before_its_database(own_server: EmbeddedPostgres) -> None:
    """It says that it is not ready, and becomes ready by itself."""
    own_server.stop()
    kit = Kit(own_server.url)
    await kit.store.open(kit.log)
    try:
        assert await kit.store.health() == "the database does not answer"
        (told,) = kit.lines.read_back("store_unavailable")
        assert "charter" not in told["message"]
        own_server.spawn()
        own_server.wait()
        await recovered(kit)
    finally:
        await kit.close()


async def test_reconnecting_is_not_done_in_haste(own: Kit, own_server: EmbeddedPostgres) -> None:
    """Hundreds of calls during an outage make few attempts to connect."""
    attempts = 0
    connect = asyncpg.connect

    async def counted(*given: object, **named: object) -> object:
        nonlocal attempts
        attempts += 1
        return await connect(*given, **named)  # type: ignore[call-overload]

    own_server.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncpg, "connect", counted)
        began = time.monotonic()
        calls = 0
        while (lasted := time.monotonic() - began) < 2 or calls <= 100:
            with pytest.raises(Condition):
                await own.store.get(own.intent().job_id)
            calls += 1
            await asyncio.sleep(0.002)
    own_server.spawn()
    own_server.wait()
    assert attempts < 10 * lasted


async def test_news_are_heard_again_after_a_restart(own: Kit, own_server: EmbeddedPostgres) -> None:
    own_server.restart()
    await recovered(own)
    own.sql = await own.connect()
    told = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
    await eventually(lambda: own.sql.fetchval(told), patience=LONG_ENOUGH_S)
    await own.claim("w", own.call("worker"))
    await own.add(QUEUED)
    async with asyncio.timeout(ENOUGH_S):
        assert await own.store.wait(60)


async def test_a_listener_outlives_a_fault_of_the_library(own: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is lost in its first moments may end in one; the next attempt is made anyway."""
    dedicated, again = own.database.dedicated, asyncio.Event()

    async def failing() -> Any:
        monkeypatch.setattr(own.database, "dedicated", heard)
        raise asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")

    async def heard() -> Any:
        again.set()
        return await dedicated()

    monkeypatch.setattr(own.database, "dedicated", failing)
    cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
    await eventually(lambda: own.sql.fetchval(cut), "a listener to be cut off")
    async with asyncio.timeout(LONG_ENOUGH_S):
        await again.wait()


@pytest.mark.req("ORC-146")
async def test_an_answer_that_was_lost_is_found_out_about(kit: Kit) -> None:
    """The server cuts the session right after the commit; the repeat learns that it had been written."""
    await kit.add(QUEUED)
    job = await kit.claim("w", kit.call("worker"))
    assert job is not None
    fetch = kit.database.fetch

    async def cut(text: str, *given: object, **named: float) -> object:
        found = await fetch(text, *given, **named)
        if text.startswith("-- settle_complete"):
            kit.database.fetch = fetch  # type: ignore[method-assign]
            raise PostgresUnavailable("cut", unknown=True)
        return found

    kit.database.fetch = cut  # type: ignore[method-assign,assignment]
    held = LeaseProof("w", job.attempt)
    with pytest.raises(Condition) as caught:
        await kit.settle(job.job_id, SUCCESS, held, kit.call("worker"), result="1")
    assert caught.value.code == "service_unavailable"
    assert await kit.settle(job.job_id, SUCCESS, held, kit.call("worker"), result="1") == SUCCESS
    with pytest.raises(Condition) as caught:
        await kit.settle(job.job_id, SUCCESS, held, kit.call("worker"), result="1")
    assert caught.value.code == "lease_lost"
    assert len(await kit.edges(job.job_id)) == 4


async def test_too_few_connections_are_told_soon(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that find all connections in use do not wait for long."""
    small = Database(kit.url, most=1)
    async with small.connection():
        with monkeypatch.context() as impatient:
            impatient.setattr(database, "WAIT_S", 0.1)
            async with asyncio.timeout(ENOUGH_S):
                with pytest.raises(PostgresUnavailable, match="in use"):
                    await small.fetch("SELECT 1")
    assert (await small.fetch("SELECT 1"))[0][0] == 1
    await small.close()


async def test_a_session_that_is_cut_off_costs_one_call(kit: Kit) -> None:
    made = await kit.add()
    await kit.sql.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    for _ in range(10):
        try:
            found = await kit.store.get(made.job_id)
            break
        except Condition as told:
            assert told.code == "service_unavailable"
    assert found == made


async def test_a_call_that_is_cancelled_leaves_its_connection_usable(kit: Kit) -> None:
    """Whoever stops waiting disturbs nobody who comes after."""
    made = await kit.add()
    other = await kit.connect()
    begun = other.transaction()
    await begun.start()
    await other.execute("SELECT FROM jobs FOR UPDATE")
    moving = asyncio.create_task(kit.move(made.job_id, CREATED, QUEUED, kit.call("api")))
    await blocked(kit)
    moving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await moving
    await begun.rollback()
    for _ in range(20):
        assert await kit.store.get(made.job_id) is not None


async def test_a_schema_that_is_not_there_is_a_store_that_is_not_available(kit: Kit) -> None:
    await kit.sql.execute("ALTER TABLE jobs RENAME TO away")
    try:
        with pytest.raises(Condition) as caught:
            await kit.store.get(kit.intent().job_id)
        assert caught.value.code == "service_unavailable"
    finally:
        await kit.sql.execute("ALTER TABLE away RENAME TO jobs")


async def recovered(kit: Kit) -> None:
    """Returns when the store works again."""
    await eventually(kit.store.health, wanted=lambda problem: problem is None, patience=LONG_ENOUGH_S)
