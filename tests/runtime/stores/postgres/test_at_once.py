"""Entities that are created and take their first step at once: two lines of history, and the same guards."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from generated.orchestrator.messages import CREATED, QUEUED
from runtime.stores.postgres.statements import load_statements
from tests.runtime.stores.postgres.conftest import MakeKit
from tests.runtime.stores.postgres.kit import WORLD, Kit
from tests.runtime.stores.postgres.test_store import blocked

SUBMIT = load_statements("orchestrator", "job")["create_accept"].text
INSERT = "INSERT INTO jobs (job_type, payload, idempotency_key, state) VALUES ('a', '{}', $1, $2)"


async def submit(
    connection: asyncpg.Connection[Any], keys: list[str], actor: str = "api"
) -> tuple[Any, list[str]]:
    """What the function says, and the ids that it was given."""
    ids = WORLD.new_keys(len(keys))
    count = len(keys)
    said = await connection.fetchval(SUBMIT, actor, ids, ["echo"] * count, ["{}"] * count, keys)
    return said, ids


@pytest.mark.req("ORC-021", "ORC-029", "ORC-032")
async def test_both_steps_are_in_the_history_and_in_the_table_is_one(kit: Kit) -> None:
    said, (key,) = await submit(kit.sql, ["k"])
    assert said is None
    assert await kit.edges(key) == [("", "CREATED", "api"), ("CREATED", "QUEUED", "api")]
    assert (await kit.job(key)).state == QUEUED
    assert await kit.sql.fetchval("SELECT count(DISTINCT txid) FROM job_transitions") == 1
    taken = await kit.claim("w", kit.call("worker"))
    assert taken is not None
    assert taken.job_id == key


@pytest.mark.req("ORC-029")
@pytest.mark.parametrize("state", ["QUEUED", "RUNNING", "SUCCESS", "RETRY", "DEAD"])
async def test_a_plain_insert_begins_where_entities_begin(kit: Kit, state: str) -> None:
    """Whoever says that it takes the first step at once may begin behind that step, and nowhere else."""
    insert = INSERT
    if state == "RUNNING":
        insert = insert.replace("state)", "state, lease_owner, lease_expiry)")
        insert = insert.replace("$2)", "$2, 'w', clock_timestamp())")
    with pytest.raises(asyncpg.PostgresError, match=f"begins as CREATED, not as {state}"):
        await kit.sql.execute(insert, "typed", state)
    await kit.sql.execute("SELECT set_config('app.at_once', 'api', false)")
    if state == "QUEUED":
        await kit.sql.execute(insert, "typed", state)
    else:
        with pytest.raises(asyncpg.PostgresError, match=f"begins as CREATED, not as {state}"):
            await kit.sql.execute(insert, "typed", state)
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs") == (state == "QUEUED")


@pytest.mark.req("ORC-013", "ORC-032")
@pytest.mark.parametrize("actor", ["worker", "reaper", "scheduler", "operator", "client"])
async def test_only_those_may_who_may_do_both(kit: Kit, actor: str) -> None:
    with pytest.raises(asyncpg.PostgresError, match=f"ACTOR_NOT_ALLOWED: {actor} may not create a job"):
        await submit(kit.sql, ["k"], actor)
    assert await kit.sql.fetchval("SELECT count(*) FROM job_transitions") == 0


@pytest.mark.req("ORC-044", "ORC-060")
async def test_what_is_known_stays_as_it_is(kit: Kit) -> None:
    """Also what waits to be accepted; of the same key twice the first counts, and the order is kept."""
    old = await kit.add(CREATED, key="old")
    said, ids = await submit(kit.sql, ["z", "old", "a", "z"])
    assert [str(each) for each in said] == [ids[0], old.job_id, ids[2], ids[0]]
    assert (await kit.job(old.job_id)).state == CREATED
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs") == 3
    again, _ = await submit(kit.sql, ["z"])
    assert again == said[:1]


async def test_one_that_is_under_way_is_waited_for(make_kit: MakeKit) -> None:
    """The second gets the job of the first if that commits, and one of its own if it does not."""
    kit = await make_kit()
    for commits in (True, False):
        key = f"race {commits}"
        one, other = await kit.connect(), await kit.connect()
        begun = one.transaction()
        await begun.start()
        _, (first,) = await submit(one, [key])
        waiting = asyncio.ensure_future(submit(other, [key]))
        await blocked(kit)
        assert not waiting.done()
        await (begun.commit() if commits else begun.rollback())
        said, (second,) = await asyncio.wait_for(waiting, 60)
        assert [str(each) for each in said or [second]] == [first if commits else second]


async def test_whoever_waits_for_work_is_told(kit: Kit) -> None:
    listener = await kit.connect()
    told = asyncio.Event()
    await listener.add_listener("jobs", lambda *_: told.set())
    await submit(kit.sql, ["k"])
    await asyncio.wait_for(told.wait(), 60)


async def test_known_ones_are_found_by_the_index_whatever_the_session_thinks(kit: Kit) -> None:
    """A plan that was made while the table was empty is used when it is not."""
    await submit(kit.sql, ["first", "first"])
    await kit.sql.execute("SET session_replication_role = replica")
    await kit.sql.execute(
        "INSERT INTO jobs (job_type, payload, idempotency_key, state)"
        " SELECT 'a', '{}', 'old ' || i, 'SUCCESS' FROM generate_series(1, 20000) AS i"
    )
    read = "SELECT idx_scan, seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'jobs'"
    await kit.sql.execute("SET session_replication_role = origin")
    async with kit.sql.transaction():
        said, _ = await submit(kit.sql, ["old 7", "first"])
        assert len(said) == 2
        by_index, whole = await kit.sql.fetchrow(read) or (0, 0)
    assert (by_index >= 2, whole) == (True, 0)
