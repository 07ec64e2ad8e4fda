"""Handing over: a new task goes to a worker that waits for it, in the script that creates it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from generated.priority import errors
from generated.priority.messages import COMPLETED, DRAINING, EXECUTING, HIGH, LOW, MEDIUM, QUEUED
from generated.priority.records import TaskRecord
from runtime.embedded.redis import EmbeddedRedis
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit
from tests.support.eventually import eventually

IDLE = "queue:idle"


@asynccontextmanager
async def waiting(
    kit: Kit, worker: str, wait_s: float = 60.0
) -> AsyncIterator[asyncio.Task[list[TaskRecord]]]:
    """A worker that waits, and is known to."""
    task = asyncio.create_task(kit.claim(worker, 5, wait_s=wait_s))
    async with asyncio.timeout(60):
        while not await kit.redis.hexists(IDLE, worker):
            assert not task.done(), task
            await asyncio.sleep(0.005)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def told_of(creator: Kit, kit: Kit, worker: str) -> None:
    """Lets a creator know that the worker waits now and then."""
    async with waiting(kit, worker) as claim:
        await creator.add()
        (task,) = await claim
    await kit.settle(task)


async def claims(kit: Kit) -> int:
    """How many exchanges the server has had."""
    found: dict[str, Any] = await kit.redis.info("commandstats")
    return int(found.get("cmdstat_evalsha", {"calls": 0})["calls"])


@pytest.mark.req("PQ-163", "PQ-094")
async def test_a_task_is_handed_to_whoever_waits(make_kit: MakeKit) -> None:
    """With no exchange but the one that creates it, and all that a creation and a claim would write."""
    kit, other = await make_kit(), await make_kit()
    worker = await kit.worker()
    await told_of(other, kit, worker)
    async with waiting(kit, worker) as claim:
        before = await claims(kit)
        (made,) = await other.create(other.intent(parameters='{"a": "\\n\\u00e4 \\" %d"}', priority=LOW))
        (task,) = await claim
        assert await claims(kit) == before + 1
    assert made.is_new and made.position == 1 and made.record.status == QUEUED
    assert task == await kit.task(made.record.task_id)
    assert (task.status, task.attempt, task.assigned_worker_id) == (EXECUTING, 1, worker)
    assert task.started_at == task.queued_at == task.created_at
    assert [(each["sequence"], each["to"], each["actor"]) for each in await kit.outbox(task.task_id)] == [
        ("1", "queued", "client"),
        ("2", "executing", "worker"),
    ]
    await kit.sound()
    assert await kit.settle(task) == COMPLETED
    await kit.sound()


async def test_what_is_handed_over_is_logged_and_counted(make_kit: MakeKit) -> None:
    kit, other = await make_kit(), await make_kit()
    worker = await kit.worker()
    await told_of(other, kit, worker)
    async with waiting(kit, worker) as claim:
        await other.add()
        (task,) = await claim
    (line,) = [each for each in kit.lines.read_back("transition") if each.get("task_id") == task.task_id]
    assert (line["transition"], line["assigned_worker_id"], line["attempt"]) == ("claim", worker, 1)


async def test_any_text_can_be_handed_over(make_kit: MakeKit) -> None:
    kit, other = await make_kit(), await make_kit()
    worker = await kit.worker(5, "a b", "|", "ü", "x |y")
    await told_of(other, kit, worker)
    for text in ("{}", '{"x": "\\u2028 \U0001f6b2 \\\\ \\" \' %s ]] \\n"}', '{"' + "k" * 5000 + '": null}'):
        for needs in ((), ("a b",), ("|", "ü")):
            async with waiting(kit, worker) as claim:
                (made,) = await other.create(other.intent(parameters=text, required_capabilities=needs))
                (task,) = await claim
            assert (task.task_id, task.parameters) == (made.record.task_id, text)
            assert set(task.required_capabilities) == set(needs)
            # Of needs that nobody has had before a worker cannot know, so that it has to look.
            assert text == "{}" or task.started_at == task.queued_at
            await kit.settle(task)


async def _paused(kit: Kit, _worker: str) -> None:
    await kit.tasks.pause(MEDIUM, paused=True)


async def _draining(kit: Kit, worker: str) -> None:
    await kit.workers.move_to(worker, DRAINING, kit.call("worker"))


async def _full(kit: Kit, worker: str) -> None:
    await kit.redis.sadd(f"worker_tasks:{worker}", *map(str, range(20)))


async def _unheard(kit: Kit, _worker: str) -> None:
    await kit.redis.client_kill_filter(_type="pubsub")


async def _gone(kit: Kit, worker: str) -> None:
    await kit.redis.delete(f"workers:{worker}")


@pytest.mark.parametrize("obstacle", [_paused, _draining, _full, _unheard, _gone])
async def test_nothing_is_handed_over_where_it_cannot_be_taken(make_kit: MakeKit, obstacle: Any) -> None:
    """It waits then, as if nobody had been named."""
    kit, other = await make_kit(), await make_kit()
    worker = await kit.worker(20)
    await told_of(other, kit, worker)
    async with waiting(kit, worker) as claim:
        await obstacle(kit, worker)
        bell = kit.tasks._bell
        rings = bell.rings
        task = await other.add()
        if obstacle is _unheard:
            # That worker hears again soon, and takes what there is.
            assert [each.task_id for each in await claim] == [task.task_id]
            return
        assert await kit.redis.exists(IDLE) == 0
        await eventually(
            lambda: bell.rings > rings and (bell._waiting or claim.done()),
            "the worker has looked",
        )
        assert (await kit.task(task.task_id)).status == QUEUED


async def test_what_nobody_hears_of_is_as_if_it_had_never_been_handed_over(make_kit: MakeKit) -> None:
    """The process that has left the note is gone."""
    kit, other = await make_kit(), await make_kit()
    worker = await kit.worker()
    await told_of(other, kit, worker)
    async with waiting(kit, worker) as claim:
        _, rest = (await kit.redis.hget(IDLE, worker)).split(" ", 1)
        await kit.redis.hset(IDLE, worker, f"nobody {rest}")
        made = await other.add()
        (task,) = await claim
    assert (task.task_id, task.attempt, task.started_at != task.queued_at) == (made.task_id, 1, True)
    assert [each["to"] for each in await kit.outbox(task.task_id)] == ["queued", "executing"]
    await kit.sound()


async def test_a_server_without_memory_hands_nothing_over(
    own_server: EmbeddedRedis, make_kit: MakeKit
) -> None:
    """Whoever waits is told of no task that was refused."""
    kit, other = await make_kit(own_server.url), await make_kit(own_server.url)
    worker = await kit.worker()
    await told_of(other, kit, worker)
    async with waiting(kit, worker) as claim:
        await kit.redis.config_set("maxmemory", 100_000)
        with pytest.raises(errors.QueueFull):
            await other.add()
        await kit.redis.config_set("maxmemory", 0)
        # Whatever it was told came before this.
        assert await kit.tasks._bell.caught_up()
        assert await kit.redis.hexists(IDLE, worker) and not claim.done()
        made = await other.add()
        (task,) = await claim
        assert task.task_id == made.task_id
    await kit.sound()


async def test_a_task_that_needs_more_rings_for_others(make_kit: MakeKit) -> None:
    kit, other = await make_kit(), await make_kit()
    plain, able = await kit.worker(), await kit.worker(5, "gpu")
    await told_of(other, kit, plain)
    async with waiting(kit, plain) as first, waiting(kit, able) as second:
        made = await other.add(required_capabilities=("gpu",))
        (task,) = await second
        assert task.task_id == made.task_id and not first.done()


async def test_nothing_new_passes_what_came_before(make_kit: MakeKit) -> None:
    """A ring takes all notes away, so that whoever was named looks at everything first."""
    kit, other = await make_kit(), await make_kit()
    worker = await kit.worker(1)
    await told_of(other, kit, worker)
    async with waiting(kit, worker) as claim:
        older = [other.intent(priority=LOW), other.intent(priority=LOW)]
        # Two in one script are not handed over, and ring. The worker cannot look before the next is there.
        turns = kit.tasks._leases._turns  # type: ignore[union-attr]
        await turns.acquire()
        await turns.acquire()
        await other.create(*older)
        newer = await other.add(priority=LOW)
        assert (await kit.task(newer.task_id)).status == QUEUED
        turns.release()
        (task,) = await claim
    assert task.task_id == older[0].task_id


async def test_of_two_lanes_each_is_handed_what_it_waits_for(make_kit: MakeKit) -> None:
    kit, other = await make_kit(), await make_kit()
    worker = await kit.worker(10)
    await told_of(other, kit, worker)
    lanes = [asyncio.create_task(kit.claim(worker, 5, wait_s=60.0)) for _ in range(2)]
    made = set()
    for still_waiting in (2, 1):
        await eventually(lambda left=still_waiting: len(kit.tasks._bell._waiting) == left)  # type: ignore[misc]
        made.add((await other.add()).task_id)
    async with asyncio.timeout(60):
        taken = await asyncio.gather(*lanes)
    assert {task.task_id for part in taken for task in part} == made


async def test_a_wait_that_ends_leaves_nothing_behind(make_kit: MakeKit) -> None:
    """Neither by itself nor when whoever waits goes away."""
    kit = await make_kit()
    worker = await kit.worker()
    assert await kit.claim(worker, wait_s=0.1) == []
    assert await kit.redis.exists(IDLE) == 0
    async with waiting(kit, worker):
        pass
    await eventually(lambda: kit.redis.exists(IDLE), wanted=lambda exists: not exists)


async def test_no_task_is_lost_between_a_note_and_the_end_of_a_wait(make_kit: MakeKit) -> None:
    """Waits end at all moments around a creation; whatever is handed over is heard of."""
    kit, other = await make_kit(level="WARNING"), await make_kit(level="WARNING")
    worker, chance = await kit.worker(50), random.Random(6)

    async def is_handed(claim: asyncio.Task[list[TaskRecord]]) -> bool:
        """Whether a task that comes now is handed to the claim; if not it is there to be taken."""
        made = await other.add()
        (task,) = await claim or await kit.claim(worker, 5)
        assert task.task_id == made.task_id
        await kit.settle(task)
        return task.started_at == task.queued_at

    await told_of(other, kit, worker)
    async with waiting(kit, worker) as claim:
        assert await is_handed(claim)
    for _ in range(400):
        length = chance.uniform(0.0005, 0.004)
        claim = asyncio.create_task(kit.claim(worker, 5, wait_s=length))
        await asyncio.sleep(chance.uniform(0.0, 1.5 * length))
        await is_handed(claim)
    claim = asyncio.create_task(kit.claim(worker, 5, wait_s=0.001))
    await asyncio.wait({claim})
    assert not await is_handed(claim)


async def test_who_may_have_been_handed_something_unheard_is_told_so(make_kit: MakeKit) -> None:
    """The note is gone, and the connection broke before anything was heard: the holder has to ask."""
    kit, other = await make_kit(), await make_kit()
    worker = await kit.worker()
    await told_of(other, kit, worker)
    async with waiting(kit, worker) as claim:
        handing = kit.tasks._leases._handing  # type: ignore[union-attr]
        kit.tasks._bell._others[handing._channel] = lambda _: None  # It never arrives.
        await other.add()
        assert await kit.redis.hlen(IDLE) == 0
        await kit.redis.client_kill_filter(_type="pubsub")
        with pytest.raises(errors.ServiceUnavailable):
            await claim


async def test_many_creators_and_many_who_wait(make_kit: MakeKit) -> None:
    """Thousands of tasks while workers come, wait, take and go: each is taken by one of them, once."""
    kits = [await make_kit(level="WARNING") for _ in range(3)]
    makers, chance = [await make_kit(level="WARNING") for _ in range(2)], random.Random(11)
    made: list[str] = []
    taken: list[str] = []

    async def make(kit: Kit) -> None:
        for _ in range(500):
            task = await kit.add(priority=chance.choice((HIGH, MEDIUM, LOW)))
            made.append(task.task_id)
            if chance.random() < 0.3:
                await asyncio.sleep(chance.uniform(0, 0.003))

    async def work(kit: Kit) -> None:
        worker = await kit.worker(chance.choice((1, 3)))
        while True:
            found = await kit.claim(worker, 3, wait_s=chance.uniform(0.001, 0.02))
            taken.extend(task.task_id for task in found)
            for task in found:
                await kit.settle(task)
            if not found and making.done():
                return

    making = asyncio.gather(*map(make, makers))
    async with asyncio.timeout(120):
        await asyncio.gather(making, *(work(kit) for kit in kits for _ in range(3)))
        await work(kits[0])
    await kits[0].sound()
    assert sorted(taken) == sorted(made)
