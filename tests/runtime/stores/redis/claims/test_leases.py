"""Leases: taken in the order of the spec by those who can, given back once, and never held by two."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from generated.priority.lifecycle import TASK_ADVANCE
from generated.priority.messages import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD_LETTER,
    EXECUTING,
    HIGH,
    LOW,
    MEDIUM,
    QUEUED,
)
from generated.priority.records import TaskRecord
from runtime.call.conditions import Condition
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.redis.codec import to_microseconds
from runtime.stores.store import GuardBreach, NoSuchEntity
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit, settlement


@pytest.mark.req("PQ-152", "PQ-153", "PQ-154", "PQ-155")
async def test_the_higher_queues_are_served_first_and_no_more_than_was_asked_for(kit: Kit) -> None:
    made = [await kit.add(priority=priority) for priority in (LOW, MEDIUM, HIGH, LOW, MEDIUM, HIGH)]
    worker = await kit.worker()
    taken = await kit.claim(worker, 3)
    assert [each.task_id for each in taken] == [made[2].task_id, made[5].task_id, made[1].task_id]
    assert {name: len(each) for name, each in (await kit.queues()).items()} == {
        "high": 0,
        "medium": 1,
        "low": 2,
    }
    assert await kit.claim(worker, 0) == []
    assert len(await kit.claim(worker, 50)) == 3
    assert await kit.claim(worker, 50) == []
    await kit.sound()


@pytest.mark.req("PQ-159", "PQ-161", "PQ-047", "PQ-049", "PQ-133", "PQ-062", "PQ-078")
async def test_a_claim_books_the_task_and_sets_its_deadline(kit: Kit) -> None:
    made, worker = await kit.add(timeout_seconds=42), await kit.worker()
    (task,) = await kit.claim(worker)
    assert (task.status, task.assigned_worker_id, task.attempt) == (EXECUTING, worker, 1)
    assert task.started_at is not None and task.deadline_at == task.started_at + timedelta(seconds=42)
    assert await kit.redis.smembers(f"worker_tasks:{worker}") == {made.task_id}
    assert await kit.redis.zscore("executing:deadlines", made.task_id) == to_microseconds(task.deadline_at)
    assert task == await kit.task(made.task_id)
    assert await kit.held_by(worker) == {made.task_id}
    told = [(each.get("from"), each["to"], each["sequence"]) for each in await kit.outbox(made.task_id)]
    assert told == [(None, "queued", "1"), ("queued", "executing", "2")]
    await kit.sound()


@pytest.mark.req("PQ-064", "PQ-012", "PQ-063", "PQ-061")
async def test_nobody_holds_more_than_its_capacity(kit: Kit) -> None:
    """Whatever it asks for, alone or several times at once."""
    await kit.create(*(kit.intent() for _ in range(50)))
    worker = await kit.worker(5)
    parts = await asyncio.gather(*(kit.claim(worker, 50) for _ in range(10)))
    taken = [task for part in parts for task in part]
    assert len(taken) == 5 == await kit.redis.scard(f"worker_tasks:{worker}")
    assert await kit.settle(taken[0]) == COMPLETED
    assert len(await kit.claim(worker, 50)) == 1
    await kit.sound()


@pytest.mark.req("PQ-068", "PQ-069", "PQ-070", "PQ-136", "PQ-161")
async def test_only_an_active_worker_is_given_anything(kit: Kit) -> None:
    """One that drains may still report what it holds."""
    worker = await kit.worker()
    task = await kit.running(worker)
    await kit.add()
    assert (await kit.workers.transition(worker, "drain", kit.call("worker"))).applied
    assert await kit.claim(worker, wait_s=5.0) == []
    assert await kit.settle(task) == COMPLETED
    assert await kit.claim("nobody", wait_s=5.0) == []
    assert (await kit.workers.transition(worker, "resume", kit.call("worker"))).applied
    assert len(await kit.claim(worker)) == 1


@pytest.mark.req("PQ-079", "PQ-050", "PQ-144", "PQ-048", "PQ-056")
async def test_a_result_ends_the_task_and_frees_the_slot(make_kit: MakeKit) -> None:
    kit = await make_kit(TASK_RETENTION_SECONDS=100)
    worker = await kit.worker(1)
    task = await kit.running(worker)
    await kit.add()
    assert await kit.settle(task, result='{"sum": 3}') == COMPLETED
    ended = await kit.task(task.task_id)
    assert (ended.status, ended.result, ended.deadline_at) == (COMPLETED, '{"sum": 3}', None)
    assert ended.completed_at is not None and ended.assigned_worker_id == worker
    assert 40_000 <= await kit.redis.pttl(f"tasks:{task.task_id}") <= 100_000
    assert len(await kit.claim(worker)) == 1
    await kit.sound()


@pytest.mark.req("PQ-083", "PQ-106", "PQ-107", "PQ-108", "PQ-109", "PQ-150", "PQ-086")
async def test_a_client_cancels_what_waits_or_runs(kit: Kit) -> None:
    """Whoever ran it has its slot back and is told once; what has ended stays as it is."""
    worker = await kit.worker()
    waiting = await kit.add(required_capabilities=("gpu",))
    assert await kit.cancel(waiting.task_id) == (True, CANCELLED)
    running = await kit.running(worker)
    assert await kit.cancel(running.task_id) == (True, CANCELLED)
    assert await kit.held_by(worker) == set()
    for key in (waiting.task_id, running.task_id):
        before = await kit.hash(key)
        assert await kit.cancel(key) == (False, CANCELLED)
        assert await kit.hash(key) == before
    with pytest.raises(NoSuchEntity):
        await kit.cancel("none")
    await kit.sound()


@pytest.mark.req("PQ-085", "PQ-214", "PQ-215", "PQ-216", "PQ-217", "PQ-120")
async def test_two_replays_of_a_dead_letter_queue_it_once(make_kit: MakeKit) -> None:
    """With all its tries and its first time limit, at the end of the queue of its priority."""
    kits = [await make_kit(), await make_kit()]
    kit = kits[0]
    for _ in range(20):
        task = await kit.running(priority=LOW, max_retries=0, timeout_seconds=10)
        assert await kit.fail(task) == DEAD_LETTER
        moved = await asyncio.gather(*(each.replay(task.task_id) for each in kits))
        assert sorted(each.applied for each in moved) == [False, True]
        now = await kit.task(task.task_id)
        assert (now.status, now.retry_count, now.timeout_seconds) == (QUEUED, 0, 10)
        assert (now.error, now.dead_reason, now.assigned_worker_id, now.completed_at) == (
            None,
            None,
            None,
            None,
        )
        assert now.queued_at > task.queued_at and now.created_at == task.created_at
        assert (await kit.queues())["low"] == [task.task_id]
        await kit.sound()
        assert await kit.settle((await kit.claim(await kit.worker()))[0]) == COMPLETED
        assert await kit.replay(task.task_id) == (
            False,
            COMPLETED,
        )


async def test_a_lease_is_made_longer_by_its_holder_alone(kit: Kit) -> None:
    task = await kit.running(timeout_seconds=60)
    held = LeaseProof(task.assigned_worker_id or "", 1)
    (renewed,) = await kit.tasks.renew([(task.task_id, held)], seconds=100)
    assert renewed is not None
    ends = renewed.deadline_at
    now = await kit.task(task.task_id)
    assert ends == now.deadline_at and ends is not None and task.started_at is not None
    assert ends - task.started_at > timedelta(seconds=99)
    assert await kit.redis.zscore("executing:deadlines", task.task_id) == to_microseconds(ends)
    others = [(task.task_id, LeaseProof("another", 1)), (task.task_id, LeaseProof(held.owner, 2))]
    assert await kit.tasks.renew(others, seconds=100) == [None, None]
    await kit.settle(task)
    assert await kit.tasks.renew([(task.task_id, held)], seconds=100) == [None]
    await kit.sound()


async def test_its_holder_tells_how_far_it_is(kit: Kit) -> None:
    task = await kit.running()
    held, call = LeaseProof(task.assigned_worker_id or "", 1), kit.call("worker")
    advance, given = TASK_ADVANCE.name, {"progress": '{"done": 3}'}
    assert (await kit.tasks.transition(task.task_id, advance, call, lease=held, given=given)).applied
    assert (await kit.task(task.task_id)).progress == '{"done": 3}'
    with pytest.raises(Condition):
        await kit.tasks.transition(task.task_id, advance, call, lease=LeaseProof("x", 1))
    with pytest.raises(GuardBreach):
        await kit.tasks.transition(task.task_id, advance, call, given=given)
    with pytest.raises(Condition):
        await kit.tasks.transition(task.task_id, advance, kit.call("client"), lease=held)
    with pytest.raises(NoSuchEntity):
        await kit.tasks.transition("none", advance, call, lease=held)
    assert (await kit.task(task.task_id)).progress == '{"done": 3}'


@pytest.mark.req("PQ-065", "PQ-149")
async def test_a_worker_that_is_heard_of_stays(kit: Kit) -> None:
    worker = await kit.worker()
    await kit.redis.zadd("workers:heartbeats", {worker: 5})
    given = {"reported_load": "7"}
    assert (await kit.workers.transition(worker, "beat", kit.call("worker"), given=given)).applied
    found = await kit.workers.get(worker)
    assert found is not None and found.reported_load == 7
    assert await kit.redis.zscore("workers:heartbeats", worker) == to_microseconds(found.last_heartbeat)


@pytest.mark.req("PQ-076")
async def test_a_worker_leaves_when_it_holds_nothing(kit: Kit) -> None:
    worker = await kit.worker()
    task = await kit.running(worker)
    with pytest.raises(Condition) as held:
        await kit.workers.delete(worker, ACTIVE, kit.call("worker"))
    assert held.value.grpc == "FAILED_PRECONDITION"
    await kit.settle(task)
    assert await kit.workers.delete(worker, ACTIVE, kit.call("worker")) == (True, ACTIVE)
    assert await kit.workers.get(worker) is None
    assert await kit.redis.zcard("workers:heartbeats") == 0 == await kit.redis.zcard("workers:status:active")
    with pytest.raises(NoSuchEntity):
        await kit.workers.delete(worker, ACTIVE, kit.call("worker"))


async def test_exchange_settles_and_takes_in_one_step(kit: Kit) -> None:
    """One call of the script for any number of results and tasks."""
    worker = await kit.worker(10)
    await kit.create(*(kit.intent() for _ in range(40)))
    taken = await kit.claim(worker, 10)
    await kit.tasks.exchange(worker, results(taken), 0, kit.call("worker"))
    rows = [await kit.task(key) for key in await kit.held_by(worker)]
    before = (await kit.redis.info("commandstats"))["cmdstat_evalsha"]["calls"]
    more, outcomes = await kit.tasks.exchange(worker, results(rows), 0, kit.call("worker"))
    after = (await kit.redis.info("commandstats"))["cmdstat_evalsha"]["calls"]
    assert outcomes == [COMPLETED] * 10 and len(more) == 10
    assert after - before == 1
    await kit.sound()


async def test_claims_that_are_under_way_together_all_find_what_comes_first(kit: Kit) -> None:
    """Each is one call of the script."""
    worker = await kit.worker(100)
    made = await kit.create(*(kit.intent() for _ in range(60)))
    await kit.claim(worker, 10)
    await kit.claim(worker, 10)
    before = (await kit.redis.info("commandstats"))["cmdstat_evalsha"]["calls"]
    parts = await asyncio.gather(*(kit.claim(worker, 10) for _ in range(2)))
    after = (await kit.redis.info("commandstats"))["cmdstat_evalsha"]["calls"]
    order = [each.record.task_id for each in made]
    assert [[task.task_id for task in part] for part in parts] == [order[20:30], order[30:40]]
    assert after - before == 2
    await kit.sound()


@pytest.mark.req("PQ-087", "PQ-089")
async def test_what_the_lifecycle_does_not_let_is_refused_before_it_is_sent(kit: Kit) -> None:
    task, call = await kit.running(), kit.call("worker")
    held = LeaseProof(task.assigned_worker_id or "", 1)
    for edge, error in (("abort", Condition), ("claim", GuardBreach), ("advance", GuardBreach)):
        (outcome,) = await kit.tasks.settle_many([LeaseSettlement(task.task_id, held, edge)], call)
        assert isinstance(outcome, error)
    with pytest.raises(Condition):
        await kit.tasks.claim("w", 1, kit.call("client"))
    for actor, edge in (("worker", "complete"), ("detector", "retry")):
        with pytest.raises(GuardBreach):
            await kit.tasks.transition(task.task_id, edge, kit.call(actor))
    with pytest.raises(Condition):
        await kit.tasks.transition(task.task_id, "complete", kit.call("client"))
    with pytest.raises(GuardBreach):
        await kit.tasks.run_due("advance", kit.call("detector"))
    assert (await kit.task(task.task_id)) == task


def results(tasks: Sequence[TaskRecord]) -> list[LeaseSettlement]:
    """That each of some tasks is done."""
    return [
        settlement(
            task.task_id,
            COMPLETED,
            LeaseProof(task.assigned_worker_id or "", task.attempt),
            {"result": "null"},
        )
        for task in tasks
    ]
