"""What the clock drives: promotion, time-outs, workers that died, delays, and old dead letters."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from generated.priority.lifecycle import (
    TASK,
    TASK_RAISE_LOW,
    TASK_RAISE_MEDIUM,
    TASK_RELEASE,
    TASK_RETRY,
    WORKER_LOSE,
    WORKER_LOSE_DRAINING,
)
from generated.priority.messages import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    DRAINING,
    HIGH,
    LOW,
    MEDIUM,
    QUEUED,
)
from runtime.conditions import Condition
from runtime.redis.rows import microseconds, moment_of
from runtime.store import GuardBreach
from tests.runtime.redis.conftest import MakeKit
from tests.runtime.redis.kit import Kit


@pytest.mark.req("PQ-009", "PQ-010", "PQ-016", "PQ-018", "PQ-019", "PQ-032", "PQ-221")
async def test_a_low_task_is_raised_after_ten_minutes(kit: Kit) -> None:
    """At its place by age, with a line in the log and a count; one that has waited a second less stays."""
    old, young = await kit.add(priority=LOW), await kit.add(priority=LOW)
    await kit.back_date(old.task_id, 601)
    await kit.back_date(young.task_id, 599)
    score = await kit.redis.zscore("queue:low", old.task_id)
    assert await kit.sweep(TASK_RAISE_LOW) == 1
    assert await kit.queues() == {"high": [], "medium": [old.task_id], "low": [young.task_id]}
    assert await kit.redis.zscore("queue:medium", old.task_id) == score
    now = await kit.task(old.task_id)
    assert (now.priority, now.effective_priority) == (LOW, MEDIUM)
    (line,) = kit.lines.read_back("shift")
    assert (line["task_id"], line["from"], line["to"], line["trace_id"]) == (
        old.task_id,
        "low",
        "medium",
        old.trace_id,
    )
    assert 601 <= line["age_seconds"] < 605
    assert await kit.redis.hget("metrics", "tasks_promoted_total|low|medium") == "1"
    await kit.sound()


@pytest.mark.req("PQ-012", "PQ-013", "PQ-020")
async def test_a_medium_task_is_raised_after_twenty_minutes_and_a_high_one_never(kit: Kit) -> None:
    ages = {MEDIUM: (1201, 1199), HIGH: (86_400,)}
    made = {}
    for priority, seconds in ages.items():
        for age in seconds:
            made[priority, age] = await kit.add(priority=priority)
            await kit.back_date(made[priority, age].task_id, age)
    assert (await kit.sweep(TASK_RAISE_LOW), await kit.sweep(TASK_RAISE_MEDIUM)) == (0, 1)
    queues = await kit.queues()
    assert queues["high"] == [made[HIGH, 86_400].task_id, made[MEDIUM, 1201].task_id]
    assert queues["medium"] == [made[MEDIUM, 1199].task_id]
    await kit.sound()


@pytest.mark.req("PQ-011")
async def test_the_threshold_itself_is_enough(make_kit: MakeKit) -> None:
    """A threshold of nothing is reached at once, because a wait of exactly so long counts."""
    kit = await make_kit(LOW_TO_MEDIUM_SECONDS=0)
    await kit.add(priority=LOW)
    assert await kit.sweep(TASK_RAISE_LOW) == 1


@pytest.mark.req("PQ-014", "PQ-015", "PQ-017", "PQ-193")
async def test_the_wait_counts_from_the_submission_through_both_steps(kit: Kit) -> None:
    """A low task of twenty minutes makes both steps in one cycle and is ahead of younger high ones."""
    native, old = await kit.add(priority=HIGH), await kit.add(priority=LOW)
    await kit.back_date(old.task_id, 1201)
    await kit.back_date(native.task_id, 10)
    for _ in range(2):
        assert await kit.sweep(TASK_RAISE_LOW) + await kit.sweep(TASK_RAISE_MEDIUM) == 2
        assert (await kit.queues())["high"] == [old.task_id, native.task_id]
        (task,) = await kit.claim(await kit.worker(1))
        assert task.task_id == old.task_id
        await kit.fail(task)
    assert await kit.redis.hget("metrics", "tasks_promoted_total|medium|high") == "2"


@pytest.mark.req("PQ-021", "PQ-022", "PQ-023", "PQ-024", "PQ-030")
async def test_batches_are_bounded_oldest_first_and_repeated(make_kit: MakeKit) -> None:
    kit = await make_kit(PROMOTION_BATCH_SIZE=100)
    made = [each.record.task_id for each in await kit.create(*(kit.intent(priority=LOW) for _ in range(250)))]
    await kit.back_date_all(made, 2000)
    assert await kit.tasks.sweep(TASK_RAISE_LOW, TASK_RAISE_LOW.due, kit.call("promoter")) == 100  # type: ignore[arg-type]
    assert (await kit.queues())["medium"] == made[:100]
    assert await kit.sweep(TASK_RAISE_LOW) == 150
    assert await kit.queues() == {"high": [], "medium": made, "low": []}
    await kit.sound()


@pytest.mark.req("PQ-027")
async def test_two_promoters_raise_each_task_once(make_kit: MakeKit) -> None:
    kits = [await make_kit(), await make_kit()]
    made = await kits[0].create(*(kits[0].intent(priority=LOW) for _ in range(500)))
    await kits[0].back_date_all([each.record.task_id for each in made], 700)
    changed = await asyncio.gather(*(kit.sweep(TASK_RAISE_LOW) for kit in kits))
    assert sum(changed) == 500
    assert await kits[0].redis.hget("metrics", "tasks_promoted_total|low|medium") == "500"
    await kits[0].sound()


@pytest.mark.req("PQ-029")
async def test_a_key_without_a_task_is_forgotten(kit: Kit) -> None:
    """It is taken out and told of, and does not stop the others; a claim does the same."""
    made = await kit.add(priority=LOW)
    await kit.back_date(made.task_id, 700)
    await kit.redis.zadd("queue:low", {"ghost": 1})
    assert await kit.sweep(TASK_RAISE_LOW) == 2
    assert await kit.queues() == {"high": [], "medium": [made.task_id], "low": []}
    (line,) = kit.lines.read_back("forgotten")
    assert line["task_id"] == "ghost"
    for name in ("queue:high", "queue:high:cap:any"):
        await kit.redis.zadd(name, {"ghost": 1})
    await kit.redis.zadd("queue:high:cap:any", {"in one part only": 1})
    (task,) = await kit.claim(await kit.worker(1))
    assert task.task_id == made.task_id
    assert await kit.redis.exists("queue:high", "queue:high:cap:any") == 0
    await kit.sound()


@pytest.mark.req("PQ-175", "PQ-176", "PQ-177", "PQ-178", "PQ-195", "PQ-223")
async def test_a_task_runs_out_of_its_own_time(kit: Kit) -> None:
    """One of a second is given up, one of an hour is left alone however long it has run already."""
    worker = await kit.worker()
    short = await kit.running(worker, timeout_seconds=1)
    long = await kit.running(worker, timeout_seconds=3600)
    assert await kit.sweep(TASK_RETRY) == 0
    past = await kit.now() - 1
    await kit.redis.hset(f"tasks:{short.task_id}", "deadline_at", past)
    await kit.redis.zadd("executing:deadlines", {short.task_id: past})
    assert await kit.sweep(TASK_RETRY) == 1
    now = await kit.task(short.task_id)
    assert (now.status, now.retry_count, now.error) == (QUEUED, 1, "the task ran out of time")
    assert await kit.tasks.held_by(worker) == {long.task_id}
    assert await kit.tasks.taken_from(worker) == {short.task_id}
    assert await kit.redis.hget("metrics", "task_retries_total|medium|timeout") == "1"
    assert (await kit.outbox(short.task_id))[-1]["reason"] == "timeout"
    assert isinstance(await kit.settle(short), Condition)
    await kit.sound()


@pytest.mark.req("PQ-082")
async def test_running_out_of_time_may_be_the_last_failure(kit: Kit) -> None:
    task = await kit.running(timeout_seconds=1, max_retries=0)
    await kit.redis.hset(f"tasks:{task.task_id}", "deadline_at", 1)
    await kit.redis.zadd("executing:deadlines", {task.task_id: 1})
    assert await kit.sweep(TASK_RETRY) == 1
    now = await kit.task(task.task_id)
    assert (now.status, now.dead_reason) == (DEAD_LETTER, "max_retries_exceeded")
    assert await kit.redis.hget("metrics", "tasks_dlq_total") == "1"
    assert await kit.redis.hget("metrics", "task_retries_total|medium|timeout") is None
    await kit.sound()


async def test_the_script_looks_at_the_clock_itself(kit: Kit) -> None:
    """An index that says that something is due does not make it so."""
    task = await kit.running(timeout_seconds=3600)
    await kit.redis.zadd("executing:deadlines", {task.task_id: 1})
    assert await kit.sweep(TASK_RETRY) == 0
    assert await kit.task(task.task_id) == task


@pytest.mark.req("PQ-066", "PQ-067", "PQ-169", "PQ-170", "PQ-171", "PQ-173", "PQ-181", "PQ-227")
async def test_the_tasks_of_a_dead_worker_are_queued_again(make_kit: MakeKit) -> None:
    """Two detectors do what one does, also where the first died between the two steps."""
    kits = [await make_kit(), await make_kit()]
    kit = kits[0]
    silent, heard = await kit.worker(10), await kit.worker(10)
    await kit.create(*(kit.intent() for _ in range(8)))
    taken = await kit.claim(silent, 4)
    others = await kit.claim(heard, 4)
    assert await kit.settle(taken[0]) == COMPLETED
    for worker, age in ((silent, 91), (heard, 89)):
        at = await kit.now() - age * 1_000_000
        await kit.redis.hset(f"workers:{worker}", "last_heartbeat", at)
        await kit.redis.zadd("workers:heartbeats", {worker: at})
    lost = await asyncio.gather(*(each.sweep(WORKER_LOSE) for each in kits))
    assert sorted(lost) == [0, 1]
    found = await kit.workers.get(silent)
    assert found is not None and found.status == DEAD
    queued = await asyncio.gather(*(each.sweep(TASK_RETRY, TASK_RETRY.also_due) for each in kits))
    assert sum(queued) == 3
    for task in taken[1:]:
        now = await kit.task(task.task_id)
        assert (now.status, now.retry_count, now.error) == (QUEUED, 1, "the worker was not heard of any more")
    assert (await kit.task(taken[0].task_id)).status == COMPLETED
    assert await kit.tasks.held_by(heard) == {task.task_id for task in others}
    assert await kit.redis.hget("metrics", "task_retries_total|medium|worker_lost") == "3"
    assert await kit.redis.hget("metrics", "worker_heartbeat_failures_total") == "1"
    assert await kit.claim(silent) == []
    await kit.sound()


async def test_those_who_drain_and_those_who_do_not_are_each_lost_their_own_way(make_kit: MakeKit) -> None:
    """However many of the others stand before them in the index."""
    kit = await make_kit()
    from runtime.redis import sweeping

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeping, "MOST", 2)
        draining = [await kit.worker() for _ in range(5)]
        for worker in draining:
            await kit.workers.move(worker, ACTIVE, DRAINING, kit.call("worker"))
        active = await kit.worker()
        for place, worker in enumerate((*draining, active)):
            at = await kit.now() - (200 - place) * 1_000_000
            await kit.redis.hset(f"workers:{worker}", "last_heartbeat", at)
            await kit.redis.zadd("workers:heartbeats", {worker: at})
        assert await kit.sweep(WORKER_LOSE) == 1
        assert await kit.sweep(WORKER_LOSE_DRAINING) == 5
    assert await kit.workers.census() == {ACTIVE: 0, DRAINING: 0, DEAD: 6}


async def test_a_delayed_task_is_released_when_its_time_has_come(kit: Kit) -> None:
    later = moment_of(await kit.now()) + timedelta(milliseconds=60)
    made = await kit.add(available_at=later)
    assert await kit.sweep(TASK_RELEASE) == 0
    await asyncio.sleep(0.1)
    waiting = asyncio.create_task(kit.claim(await kit.worker(), wait_s=5.0))
    await asyncio.sleep(0.05)
    assert await kit.sweep(TASK_RELEASE) == 1
    assert [task.task_id for task in await waiting] == [made.task_id]
    await kit.sound()


@pytest.mark.req("PQ-212")
async def test_old_dead_letters_are_deleted(kit: Kit) -> None:
    """After thirty days with their hash; one of twenty-nine stays."""
    dead = []
    for _ in range(2):
        task = await kit.running(max_retries=0)
        assert await kit.fail(task) == DEAD_LETTER
        dead.append(task.task_id)
    for key, days in zip(dead, (31, 29), strict=True):
        at = await kit.now() - days * 86_400_000_000
        await kit.redis.hset(f"tasks:{key}", "completed_at", at)
        await kit.redis.zadd("queue:dlq", {key: at})
    assert await kit.sweep(None, TASK.deletion_due) == 1
    assert await kit.redis.exists(f"tasks:{dead[0]}") == 0
    assert await kit.redis.zrange("queue:dlq", 0, -1) == [dead[1]]
    await kit.sound()


async def test_a_dead_letter_is_purged_and_nothing_else_is(kit: Kit) -> None:
    admin = kit.call("admin")
    task = await kit.running(max_retries=0)
    assert await kit.tasks.delete(task.task_id, DEAD_LETTER, admin) == (False, task.status)
    await kit.fail(task)
    with pytest.raises(Condition):
        await kit.tasks.delete(task.task_id, DEAD_LETTER, kit.call("client"))
    with pytest.raises(GuardBreach):
        await kit.tasks.delete(task.task_id, COMPLETED, admin)
    assert await kit.tasks.delete(task.task_id, DEAD_LETTER, admin) == (True, DEAD_LETTER)
    assert await kit.redis.exists("queue:dlq", f"tasks:{task.task_id}") == 0
    await kit.sound()


async def test_only_the_component_of_the_clock_drives_it(kit: Kit) -> None:
    assert TASK_RETRY.due is not None
    with pytest.raises(Condition):
        await kit.tasks.sweep(TASK_RETRY, TASK_RETRY.due, kit.call("promoter"))
    with pytest.raises(Condition):
        await kit.tasks.sweep(TASK_RETRY, TASK_RETRY.due, kit.call("worker"))


@pytest.mark.req("PQ-056")
async def test_what_has_expired_leaves_the_indexes_too(make_kit: MakeKit) -> None:
    """Ended tasks are counted for as long as they are kept; sets of needs that nobody has are forgotten."""
    kit = await make_kit(TASK_RETENTION_SECONDS=0.1)
    worker = await kit.worker(10, "gpu")
    task = await kit.running(worker, required_capabilities=("gpu",))
    await kit.settle(task)
    cancelled, waiting = await kit.add(required_capabilities=("tpu",)), await kit.add()
    await kit.tasks.move_to(cancelled.task_id, CANCELLED, kit.call("client"))
    assert (await kit.tasks.census())[COMPLETED] == 1
    assert await kit.redis.hlen("queue:capabilities") == 3
    await asyncio.sleep(0.15)
    assert await kit.tasks.get(task.task_id) is None
    assert (await kit.tasks.census())[COMPLETED] == 0
    assert await kit.tasks.trim() == 4
    assert await kit.redis.hkeys("queue:capabilities") == ["any"]
    assert await kit.redis.exists("tasks:status:completed", "tasks:status:cancelled") == 0
    assert [each.task_id for each in await kit.claim(worker)] == [waiting.task_id]
    again = await kit.add(required_capabilities=("gpu",))
    assert [each.task_id for each in await kit.claim(worker)] == [again.task_id]
    await kit.sound()


async def test_a_due_time_is_told_as_the_store_has_it(kit: Kit) -> None:
    task = await kit.running()
    assert task.deadline_at is not None
    assert microseconds(task.deadline_at) == int((await kit.hash(task.task_id))["deadline_at"])
