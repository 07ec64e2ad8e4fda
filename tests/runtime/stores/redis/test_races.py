"""Many at once on the same tasks: every one of them ends in one way, and no step is done twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from generated.priority.lifecycle import TASK_RAISE_LOW, TASK_RETRY, WORKER_LOSE
from generated.priority.messages import CANCELLED, COMPLETED, DEAD_LETTER, EXECUTING, FAILED, LOW, QUEUED
from generated.priority.records import TaskRecord
from runtime.stores.contract import LeaseProof
from runtime.stores.semantics import clocks
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit, gathered, settlement
from tests.support.chaos import Chaos

TASKS = 50
"""So many tasks are raced for in each round."""
ENDED = (COMPLETED, FAILED, CANCELLED)


async def overdue(kit: Kit, tasks: list[TaskRecord]) -> None:
    """Lets the time of running tasks be over."""
    pipeline = kit.redis.pipeline(transaction=False)
    for task in tasks:
        pipeline.hset(f"tasks:{task.task_id}", "deadline_at", 1)
        pipeline.zadd("executing:deadlines", {task.task_id: 1}, xx=True)
    await pipeline.execute()


async def silent(kit: Kit, worker: str) -> None:
    """Lets a worker look as if nobody had heard of it for long."""
    await kit.redis.hset(f"workers:{worker}", "last_heartbeat", 1)
    await kit.redis.zadd("workers:heartbeats", {worker: 1}, xx=True)


@pytest.mark.chaos
@pytest.mark.req("PQ-088", "PQ-179", "PQ-016", "PQ-086", "PQ-004", "PQ-180")
async def test_detectors_results_cancels_and_promoters_race_for_the_same_tasks(
    make_kit: MakeKit, monkeypatch: pytest.MonkeyPatch, chaos: Chaos
) -> None:
    """Each running task leaves its attempt exactly once, whoever is first; the count grows by one at most."""
    monkeypatch.setattr(clocks, "BATCH", 4)
    kits = [await make_kit(level="WARNING", LOW_TO_MEDIUM_SECONDS=0) for _ in range(3)]
    kit = kits[0]
    winners: Counter[str] = Counter()
    for number, chance in enumerate(chaos.rounds(8)):
        worker = await kit.worker(TASKS)
        await kit.create(*(kit.intent(priority=LOW, max_retries=number % 2) for _ in range(TASKS)))
        tasks = await kit.claim(worker, TASKS)
        assert len(tasks) == TASKS
        await overdue(kit, tasks[::2])
        await silent(kit, worker)
        await kit.sweep(WORKER_LOSE)
        keys = [task.task_id for task in tasks]
        chance.shuffle(keys)

        async def report(
            keys: list[str] = keys, worker: str = worker, chance: random.Random = chance
        ) -> list[int | Exception]:
            found: list[int | Exception] = []
            for start in range(0, TASKS, 5):
                asked = [
                    settlement(
                        key,
                        chance.choice((COMPLETED, FAILED, QUEUED)),
                        LeaseProof(worker, 1),
                        {"reason": "reported"},
                    )
                    for key in keys[start : start + 5]
                ]
                found += await kits[1].tasks.settle_many(asked, kits[1].call("worker"))
            return found

        async def cancel(keys: list[str] = keys) -> list[object]:
            return await gathered(*(kits[2].cancel(key) for key in keys[::-2]))

        work = [
            report(),
            cancel(),
            kit.sweep(TASK_RETRY),
            kits[1].sweep(TASK_RETRY, TASK_RETRY.dues[1]),
            kits[2].sweep(TASK_RETRY),
            kits[0].sweep(TASK_RAISE_LOW),
            kits[1].sweep(TASK_RAISE_LOW),
        ]
        chance.shuffle(work)
        outcomes = await gathered(*work)
        assert not [each for each in outcomes if isinstance(each, BaseException)]
        diary: dict[str, list[dict[str, str]]] = {}
        for entry in await kit.outbox():
            diary.setdefault(entry["key"], []).append(entry)
        for key in keys:
            now, told = await kit.task(key), diary[key]
            steps = [(each.get("from"), each["to"]) for each in told]
            left = [to for source, to in steps if source == "executing"]
            assert len(left) == 1, steps
            assert now.retry_count == (left == ["queued"])
            assert now.retry_count <= (now.max_retries or 0)
            assert now.status != EXECUTING
            assert [int(each["sequence"]) for each in told] == list(range(1, len(told) + 1))
            if now.status in ENDED and left != ["queued"]:
                assert steps[-1][0] == "executing"
            winners[left[0]] += 1
        await kit.sound()
        await kit.redis.flushall()
    chaos.count(tasks=winners.total(), left_twice=0)
    assert winners.keys() >= {"queued", "completed", "failed", "cancelled", "dead_letter"}


@pytest.mark.chaos
@pytest.mark.req("PQ-026", "PQ-160", "PQ-166", "PQ-254", "PQ-025")
async def test_promoters_and_a_hundred_pollers_deliver_each_task_once(
    make_kit: MakeKit, chaos: Chaos
) -> None:
    kits = [await make_kit(level="WARNING") for _ in range(4)]
    kit = kits[0]
    made = [
        each.record.task_id
        for _ in range(chaos.size(2, 6))
        for each in await kit.create(*(kit.intent(priority=LOW) for _ in range(500)))
    ]
    pipeline, old = kit.redis.pipeline(transaction=False), await kit.now() - 700_000_000
    for place, key in enumerate(made):
        pipeline.hset(f"tasks:{key}", "queued_at", old + place)
        pipeline.zadd("queue:low", {key: old + place})
        pipeline.zadd("queue:low:cap:any", {key: old + place})
    await pipeline.execute()
    delivered: Counter[str] = Counter()

    async def poll(number: int) -> None:
        own = kits[number % 4]
        worker = await own.worker(5)
        while tasks := await own.claim(worker, 5):
            delivered.update(task.task_id for task in tasks)
            results = [
                settlement(task.task_id, COMPLETED, LeaseProof(worker, task.attempt)) for task in tasks
            ]
            assert await own.tasks.settle_many(results, own.call("worker")) == [COMPLETED] * len(tasks)

    await asyncio.gather(
        *(poll(number) for number in range(100)), *(each.sweep(TASK_RAISE_LOW) for each in kits)
    )
    assert delivered == Counter(made)
    chaos.count(tasks=len(made), delivered_twice=0)
    assert await kit.queues() == {"high": [], "medium": [], "low": []}
    await kit.sound()


@pytest.mark.chaos
@pytest.mark.req("PQ-111")
async def test_of_a_cancel_and_a_claim_one_wins(make_kit: MakeKit, chaos: Chaos) -> None:
    """A cancelled task is never delivered, and a delivered one is never cancelled as if it had waited."""
    kits = [await make_kit(level="WARNING"), await make_kit(level="WARNING")]
    for _ in chaos.rounds(6):
        made = [each.record.task_id for each in await kits[0].create(*(kits[0].intent() for _ in range(50)))]
        cancelled, delivered = await asyncio.gather(cancel_all(kits[1], made), claim_all(kits[0]))
        assert cancelled | delivered == set(made)
        assert not cancelled & delivered
        chaos.count(cancelled=len(cancelled), delivered=len(delivered))
        await kits[0].sound()
        await kits[0].redis.flushall()


async def cancel_all(kit: Kit, keys: list[str]) -> set[str]:
    """Cancels what waits; what that was."""
    moved = [(key, await kit.tasks.transition(key, "cancel", kit.call("client"))) for key in keys]
    return {key for key, each in moved if each.applied}


async def claim_all(kit: Kit) -> set[str]:
    """Claims one by one; what that was."""
    worker = await kit.worker(2000)
    return {task.task_id for _ in range(60) for task in await kit.claim(worker, 1)}


@pytest.mark.chaos
@pytest.mark.req("PQ-004", "PQ-213")
async def test_whatever_happens_every_index_agrees_with_every_task(make_kit: MakeKit, chaos: Chaos) -> None:
    """Random steps by four processes at once, looked at after every bout."""
    kits = [await make_kit(MAX_QUEUE_DEPTH=60, RETRY_BACKOFF_SECONDS=0.001) for _ in range(4)]
    needs = [(), ("gpu",), ("gpu", "eu"), ("tpu",)]

    async def bout(kit: Kit, chance: random.Random) -> None:
        worker = await kit.worker(8, *chance.choice(needs))
        held: list[TaskRecord] = []
        for _ in range(25):
            step = chance.randrange(8)
            if step <= 1:
                await kit.create(
                    *(
                        kit.intent(
                            priority=chance.randint(1, 3),
                            required_capabilities=chance.choice(needs),
                            max_retries=1,
                        )
                        for _ in range(chance.randint(1, 4))
                    )
                )
            elif step <= 3:
                held += await kit.claim(worker, chance.randint(1, 4))
            elif step == 4 and held:
                await kit.settle(held.pop(), chance.choice((COMPLETED, FAILED)))
            elif step == 5 and held:
                await kit.fail(held.pop())
            elif step == 6:
                (found, _) = await kit.tasks.find(size=5)
                for task in found:
                    await kit.cancel(task.task_id)
            else:
                (dead, _) = await kit.tasks.find(states=[DEAD_LETTER], size=2)
                for task in dead:
                    await kit.replay(task.task_id)
                await kit.sweep(TASK_RETRY)
                from generated.priority.lifecycle import TASK_RELEASE

                await kit.sweep(TASK_RELEASE)
                await kit.tasks.trim()

    for chance in chaos.rounds(3):
        await asyncio.gather(*(bout(kit, chance) for kit in kits))
        await kits[0].sound()
