"""Edges that the clock drives: only what is due, each once, in bounded batches, whoever stands in the way."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from generated.orchestrator.lifecycle import JOB_ACCEPT, JOB_FAIL, JOB_REQUEUE
from generated.orchestrator.messages import CREATED, DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from runtime.model.lifecycles import Transition
from runtime.stores.contract import LeaseProof
from runtime.stores.postgres import due_transitions
from runtime.stores.sweeper import Sweep, sweep_regularly
from tests.runtime.stores.postgres.conftest import MakeKit
from tests.runtime.stores.postgres.kit import Kit, unguarded
from tests.support.eventually import eventually

DUE = {
    "accept": unguarded("UPDATE jobs SET created_at = clock_timestamp() - interval '2 hours'"),
    "fail": "UPDATE jobs SET lease_expiry = clock_timestamp() - interval '1 ms'",
    "requeue": "UPDATE jobs SET next_attempt_at = clock_timestamp() - interval '1 ms'",
}
EDGES = [
    pytest.param(JOB_ACCEPT, CREATED, QUEUED, id="accept", marks=pytest.mark.req("ORC-068")),
    pytest.param(JOB_FAIL, RUNNING, RETRY, id="fail", marks=pytest.mark.req("ORC-017", "ORC-140")),
    pytest.param(JOB_REQUEUE, RETRY, QUEUED, id="requeue", marks=pytest.mark.req("ORC-019", "ORC-025")),
]


@pytest.mark.parametrize(("edge", "source", "target"), EDGES)
async def test_only_what_is_due_moves(make_kit: MakeKit, edge: Transition, source: int, target: int) -> None:
    """Before its time an entity stays; after it, it moves, in the name of the component that sweeps."""
    an_hour = dict.fromkeys(("CREATED_GRACE_SECONDS", "BACKOFF_BASE_SECONDS", "BACKOFF_MAX_SECONDS"), 3600.0)
    kit = await make_kit(**an_hour)
    made = await kit.add(source)
    (due,) = edge.dues
    call = kit.call(due.by)
    assert await kit.store.run_due(edge.name, call) == 0
    assert (await kit.job(made.job_id)).state == source
    await kit.sql.execute(DUE[edge.name])
    assert await kit.store.run_due(edge.name, call) == 1
    assert await kit.store.run_due(edge.name, call) == 0
    assert (await kit.job(made.job_id)).state == target
    assert (await kit.edges(made.job_id))[-1][2] == due.by


@pytest.mark.req("ORC-140")
async def test_an_expired_lease_counts_as_a_failure(kit: Kit) -> None:
    made = await kit.add(RUNNING)
    await kit.sql.execute(DUE["fail"])
    await kit.store.run_due(JOB_FAIL.name, kit.call("reaper"))
    row = await kit.row(made.job_id)
    assert (row["retry_count"], row["lease_owner"], row["lease_expiry"]) == (1, None, None)
    assert (row["next_attempt_at"] - row["updated_at"]).total_seconds() == 2
    assert row["last_error"] == "LEASE_EXPIRED"
    counted = kit.metrics.registry.get_sample_value
    assert counted("charter_leases_expired_total", {"entity": "job"}) == 1


@pytest.mark.req("ORC-141")
async def test_what_always_loses_its_lease_ends(make_kit: MakeKit) -> None:
    """A job that kills every worker is not tried for ever, and both edges are one step."""
    kit = await make_kit(MAX_RETRIES=0)
    made = await kit.add(RUNNING)
    await kit.sql.execute(DUE["fail"])
    assert await kit.store.run_due(JOB_FAIL.name, kit.call("reaper")) == 1
    assert (await kit.row(made.job_id))["retry_count"] == 1
    assert (await kit.edges(made.job_id))[-2:] == [
        ("RUNNING", "RETRY", "reaper"),
        ("RETRY", "DEAD", "reaper"),
    ]
    assert kit.metrics.registry.get_sample_value("charter_given_up_total", {"entity": "job"}) == 1


@pytest.mark.req("ORC-151")
async def test_what_is_over_a_lowered_limit_ends_instead_of_going_on(kit: Kit, make_kit: MakeKit) -> None:
    made, under = await kit.add(RETRY), await kit.add(RETRY)
    await kit.sql.execute("UPDATE jobs SET retry_count = 3 WHERE job_id = $1", made.job_id)
    await kit.sql.execute(DUE["requeue"])
    lowered = await make_kit(MAX_RETRIES=2)
    assert await lowered.store.run_due(JOB_REQUEUE.name, lowered.call("scheduler")) == 2
    assert (await kit.job(made.job_id)).state == DEAD
    assert (await kit.job(under.job_id)).state == QUEUED
    assert (await kit.edges(made.job_id))[-1] == ("RETRY", "DEAD", "scheduler")


@pytest.mark.req("ORC-142")
async def test_five_sweepers_count_an_expiry_once(make_kit: MakeKit) -> None:
    kits = [await make_kit() for _ in range(5)]
    for _ in range(10):
        made = await kits[0].add(RUNNING)
        await kits[0].sql.execute(DUE["fail"] + " WHERE state = 'RUNNING'")
        moved = await asyncio.gather(
            *(each.store.run_due(JOB_FAIL.name, each.call("reaper")) for each in kits)
        )
        assert sum(moved) == 1
        assert (await kits[0].row(made.job_id))["retry_count"] == 1


@pytest.mark.req("ORC-143")
async def test_a_late_result_and_the_sweep_never_both_win(make_kit: MakeKit) -> None:
    """At the very end of the lease one of the two writes; whichever it is, the other changes nothing."""
    worker, reaper = await make_kit(), await make_kit()
    ended = []
    for _ in range(40):
        made = await worker.add(RUNNING)
        await worker.sql.execute(
            "UPDATE jobs SET lease_expiry = clock_timestamp() + interval '3 ms' WHERE job_id = $1",
            made.job_id,
        )

        async def sweep() -> int:
            await asyncio.sleep(0.003)
            return await reaper.store.run_due(JOB_FAIL.name, reaper.call("reaper"))

        settled, swept = await asyncio.gather(
            worker.settle(made.job_id, SUCCESS, LeaseProof("w", 1), worker.call("worker")),
            sweep(),
            return_exceptions=True,
        )
        row = await worker.row(made.job_id)
        ended.append(row["state"])
        if settled == SUCCESS:
            assert (row["state"], row["retry_count"], swept) == ("SUCCESS", 0, 0)
        else:
            assert row["state"] in ("RUNNING", "RETRY")
        await worker.sql.execute(unguarded("TRUNCATE jobs, job_transitions"))
    assert ended


async def test_batches_are_bounded_and_go_on_until_nothing_is_due(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_transitions, "batch_size", lambda *_: 10)
    intents = [kit.intent() for _ in range(25)]
    await kit.create_or_find_all(intents, kit.call("api"))
    await kit.sql.execute(DUE["accept"])
    moved = [await kit.store.run_due(JOB_ACCEPT.name, kit.call("api")) for _ in range(4)]
    assert moved == [10, 10, 5, 0]


async def test_one_bad_row_starves_nobody(kit: Kit) -> None:
    """A row that cannot move is set aside and told of; the others move, in the same pass."""
    made = [await kit.add() for _ in range(5)]
    await kit.sql.execute(DUE["accept"])
    bad = made[0].job_id
    await kit.sql.execute(
        "CREATE FUNCTION bad() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF OLD.job_id = '{bad}' THEN RAISE 'bad row' USING ERRCODE = '23514'; END IF; RETURN NEW; END $$;"
        "CREATE TRIGGER zz_bad BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION bad()"
    )
    try:
        assert await kit.store.run_due(JOB_ACCEPT.name, kit.call("api")) == 4
        assert await kit.store.run_due(JOB_ACCEPT.name, kit.call("api")) == 0
        (told,) = kit.lines.read_back("sweep_stuck")
        assert told["job_id"] == bad
    finally:
        await kit.sql.execute("DROP TRIGGER zz_bad ON jobs; DROP FUNCTION bad()")
    assert [(await kit.job(each.job_id)).state for each in made] == [CREATED, *[QUEUED] * 4]


async def test_a_row_that_is_locked_is_left_for_the_next_look(kit: Kit) -> None:
    made = [await kit.add() for _ in range(2)]
    await kit.sql.execute(DUE["accept"])
    other = await kit.connect()
    async with other.transaction():
        await other.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", made[0].job_id)
        assert await kit.store.run_due(JOB_ACCEPT.name, kit.call("api")) == 1
    assert await kit.store.run_due(JOB_ACCEPT.name, kit.call("api")) == 1


async def test_the_loop_goes_on_through_an_outage_and_ends_when_told(kit: Kit) -> None:
    made = await kit.add()
    await kit.sql.execute(DUE["accept"])
    stopping = asyncio.Event()
    await kit.sql.execute("ALTER TABLE jobs RENAME TO away")
    try:
        sweep = Sweep("job", JOB_ACCEPT.name, partial(kit.store.run_due, JOB_ACCEPT.name))
        loop = asyncio.create_task(sweep_regularly([sweep], 0.02, kit.call("api"), stopping))
        await eventually(lambda: kit.lines.read_back("sweep_failed"))
    finally:
        await kit.sql.execute("ALTER TABLE away RENAME TO jobs")
    await eventually(lambda: kit.job(made.job_id), wanted=lambda job: job.state == QUEUED)
    stopping.set()
    await loop


@pytest.mark.req("ORC-133")
async def test_whoever_waits_is_woken_when_there_is_something_to_take(kit: Kit) -> None:
    """A notification saves waiting; it is never more than a hint."""
    made = await kit.add()
    await listening(kit)
    assert await kit.claim("w", kit.call("worker")) is None
    assert not await kit.store.wait(0.05)
    waiting = asyncio.create_task(kit.store.wait(60))
    # Whatever would wake it without news has had a whole exchange with the database to do so.
    assert await kit.store.get(made.job_id) is not None
    assert not waiting.done()
    await kit.move(made.job_id, CREATED, QUEUED, kit.call("api"))
    assert await waiting
    assert await kit.claim("w", kit.call("worker")) is not None
    assert not await kit.store.wait(0.01)


async def test_news_that_came_since_the_last_look_are_not_missed(kit: Kit) -> None:
    await listening(kit)
    assert await kit.claim("w", kit.call("worker")) is None
    await kit.add(QUEUED)
    await eventually(lambda: kit.store.wait(0), "the news are there")
    async with asyncio.timeout(30):
        assert await kit.store.wait(60)


async def listening(kit: Kit) -> None:
    """Returns when the store has its ear on the database."""
    told = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    await eventually(lambda: kit.sql.fetchval(told))
    assert await kit.store.wait(60)  # Once it listens it makes up for what was said before.
