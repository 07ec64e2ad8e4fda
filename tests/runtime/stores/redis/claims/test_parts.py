"""Who can do what: sets of needs are kept apart, so that no task hides another, at any depth."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from generated.priority.messages import HIGH, LOW, MEDIUM
from runtime.stores.redis.codec import compute_signature
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit
from tests.support.eventually import eventually


@pytest.mark.req("PQ-158", "PQ-007", "PQ-157")
async def test_tasks_that_do_not_fit_hide_nothing(kit: Kit) -> None:
    await kit.create(*(kit.intent(required_capabilities=("gpu",)) for _ in range(1000)))
    plain = await kit.add()
    worker = await kit.worker(5)
    assert [task.task_id for task in await kit.claim(worker, 5)] == [plain.task_id]
    assert await kit.redis.zcard("queue:medium") == 1000
    assert {each["to"] for each in await kit.outbox() if each["key"] != plain.task_id} == {"queued"}


@pytest.mark.req("PQ-072", "PQ-073", "PQ-074", "PQ-039")
async def test_everything_that_is_needed_must_be_offered(kit: Kit) -> None:
    """Every set of needs against every set of offers, compared letter by letter."""
    tags = ("gpu", "GPU", "eu")
    sets = [subset for size in range(4) for subset in itertools.combinations(tags, size)]
    tasks = {needs: await kit.add(required_capabilities=needs, max_retries=10) for needs in sets}
    for offers in sets:
        worker = await kit.worker(100, *offers)
        taken = await kit.claim(worker)
        fitting = [needs for needs in sets if set(needs) <= set(offers)]
        assert {task.task_id for task in taken} == {tasks[needs].task_id for needs in fitting}
        for task in taken:
            await kit.fail(task)
    await kit.sound()


async def test_the_order_of_the_tags_makes_no_difference(kit: Kit) -> None:
    one, other = (
        await kit.add(required_capabilities=("a", "b")),
        await kit.add(required_capabilities=("b", "a")),
    )
    assert compute_signature(("b", "a", "b")) == compute_signature(("a", "b"))
    assert await kit.redis.zcard(f"queue:medium:cap:{compute_signature(('a', 'b'))}") == 2
    worker = await kit.worker(5, "b", "a")
    assert [task.task_id for task in await kit.claim(worker)] == [one.task_id, other.task_id]
    assert (await kit.task(other.task_id)).required_capabilities == ("b", "a")


@pytest.mark.req("PQ-006", "PQ-155")
async def test_fitting_parts_are_served_together_by_age(kit: Kit) -> None:
    made = [
        await kit.add(priority=priority, required_capabilities=needs)
        for priority in (LOW, MEDIUM, HIGH)
        for needs in ((), ("a",), ("b",), ("a", "b"), ("c",), ())
    ]
    worker = await kit.worker(100, "a", "b")
    taken = []
    for most in (1, 4, 2, 100):
        taken += [task.task_id for task in await kit.claim(worker, most)]
    fitting = [task for task in made if "c" not in task.required_capabilities]
    by_priority = sorted(fitting, key=lambda task: (task.priority, task.created_at))
    assert taken == [task.task_id for task in by_priority]


async def test_an_offer_may_be_narrowed_and_never_widened(kit: Kit) -> None:
    plain, gpu = await kit.add(), await kit.add(required_capabilities=("gpu",))
    tpu = await kit.add(required_capabilities=("tpu",))
    worker = await kit.worker(100, "gpu")
    assert [task.task_id for task in await kit.claim(worker, offers=())] == [plain.task_id]
    assert [task.task_id for task in await kit.claim(worker, offers=("gpu", "tpu"))] == [gpu.task_id]
    assert (await kit.task(tpu.task_id)).assigned_worker_id is None


@pytest.mark.req("PQ-156", "PQ-257", "PQ-256", "PQ-258")
async def test_a_poll_costs_the_same_at_any_depth(make_kit: MakeKit) -> None:
    """The commands of one poll are counted at 100 and at 100,000 tasks that wait."""
    kit, counts = await make_kit(level="WARNING", MAX_QUEUE_DEPTH=0), {}
    worker = await kit.worker(100, "gpu")
    await kit.create(*(kit.intent() for _ in range(20)))
    later = await kit.now() + 3_600_000_000
    for depth in (100, 100_000):
        # Whatever stands behind the first ones is never looked at, so its hashes need not be there.
        behind = {f"later-{number}": later + number for number in range(depth)}
        for name in (
            "queue:medium",
            "queue:medium:cap:any",
            f"queue:medium:cap:{compute_signature(('tpu',))}",
        ):
            await kit.redis.zadd(name, behind)
        await kit.claim(worker, 1)
        await kit.redis.config_resetstat()
        assert len(await kit.claim(worker, 5)) == 5
        stats = await kit.redis.info("commandstats")
        counts[depth] = {
            name: row["calls"] for name, row in stats.items() if name != "cmdstat_config|resetstat"
        }
        counts[depth].pop("cmdstat_info", None)
        counts[depth].pop("cmdstat_config", None)
    assert counts[100] == counts[100_000]
    assert sum(counts[100].values()) < 60


@pytest.mark.req("PQ-163", "PQ-094")
async def test_whoever_waits_is_woken_at_once(make_kit: MakeKit) -> None:
    """By a new task, a retry, a replay or a queue that goes on; from another process too."""
    kits = [await make_kit(), await make_kit()]
    kit, other = kits
    worker = await kit.worker()

    async def woken(step: object) -> str:
        waiting = asyncio.create_task(kit.claim(worker, wait_s=60.0))
        await eventually(lambda: kit.waiting, "the worker waits")
        await step  # type: ignore[misc]
        async with asyncio.timeout(60):
            (task,) = await waiting
        held.append(task)
        return task.task_id

    held: list = []  # type: ignore[type-arg]
    await woken(other.add(max_retries=1))
    await woken(kit.fail(held.pop()))
    await kit.fail(held[-1])

    await woken(other.replay(held.pop().task_id))
    await other.tasks.pause(MEDIUM)
    await other.add()
    await woken(other.tasks.resume(MEDIUM))


@pytest.mark.parametrize(("waiters", "rounds"), [(10, 10), (100, 2)])
async def test_of_many_who_wait_each_gets_what_it_can_do(
    make_kit: MakeKit, waiters: int, rounds: int
) -> None:
    """As many tasks as waiters in one moment: nobody is forgotten, whatever each of them is able to do."""
    kits = [await make_kit(level="WARNING"), await make_kit(level="WARNING")]
    tags, numbers = ["a", "b"], range(waiters)
    for _ in range(rounds):
        workers = [await kits[n % 2].worker(1, tags[n % 2]) for n in numbers]
        waiting = [
            asyncio.create_task(kits[n % 2].claim(each, 1, wait_s=90.0)) for n, each in enumerate(workers)
        ]
        await eventually(lambda: sum(each.waiting for each in kits) == waiters)
        intents = [kits[0].intent(required_capabilities=(tags[n % 2],)) for n in numbers]
        await asyncio.gather(*(kits[n % 2].create(each) for n, each in enumerate(intents)))
        async with asyncio.timeout(60):
            taken = await asyncio.gather(*waiting)
        keys = [task.task_id for part in taken for task in part]
        assert sorted(keys) == sorted(each.task_id for each in intents)


async def test_waiting_ends_when_its_time_is_over(kit: Kit) -> None:
    loop = asyncio.get_running_loop()
    began, worker = loop.time(), await kit.worker()
    assert await kit.claim(worker, wait_s=0.2) == []
    assert loop.time() - began > 0.15


async def test_a_queue_that_is_paused_is_not_served(kit: Kit) -> None:
    """The others are, and whoever has peeked already gets nothing of it either."""
    high, low = await kit.add(priority=HIGH), await kit.add(priority=LOW)
    worker = await kit.worker()
    await kit.tasks.pause(HIGH)
    assert await kit.tasks.paused() == {HIGH}
    assert [task.task_id for task in await kit.claim(worker)] == [low.task_id]
    await kit.tasks.resume(HIGH)
    assert [task.task_id for task in await kit.claim(worker)] == [high.task_id]
    assert await kit.tasks.paused() == set()


async def test_the_sets_that_occur_are_known(kit: Kit) -> None:
    await kit.add(required_capabilities=("b", "a"))
    known = await kit.redis.hgetall("queue:capabilities")
    assert {mark: sorted(json.loads(texts)) for mark, texts in known.items()} == {
        compute_signature(("a", "b")): ["a", "b"]
    }
    assert len(compute_signature(("a", "b"))) == 16 and compute_signature(()) == "any"
