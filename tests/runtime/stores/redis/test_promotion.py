"""Promotion: who has waited for long is raised, at its age, once, and before anybody else of its queue."""

from __future__ import annotations

import asyncio
import time

import pytest

from generated.priority.lifecycle import (
    TASK_RAISE_LOW,
    TASK_RAISE_MEDIUM,
)
from generated.priority.messages import (
    HIGH,
    LOW,
    MEDIUM,
)
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit


@pytest.mark.req("PQ-009", "PQ-010", "PQ-016", "PQ-018", "PQ-019", "PQ-032", "PQ-221")
async def test_a_low_task_is_raised_after_ten_minutes(kit: Kit) -> None:
    """At its place by age, with a line in the log and a count; one that has waited a little less stays."""
    began = time.monotonic()
    old, young = await kit.add(priority=LOW), await kit.add(priority=LOW)
    await kit.back_date(old.task_id, 601)
    await kit.back_date(young.task_id, 540)
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
    assert 601 <= line["age_seconds"] <= 602 + time.monotonic() - began
    assert await kit.redis.hget("metrics", "tasks_promoted_total|low|medium") == "1"
    await kit.sound()


@pytest.mark.req("PQ-012", "PQ-013", "PQ-020")
async def test_a_medium_task_is_raised_after_twenty_minutes_and_a_high_one_never(kit: Kit) -> None:
    ages = {MEDIUM: (1201, 1140), HIGH: (86_400,)}
    made = {}
    for priority, seconds in ages.items():
        for age in seconds:
            made[priority, age] = await kit.add(priority=priority)
            await kit.back_date(made[priority, age].task_id, age)
    assert (await kit.sweep(TASK_RAISE_LOW), await kit.sweep(TASK_RAISE_MEDIUM)) == (0, 1)
    queues = await kit.queues()
    assert queues["high"] == [made[HIGH, 86_400].task_id, made[MEDIUM, 1201].task_id]
    assert queues["medium"] == [made[MEDIUM, 1140].task_id]
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
    assert await kit.tasks.run_due("raise_low", kit.call("promoter")) == 100
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
    assert await kit.sweep(TASK_RAISE_LOW) == 1
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
