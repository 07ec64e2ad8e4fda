"""What is told of many tasks at once: pages, sizes, states, and what was counted a moment ago."""

from __future__ import annotations

import time

import pytest

from generated.priority.messages import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD_LETTER,
    EXECUTING,
    FAILED,
    HIGH,
    LOW,
    MEDIUM,
    QUEUED,
)
from generated.priority.records import WorkerRecord
from runtime.stores.contract import Backlog
from runtime.stores.redis.codec import parse_moment
from runtime.stores.store import GuardBreach
from tests.runtime.stores.redis.kit import Kit


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
    wanted = [*made[:11:-1], *made[4::-1], *sorted(made[5:12])]
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
    with pytest.raises(GuardBreach, match="nonsense"):
        await kit.tasks.find(equal={"nonsense": 1})


async def test_one_that_has_expired_is_left_out(kit: Kit) -> None:
    kept, gone = await kit.add(), await kit.add()
    await kit.redis.delete(f"tasks:{gone.task_id}")
    assert await pages(kit, 10) == [[kept.task_id]]


async def test_parts_of_a_listing_by_number(kit: Kit) -> None:
    made = [each.record.task_id for each in await kit.create(*(kit.intent() for _ in range(5)))]
    records, more = await kit.tasks.find(states=[QUEUED], offset=1, size=2, newest_first=True)
    assert ([each.task_id for each in records], bool(more)) == ([made[3], made[2]], True)
    records, more = await kit.tasks.find(offset=3, size=2, newest_first=False)
    assert ([each.task_id for each in records], more) == ([made[3], made[4]], None)


@pytest.mark.req("PQ-113", "PQ-114", "PQ-119")
async def test_sizes_and_ages_of_the_queues(kit: Kit) -> None:
    nothing = Backlog(0, 0.0)
    assert await kit.tasks.backlog() == {HIGH: nothing, MEDIUM: nothing, LOW: nothing}
    old, began = await kit.add(priority=HIGH), time.monotonic()
    await kit.add(priority=HIGH)
    await kit.back_date(old.task_id, 45)
    sizes = await kit.tasks.backlog()
    assert sizes[HIGH].entities == 2
    assert 45 <= sizes[HIGH].oldest_s <= 46 + time.monotonic() - began
    assert sizes[LOW] == nothing


@pytest.mark.req("PQ-224", "PQ-115")
async def test_how_many_are_in_each_state(kit: Kit) -> None:
    counts = await kit.tasks.count()
    assert counts == dict.fromkeys((QUEUED, EXECUTING, COMPLETED, FAILED, CANCELLED, DEAD_LETTER), 0)
    worker = await kit.worker()
    await kit.create(*(kit.intent(max_retries=0) for _ in range(6)))
    one, two, three, *_ = await kit.claim(worker, 4)
    await kit.settle(one)
    await kit.settle(two, FAILED)
    await kit.fail(three)
    counts = await kit.tasks.count()
    assert counts == {
        QUEUED: 2,
        EXECUTING: 1,
        COMPLETED: 1,
        FAILED: 1,
        CANCELLED: 0,
        DEAD_LETTER: 1,
    }


@pytest.mark.req("PQ-118")
async def test_what_ended_within_the_last_seconds(kit: Kit) -> None:
    worker = await kit.worker()
    await kit.create(*(kit.intent() for _ in range(5)))
    tasks, began = await kit.claim(worker), parse_moment(await kit.now())
    for task in tasks[:3]:
        await kit.settle(task)
    for task in tasks[3:]:
        await kit.settle(task, FAILED)
    ended = (COMPLETED, FAILED, DEAD_LETTER)
    assert await kit.tasks.count(ended, since=began) == {COMPLETED: 3, FAILED: 2, DEAD_LETTER: 0}
    later = parse_moment(await kit.now() + 1)
    assert await kit.tasks.count(ended, since=later) == dict.fromkeys(ended, 0)


async def test_without_a_history_there_is_none(kit: Kit) -> None:
    made = await kit.add()
    assert await kit.tasks.history(made.task_id) == []


@pytest.mark.req("PQ-116")
async def test_whoever_goes_on_while_it_is_listed_is_not_told_as_what_it_was(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is narrowed by state has no other states."""
    staying, going = [await kit.worker() for _ in range(2)]
    read_all = kit.workers._read_all

    async def read_late(keys: list[str]) -> list[WorkerRecord | None]:
        await kit.workers.transition(going, "drain", kit.call("worker"))
        return await read_all(keys)

    monkeypatch.setattr(kit.workers, "_read_all", read_late)
    found, _ = await kit.workers.find(states=[ACTIVE])
    assert [each.worker_id for each in found] == [staying]
