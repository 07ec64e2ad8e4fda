"""What the database itself refuses, whoever types it."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from generated.orchestrator.lifecycle import JOB
from generated.orchestrator.messages import CREATED, DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from runtime.call.conditions import Condition
from runtime.stores.store import GuardBreach
from tests.runtime.stores.postgres.kit import STATES, Kit

EDGES = {(JOB.states[source], JOB.states[target]) for source, target in JOB.edges}
ACTORS = ("api", "worker", "reaper", "scheduler")
ALLOWED = {
    ("CREATED", "QUEUED"): {"api"},
    ("QUEUED", "RUNNING"): {"worker"},
    ("RUNNING", "SUCCESS"): {"worker"},
    ("RUNNING", "RETRY"): {"worker", "reaper"},
    ("RETRY", "QUEUED"): {"scheduler"},
    ("RETRY", "DEAD"): {"scheduler"},
}
"""Who may take each edge by itself. Workers and reapers end a job only in the step that failed."""
LEASE = "lease_owner = 'x', lease_expiry = clock_timestamp() + interval '1 min'"
NO_LEASE = "lease_owner = NULL, lease_expiry = NULL"


async def put(
    connection: asyncpg.Connection[Any], key: str, target: str, *, lease: str | None = None
) -> None:
    """The UPDATE that a person would type, with the lease as the target needs it."""
    lease = lease or (LEASE if target == "RUNNING" else NO_LEASE)
    await connection.execute(f"UPDATE jobs SET state = $2, {lease} WHERE job_id = $1", key, target)


@pytest.mark.req("ORC-018", "ORC-020", "ORC-027", "ORC-028", "ORC-165")
@pytest.mark.parametrize("source", STATES)
async def test_only_the_edges_of_the_lifecycle_can_be_typed(kit: Kit, source: str) -> None:
    """Of 36 pairs 6 are edges, 6 are no change, and 24 are refused and leave the row as it was."""
    for target in STATES:
        key = (await kit.add(STATES[source])).job_id
        before, edges = await kit.row(key), await kit.edges(key)
        if source == target:
            await kit.sql.execute("UPDATE jobs SET state = $2 WHERE job_id = $1", key, target)
            assert await kit.edges(key) == edges
            assert (await kit.row(key))["state"] == source
        elif (source, target) in EDGES:
            await put(kit.sql, key, target)
            assert (await kit.row(key))["state"] == target
            assert (await kit.edges(key))[-1] == (source, target, "")
        else:
            with pytest.raises(asyncpg.PostgresError, match=f"never goes from {source} to {target}"):
                await put(kit.sql, key, target)
            assert await kit.row(key) == before


@pytest.mark.req("ORC-013", "ORC-032")
@pytest.mark.parametrize("actor", [*ACTORS, "operator", "client"])
async def test_only_the_actors_of_an_edge_can_take_it(kit: Kit, actor: str) -> None:
    """A session that says who it is may do what that actor may, and nothing else."""
    session = await kit.connect(actor)
    for edge in sorted(EDGES):
        key = (await kit.add(STATES[edge[0]])).job_id
        if actor == "reaper":
            await expire(kit, key)
        if actor in ALLOWED[edge]:
            await put(session, key, edge[1])
            assert (await kit.edges(key))[-1] == (*edge, actor)
        else:
            with pytest.raises(asyncpg.PostgresError, match="ACTOR_NOT_ALLOWED"):
                await put(session, key, edge[1])
            assert (await kit.row(key))["state"] == edge[0]


@pytest.mark.req("ORC-032")
@pytest.mark.parametrize("actor", ACTORS)
async def test_the_store_asks_the_same_table(kit: Kit, actor: str) -> None:
    """An actor outside the lifecycle is refused before anything is sent; one inside needs the right way."""
    for edge, transition in JOB.edges.items():
        key = (await kit.add(edge[0])).job_id
        if actor not in transition.actors:
            with pytest.raises(Condition) as caught:
                await kit.move(key, *edge, kit.call(actor))
            assert caught.value.code == "actor_not_allowed"
        elif edge[0] == RUNNING:
            problem = "needs the proof" if actor == "worker" else "driven by the clock"
            with pytest.raises(GuardBreach, match=problem):
                await kit.move(key, *edge, kit.call(actor))
        elif actor == "scheduler" or edge[0] != RETRY:
            assert (await kit.move(key, *edge, kit.call(actor))).applied
        else:
            with pytest.raises(GuardBreach, match="only with a failure"):
                await kit.move(key, *edge, kit.call(actor))


@pytest.mark.req("ORC-030", "ORC-032")
async def test_a_worker_ends_a_job_only_in_the_transaction_that_failed(kit: Kit) -> None:
    """RETRY to DEAD by a worker needs RUNNING to RETRY just before it, in the same transaction."""
    key = (await kit.add(RUNNING)).job_id
    session = await kit.connect("worker")
    async with session.transaction():
        await put(session, key, "RETRY")
        await put(session, key, "DEAD")
    assert (await kit.edges(key))[-2:] == [("RUNNING", "RETRY", "worker"), ("RETRY", "DEAD", "worker")]
    txids = await kit.sql.fetch(
        "SELECT txid::text FROM job_transitions WHERE job_id = $1 ORDER BY number DESC LIMIT 2", key
    )
    assert txids[0] == txids[1]


@pytest.mark.req("ORC-016", "ORC-017")
async def test_a_reaper_cannot_touch_a_lease_that_goes_on(kit: Kit) -> None:
    """Not even by hand: the expiry is part of what the reaper may do."""
    key = (await kit.add(RUNNING)).job_id
    session = await kit.connect("reaper")
    with pytest.raises(asyncpg.PostgresError, match="ACTOR_NOT_ALLOWED"):
        await put(session, key, "RETRY")
    await expire(kit, key)
    await put(session, key, "RETRY")
    assert (await kit.row(key))["state"] == "RETRY"


@pytest.mark.req("ORC-011")
@pytest.mark.parametrize("state", ["PENDING", "created", "", "FAILED"])
async def test_no_other_state_can_be_stored(kit: Kit, state: str) -> None:
    """Neither inserted nor updated."""
    key = (await kit.add(QUEUED)).job_id
    with pytest.raises(asyncpg.PostgresError):
        await insert(kit.sql, state=state)
    with pytest.raises(asyncpg.PostgresError):
        await kit.sql.execute("UPDATE jobs SET state = $2 WHERE job_id = $1", key, state)
    assert (await kit.row(key))["state"] == "QUEUED"


@pytest.mark.req("ORC-008")
async def test_a_state_is_never_missing(kit: Kit) -> None:
    key = (await kit.add()).job_id
    with pytest.raises(asyncpg.NotNullViolationError):
        await kit.sql.execute("UPDATE jobs SET state = NULL WHERE job_id = $1", key)


@pytest.mark.req("ORC-029")
@pytest.mark.parametrize("state", [name for name in STATES if name != "CREATED"])
async def test_a_job_begins_as_created(kit: Kit, state: str) -> None:
    """An INSERT in any other state is refused."""
    with pytest.raises(asyncpg.PostgresError, match="begins as CREATED"):
        await insert(kit.sql, state=state, lease=state == "RUNNING")
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize("actor", ["worker", "reaper", "scheduler", "client"])
async def test_only_a_creator_creates(kit: Kit, actor: str) -> None:
    session = await kit.connect(actor)
    with pytest.raises(asyncpg.PostgresError, match="ACTOR_NOT_ALLOWED"):
        await insert(session)
    await insert(await kit.connect("api"))


@pytest.mark.req("ORC-038", "ORC-046")
@pytest.mark.parametrize("counter", ["retry_count", "attempt"])
async def test_counters_never_fall(kit: Kit, counter: str) -> None:
    """A counter starts at 0, may grow, and is neither lowered nor negative."""
    key = (await kit.add()).job_id
    assert (await kit.row(key))[counter] == 0
    with pytest.raises(asyncpg.PostgresError):
        await kit.sql.execute(f"UPDATE jobs SET {counter} = -1 WHERE job_id = $1", key)
    await kit.sql.execute(f"UPDATE jobs SET {counter} = 5 WHERE job_id = $1", key)
    with pytest.raises(asyncpg.PostgresError, match="never lowered"):
        await kit.sql.execute(f"UPDATE jobs SET {counter} = 4 WHERE job_id = $1", key)
    with pytest.raises(asyncpg.CheckViolationError):
        await insert(kit.sql, extra={counter: -1})


@pytest.mark.req("ORC-048")
@pytest.mark.parametrize("target", ["SUCCESS", "RETRY"])
async def test_leaving_the_leased_state_gives_the_lease_back(kit: Kit, target: str) -> None:
    key = (await kit.add(RUNNING)).job_id
    with pytest.raises(asyncpg.CheckViolationError):
        await kit.sql.execute("UPDATE jobs SET state = $2 WHERE job_id = $1", key, target)


@pytest.mark.req("ORC-048", "ORC-116")
async def test_the_leased_state_needs_an_owner_and_an_end(kit: Kit) -> None:
    key = (await kit.add(QUEUED)).job_id
    for lease in (NO_LEASE, "lease_owner = 'x'", "lease_expiry = clock_timestamp()"):
        with pytest.raises(asyncpg.CheckViolationError):
            await put(kit.sql, key, "RUNNING", lease=lease)


@pytest.mark.req("ORC-014", "ORC-048")
@pytest.mark.parametrize("state", [CREATED, SUCCESS, RETRY, DEAD])
async def test_other_states_have_no_lease(kit: Kit, state: int) -> None:
    """Only what waits to be taken may carry an old one, so that the rule of eligibility means something."""
    key = (await kit.add(state)).job_id
    for lease in (LEASE, "lease_owner = 'x'", "lease_expiry = clock_timestamp()"):
        with pytest.raises(asyncpg.CheckViolationError):
            await kit.sql.execute(f"UPDATE jobs SET {lease} WHERE job_id = $1", key)
    queued = (await kit.add(QUEUED)).job_id
    assert (await kit.row(queued))["lease_owner"] is None
    await kit.sql.execute("UPDATE jobs SET lease_expiry = '2001-01-01' WHERE job_id = $1", queued)


@pytest.mark.req("ORC-047")
async def test_the_wait_is_set_in_one_state_only(kit: Kit) -> None:
    """Typed transitions too: what they leave out is completed, and a wait elsewhere is refused."""
    for state in STATES.values():
        key = (await kit.add(state)).job_id
        assert ((await kit.row(key))["next_attempt_at"] is not None) == (state == RETRY)
    running = (await kit.add(RUNNING)).job_id
    await put(kit.sql, running, "RETRY")
    assert (await kit.row(running))["next_attempt_at"] is not None
    await put(kit.sql, running, "QUEUED")
    assert (await kit.row(running))["next_attempt_at"] is None
    with pytest.raises(asyncpg.CheckViolationError):
        await kit.sql.execute(
            "UPDATE jobs SET next_attempt_at = clock_timestamp() WHERE job_id = $1", running
        )


@pytest.mark.req("ORC-034")
async def test_a_typed_transition_is_stamped(kit: Kit) -> None:
    key = (await kit.add()).job_id
    before = await kit.row(key)
    await put(kit.sql, key, "QUEUED")
    after = await kit.row(key)
    assert after["updated_at"] > before["updated_at"]
    assert after["created_at"] == before["created_at"]


@pytest.mark.req("ORC-044")
async def test_a_duplicate_of_a_unique_field_is_refused(kit: Kit) -> None:
    await insert(kit.sql, key="once")
    with pytest.raises(asyncpg.UniqueViolationError) as caught:
        await insert(kit.sql, key="once")
    assert caught.value.sqlstate == "23505"


@pytest.mark.req("ORC-049", "ORC-132")
@pytest.mark.parametrize("actor", ACTORS)
async def test_the_service_deletes_nothing_by_the_way(kit: Kit, actor: str) -> None:
    """Only whoever may purge deletes, and only what has ended."""
    done, open_ = (await kit.add(SUCCESS)).job_id, (await kit.add(QUEUED)).job_id
    session = await kit.connect(actor)
    for key in (done, open_):
        with pytest.raises(asyncpg.PostgresError, match="ACTOR_NOT_ALLOWED"):
            await session.execute("DELETE FROM jobs WHERE job_id = $1", key)
    operator = await kit.connect("operator")
    with pytest.raises(asyncpg.PostgresError, match="ACTOR_NOT_ALLOWED"):
        await operator.execute("DELETE FROM jobs WHERE job_id = $1", open_)
    await operator.execute("DELETE FROM jobs WHERE job_id = $1", done)
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs") == 1


async def test_history_is_only_added_to(kit: Kit) -> None:
    await kit.add(QUEUED)
    for change in (
        "UPDATE job_transitions SET actor = 'me'",
        "DELETE FROM job_transitions",
        "TRUNCATE jobs CASCADE",
    ):
        with pytest.raises(asyncpg.PostgresError, match="only ever added to"):
            await kit.sql.execute(change)


async def test_a_key_never_changes(kit: Kit) -> None:
    key = (await kit.add()).job_id
    with pytest.raises(asyncpg.PostgresError, match="never changes"):
        await kit.sql.execute("UPDATE jobs SET job_id = gen_random_uuid() WHERE job_id = $1", key)


async def expire(kit: Kit, key: str) -> None:
    """Ends the lease of a job that has one."""
    await kit.sql.execute(
        "UPDATE jobs SET lease_expiry = clock_timestamp() - interval '1 ms'"
        " WHERE job_id = $1 AND state = 'RUNNING'",
        key,
    )


async def insert(
    connection: asyncpg.Connection[Any],
    *,
    state: str | None = None,
    key: str | None = None,
    lease: bool = False,
    extra: dict[str, object] | None = None,
) -> None:
    """The INSERT that a person would type."""
    names, values = ["job_type", "payload"], ["'a'", "'{}'"]
    names.append("idempotency_key")
    values.append(f"'{key}'" if key else "gen_random_uuid()::text")
    if state is not None:
        names.append("state")
        values.append(f"'{state}'")
    if lease:
        names += ["lease_owner", "lease_expiry"]
        values += ["'x'", "clock_timestamp()"]
    for name, value in (extra or {}).items():
        names.append(name)
        values.append(str(value))
    await connection.execute(f"INSERT INTO jobs ({', '.join(names)}) VALUES ({', '.join(values)})")
