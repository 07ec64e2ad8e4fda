"""What is told of many tasks at once: pages, sizes, states, and what was counted a moment ago."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from generated.priority.lifecycle import WORKER_LOSE
from generated.priority.messages import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    DRAINING,
    EXECUTING,
    FAILED,
    HIGH,
    LOW,
    MEDIUM,
    QUEUED,
)
from generated.priority.records import WorkerRecord
from runtime.stores.store import GuardBreach, Size
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit
from tests.support.eventually import eventually


async def pages(kit: Kit, size: int, **options: object) -> list[list[str]]:
    """All pages of a listing."""
    found, after = [], None
    while True:
        records, after = await kit.tasks.find(after=after, size=size, **options)  # type: ignore[arg-type]
        found.append([each.task_id for each in records])
        if after is None:
            return found


async def test_a_listing_is_newest_first_and_complete(kit: Kit) -> None:
    """Also where several have the same moment, which then are told by their keys."""
    made = [each.record.task_id for each in await kit.create(*(kit.intent() for _ in range(25)))]
    for key in made[5:12]:
        await kit.redis.hset(f"tasks:{key}", "updated_at", 1000)
        await kit.redis.zadd("tasks:status:queued", {key: 1000})
    wanted = [*made[:11:-1], *made[4::-1], *sorted(made[5:12], reverse=True)]
    for size in (1, 3, 7, 25, 100):
        assert [key for page in await pages(kit, size) for key in page] == wanted


async def test_a_listing_is_narrowed_by_state_and_fields(kit: Kit) -> None:
    worker = await kit.worker()
    await kit.create(*(kit.intent(task_type=f"t{n % 3}") for n in range(30)))
    for task in await kit.claim(worker, 10):
        await kit.settle(task)
    assert [len(page) for page in await pages(kit, 50, states=[COMPLETED])] == [10]
    found = [
        key
        for page in await pages(kit, 4, states=[COMPLETED, QUEUED], equal={"task_type": "t1"})
        for key in page
    ]
    assert len(found) == len(set(found)) == 10
    records, _ = await kit.tasks.find(
        states=[QUEUED], equal={"task_type": "t1", "priority": MEDIUM}, size=100
    )
    assert {(each.status, each.task_type) for each in records} == {(QUEUED, "t1")}
    with pytest.raises(ValueError, match="nonsense"):
        await kit.tasks.find(equal={"nonsense": 1})


async def test_one_that_has_expired_is_left_out(kit: Kit) -> None:
    kept, gone = await kit.add(), await kit.add()
    await kit.redis.delete(f"tasks:{gone.task_id}")
    assert await pages(kit, 10) == [[kept.task_id]]


async def test_parts_of_a_listing_by_number(kit: Kit) -> None:
    made = [each.record.task_id for each in await kit.create(*(kit.intent() for _ in range(5)))]
    records, more = await kit.tasks.page([QUEUED], 1, 2, newest_first=True)
    assert ([each.task_id for each in records], more) == ([made[3], made[2]], True)
    records, more = await kit.tasks.page([], 3, 2, newest_first=False)
    assert ([each.task_id for each in records], more) == ([made[3], made[4]], False)


@pytest.mark.req("PQ-113", "PQ-114", "PQ-119")
async def test_sizes_and_ages_of_the_queues(kit: Kit) -> None:
    nothing = Size(0, 0.0)
    assert await kit.tasks.sizes("waiting") == {HIGH: nothing, MEDIUM: nothing, LOW: nothing}
    old, began = await kit.add(priority=HIGH), time.monotonic()
    await kit.add(priority=HIGH)
    await kit.back_date(old.task_id, 45)
    sizes = await kit.tasks.sizes("waiting")
    assert sizes[HIGH].entities == 2
    assert 45 <= sizes[HIGH].oldest_s <= 46 + time.monotonic() - began
    assert sizes[LOW] == nothing


@pytest.mark.req("PQ-224", "PQ-115")
async def test_how_many_are_in_each_state(kit: Kit) -> None:
    counts, _ = await kit.tasks.census()
    assert counts == dict.fromkeys((QUEUED, EXECUTING, COMPLETED, FAILED, CANCELLED, DEAD_LETTER), 0)
    worker = await kit.worker()
    await kit.create(*(kit.intent(max_retries=0) for _ in range(6)))
    one, two, three, *_ = await kit.claim(worker, 4)
    await kit.settle(one)
    await kit.settle(two, FAILED)
    await kit.fail(three)
    counts, _ = await kit.tasks.census()
    assert counts == {
        QUEUED: 2,
        EXECUTING: 1,
        COMPLETED: 1,
        FAILED: 1,
        CANCELLED: 0,
        DEAD_LETTER: 1,
    }


@pytest.mark.req("PQ-118")
async def test_what_ended_within_the_last_seconds(make_kit: MakeKit) -> None:
    kit = await make_kit(STATS_WINDOW_SECONDS=120)
    assert await kit.tasks.recent("tasks_ended_recently") == {
        ("completed",): 0,
        ("failed",): 0,
        ("dead_letter",): 0,
    }
    worker = await kit.worker()
    await kit.create(*(kit.intent() for _ in range(5)))
    tasks = await kit.claim(worker)
    for task in tasks[:3]:
        await kit.settle(task)
    for task in tasks[3:]:
        await kit.settle(task, FAILED)
    assert await kit.tasks.recent("tasks_ended_recently") == {
        ("completed",): 3,
        ("failed",): 2,
        ("dead_letter",): 0,
    }
    kit.tasks._entities.variables = {**kit.values, "STATS_WINDOW_SECONDS": 1}
    await eventually(
        lambda: kit.tasks.recent("tasks_ended_recently"), wanted=lambda recent: set(recent.values()) == {0}
    )
    with pytest.raises(GuardBreach):
        await kit.tasks.recent("tasks_dlq_total")


async def test_without_a_history_there_is_none(kit: Kit) -> None:
    made = await kit.add()
    assert await kit.tasks.history(made.task_id) == [] and await kit.tasks.ended(made.task_id) is None


@pytest.mark.req("PQ-116")
async def test_whoever_changes_while_it_is_counted_is_counted_once(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One dies and one leaves between the count and the reading of the records."""
    dying, leaving, staying = [await kit.worker(capacity) for capacity in (1, 10, 100)]
    silent_since = await kit.now() - 91_000_000
    await kit.redis.hset(f"workers:{dying}", "last_heartbeat", silent_since)
    await kit.redis.zadd("workers:heartbeats", {dying: silent_since})
    read_all = kit.workers._entities.read_all

    async def read_late(keys: Sequence[str]) -> list[WorkerRecord | None]:
        await kit.workers.delete(leaving, ACTIVE, kit.call("worker"))
        assert await kit.sweep(WORKER_LOSE) == 1
        return await read_all(keys)

    monkeypatch.setattr(kit.workers._entities, "read_all", read_late)
    counts, found = await kit.workers.census([ACTIVE, DRAINING])
    assert counts == {ACTIVE: 2, DRAINING: 0, DEAD: 0}
    assert {(each.worker_id, each.capacity) for each in found} == {(dying, 1), (staying, 100)}


async def test_whoever_goes_on_while_it_is_listed_is_not_told_as_what_it_was(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is narrowed by state has no other states."""
    staying, going = [await kit.worker() for _ in range(2)]
    read_all = kit.workers._entities.read_all

    async def read_late(keys: Sequence[str]) -> list[WorkerRecord | None]:
        await kit.workers.move(going, ACTIVE, DRAINING, kit.call("worker"))
        return await read_all(keys)

    monkeypatch.setattr(kit.workers._entities, "read_all", read_late)
    found, _ = await kit.workers.find(states=[ACTIVE])
    assert [each.worker_id for each in found] == [staying]
