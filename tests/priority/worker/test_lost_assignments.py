"""Tasks that a worker never heard of, or dropped: the manager learns of them, and takes none for one of them.

The worker's side is the real one, the manager is the real one on a real Redis, and what is between them is in
the hands of the test.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from generated.priority.errors import UpstreamUnavailable
from generated.priority.messages import (
    COMPLETED,
    EXECUTING,
    QUEUED,
    AssignedTask,
    ExchangeTasksRequest,
    HeartbeatRequest,
    RegisterWorkerRequest,
)
from generated.priority.settings import ManagerSettings, WorkerSettings
from handlers.jobs import Job, job
from handlers.priority.manager import Manager
from handlers.priority.manager_lease_store import ManagerLeaseStore
from handlers.priority.registration import Registration
from handlers.priority.worker import Worker
from runtime.stores.redis.connection.server import Unavailable
from runtime.stores.store import Held, Settling
from tests.priority.conftest import NewServers
from tests.runtime.stores.redis.kit import WORLD, Kit
from tests.support.eventually import eventually

AWAY = {"REDIS_URL": "redis://nowhere", "DATABASE_URL": "postgresql://nowhere/none"}
RUNS: Counter[tuple[str, int]] = Counter()


@job("counted")
async def counted(given: Job) -> Any:
    """Tells that it runs, and takes a moment or none."""
    RUNS[given.job_id, given.attempt] += 1
    if given.attempt % 2:
        await asyncio.sleep(0.001)
    return {}


class Link:
    """A manager at the other end of a connection: what it did is done, whatever becomes of its answers."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.beats: list[HeartbeatRequest] = []
        self.is_cut = False
        self.after_exchange: Callable[[], Awaitable[None]] = self.nothing

    async def nothing(self) -> None:
        """The answer goes through."""

    async def lose(self) -> None:
        """The answer does not."""
        raise UpstreamUnavailable(service="manager")

    async def exchange_tasks(self, request: ExchangeTasksRequest, call: Any) -> Any:
        if self.is_cut:
            await self.lose()
        answer = await self._manager.exchange_tasks(request, call)
        await self.after_exchange()
        return answer

    async def heartbeat(self, request: HeartbeatRequest, call: Any) -> Any:
        self.beats.append(request)
        return await self._manager.heartbeat(request, call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


class Scene:
    """A worker and a manager with a link between them."""

    def __init__(self, kit: Kit, interval_s: float = 30.0) -> None:
        self.kit = kit
        self.call = kit.call("worker")
        pace = {"HEARTBEAT_INTERVAL_SECONDS": str(interval_s)}
        self.manager = Manager(kit.tasks, kit.workers, ManagerSettings.load({**AWAY, **pace}), WORLD)
        self.link = Link(self.manager)
        self.service: Any = self.link

    async def worker(self) -> Registration:
        """A worker that is registered and has been heard of."""
        made = Registration(self.service, RegisterWorkerRequest(capacity=100), self.call)
        await made.register()
        await made.send_heartbeat()
        return made

    def lane(self, worker: Registration, wait_s: float = 0.0) -> ManagerLeaseStore:
        return ManagerLeaseStore(self.service, worker, self.call, wait_s)

    async def waits(self, lane: ManagerLeaseStore) -> asyncio.Task[bool]:
        """A lane that waits for a task, and is known to."""
        await lane.exchange("", [], 10, self.call)
        waiting = asyncio.create_task(lane.awaited(60))
        while not await self.kit.redis.exists("queue:idle"):
            assert not waiting.done()
            await asyncio.sleep(0.005)
        return waiting

    async def took(self, lane: ManagerLeaseStore) -> list[AssignedTask]:
        return list((await lane.exchange("", [], 10, self.call)).taken)

    async def took_in_vain(self, lane: ManagerLeaseStore) -> None:
        """Tasks are taken, and the worker never hears of them."""
        self.link.after_exchange = self.link.lose
        with pytest.raises(UpstreamUnavailable):
            await self.took(lane)
        self.link.after_exchange = self.link.nothing

    async def state(self, key: str) -> tuple[int, int, int]:
        task = await self.kit.task(key)
        return task.status, task.attempt, task.retry_count


@pytest.fixture
def redis_url(new_servers: NewServers) -> str:
    """A Redis with nobody else in it: an API would take away what is written for the history."""
    return new_servers().redis_url


@pytest.fixture
async def kit(redis_url: str) -> AsyncIterator[Kit]:
    made = await Kit(redis_url, level="INFO").open()
    yield made
    await made.close()


@pytest.fixture
def scene(kit: Kit) -> Scene:
    return Scene(kit)


@pytest.mark.req("PQ-137")
async def test_a_hand_out_that_never_arrived_is_given_to_another(scene: Scene) -> None:
    """The first heartbeat after it learns the time, the next gives it back; what the worker runs it keeps."""
    worker = await scene.worker()
    lane = scene.lane(worker)
    known = await scene.kit.add()
    (mine,) = await scene.took(lane)
    assert mine.task_id == known.task_id
    lost, calm = await scene.kit.add(), worker.next_heartbeat_at
    await scene.took_in_vain(lane)
    assert worker.next_heartbeat_at < calm, "it does not wait as long as usual"
    await worker.send_heartbeat()
    await worker.send_heartbeat()
    assert worker.next_heartbeat_at >= calm
    assert await scene.state(lost.task_id) == (QUEUED, 1, 1)
    assert await scene.state(known.task_id) == (EXECUTING, 1, 0)
    assert (await scene.kit.outbox(lost.task_id))[-1]["reason"] == "worker_lost"
    (again,) = await scene.took(lane)
    assert (again.task_id, again.attempt) == (lost.task_id, 2)
    for _ in range(3):
        await worker.send_heartbeat()
    assert await scene.state(lost.task_id) == (EXECUTING, 2, 1)
    await scene.kit.sound()


@pytest.mark.req("PQ-137")
async def test_a_hand_out_that_the_manager_never_heard_of_is_given_to_another(scene: Scene) -> None:
    """Redis has settled one and handed out the next, and its answer is lost on the way to the manager."""
    worker, server = await scene.worker(), scene.kit.server
    lane, done = scene.lane(worker), await scene.kit.add()
    (mine,) = await scene.took(lane)
    lost, calm = await scene.kit.add(), worker.next_heartbeat_at
    given = Settling(mine.task_id, Held(worker.worker_id, mine.attempt), COMPLETED, {"result": "{}"})
    run = server.run

    async def loses(commands: Any, *, repeatable: bool = False, line: str = "main") -> Any:
        answers = await run(commands, repeatable=repeatable, line=line)
        # The answer that hands it out is the one to lose, however many exchanges come before that one: the
        # text of a script may be missing, and the news of a task may arrive later than the claim that looks.
        if not repeatable and (await scene.state(lost.task_id))[0] == EXECUTING:
            raise Unavailable("the connection was lost", unknown=True)
        return answers

    server.run = loses  # type: ignore[method-assign]
    taken, (away,) = await lane.exchange("", [given], 10, scene.call)
    server.run = run  # type: ignore[method-assign]
    assert not taken and isinstance(away, UpstreamUnavailable)
    assert await scene.state(lost.task_id) == (EXECUTING, 1, 0)
    assert worker.next_heartbeat_at < calm, "it does not wait as long as usual"
    assert await lane.settle_all([given], scene.call) == [COMPLETED]
    await worker.send_heartbeat()
    await worker.send_heartbeat()
    assert await scene.state(done.task_id) == (COMPLETED, 1, 0)
    assert await scene.state(lost.task_id) == (QUEUED, 1, 1)
    await scene.kit.sound()


@pytest.mark.req("PQ-137")
async def test_a_task_that_was_handed_over_unheard_is_given_to_another(scene: Scene) -> None:
    """Its creation leased it to the worker that waited, and the connection broke before that was told."""
    worker, kit = await scene.worker(), scene.kit
    lane = scene.lane(worker, wait_s=60.0)
    waiting = await scene.waits(lane)
    await kit.add()
    await waiting
    (known,) = worker.leases
    waiting, calm = await scene.waits(lane), worker.next_heartbeat_at
    (channel,) = kit.tasks._bell._others
    kit.tasks._bell._others[channel] = lambda _: None
    lost = await kit.add()
    assert await scene.state(lost.task_id) == (EXECUTING, 1, 0)
    await kit.redis.client_kill_filter(_type="pubsub")
    await waiting
    assert worker.next_heartbeat_at < calm, "it does not wait as long as usual"
    await worker.send_heartbeat()
    await worker.send_heartbeat()
    assert await scene.state(lost.task_id) == (QUEUED, 1, 1)
    assert await scene.state(known[0]) == (EXECUTING, 1, 0)
    await kit.sound()


async def test_what_comes_for_a_worker_that_leaves_is_given_back(scene: Scene) -> None:
    """Nobody takes it any more when the poll that was under way brings it."""
    worker = await scene.worker()
    lane = scene.lane(worker, wait_s=60.0)
    waiting = await scene.waits(lane)
    task = await scene.kit.add()
    await waiting
    assert await scene.state(task.task_id) == (EXECUTING, 1, 0)
    await lane.release_undelivered(scene.call)
    assert await scene.state(task.task_id) == (QUEUED, 1, 0)


@pytest.mark.req("PQ-137")
async def test_what_is_on_its_way_is_not_taken_for_lost(scene: Scene) -> None:
    """Heartbeats overtake the answer, as many as like; the task stays with its worker."""
    worker = await scene.worker()
    lane, task = scene.lane(worker), await scene.kit.add()
    arrives, is_done = asyncio.Event(), asyncio.Event()

    async def late() -> None:
        is_done.set()
        await arrives.wait()

    scene.link.after_exchange = late
    taking = asyncio.create_task(scene.took(lane))
    await is_done.wait()
    for _ in range(4):
        await worker.send_heartbeat()
        assert not scene.link.beats[-1].running
        assert await scene.state(task.task_id) == (EXECUTING, 1, 0)
    arrives.set()
    (mine,) = await taking
    for _ in range(3):
        await worker.send_heartbeat()
    assert list(scene.link.beats[-1].running) == [mine.task_id]
    given = Settling(mine.task_id, Held(worker.worker_id, mine.attempt), COMPLETED, {"result": "{}"})
    assert await lane.settle_all([given], scene.call) == [COMPLETED]
    await scene.kit.sound()


async def test_one_lane_loses_while_another_waits(scene: Scene) -> None:
    """What is on its way to one is left alone; what the other has lost comes back as soon as that is in."""
    worker = await scene.worker()
    one, other = scene.lane(worker), scene.lane(worker)
    coming = await scene.kit.add()
    arrives, is_done = asyncio.Event(), asyncio.Event()

    async def late() -> None:
        is_done.set()
        await arrives.wait()

    scene.link.after_exchange = late
    taking = asyncio.create_task(scene.took(one))
    await is_done.wait()
    lost = await scene.kit.add()
    await scene.took_in_vain(other)
    for _ in range(3):
        await worker.send_heartbeat()
    assert await scene.state(coming.task_id) == (EXECUTING, 1, 0)
    arrives.set()
    (mine,) = await taking
    await worker.send_heartbeat()
    assert await scene.state(lost.task_id) == (QUEUED, 1, 1)
    assert await scene.state(mine.task_id) == (EXECUTING, 1, 0)


async def test_a_heartbeat_that_comes_again_harms_nothing(scene: Scene) -> None:
    """Each is delivered once more when the worker runs others than it named; all of them stay its own."""
    worker = await scene.worker()
    lane = scene.lane(worker)
    for _ in range(4):
        made = await scene.kit.add()
        (mine,) = await scene.took(lane)
        assert mine.task_id == made.task_id
        await worker.send_heartbeat()
    for late in [*scene.link.beats]:
        await scene.manager.heartbeat(late, scene.call)
    assert {row.status for row in [await scene.kit.task(key) for key, _ in worker.leases]} == {EXECUTING}
    assert len(worker.leases) == 4


async def test_a_result_that_is_not_in_yet_is_still_named(scene: Scene) -> None:
    """As long as the worker tries to report it, nobody else is given the task."""
    worker = await scene.worker()
    lane, task = scene.lane(worker), await scene.kit.add()
    (mine,) = await scene.took(lane)
    await worker.send_heartbeat()
    given = Settling(mine.task_id, Held(worker.worker_id, mine.attempt), COMPLETED, {"result": "{}"})
    scene.link.is_cut = True
    (away,) = await lane.settle_all([given], scene.call)
    assert isinstance(away, UpstreamUnavailable)
    for _ in range(3):
        await worker.send_heartbeat()
    assert await scene.state(task.task_id) == (EXECUTING, 1, 0)
    scene.link.is_cut = False
    assert await lane.settle_all([given], scene.call) == [COMPLETED]
    await worker.send_heartbeat()
    assert await scene.state(task.task_id) == (COMPLETED, 1, 0)


async def test_an_outcome_that_was_dropped_is_run_by_another(scene: Scene) -> None:
    """The worker names it no longer; in doubt it is heard of soon, and only until the doubt is over."""
    worker = await scene.worker()
    lane, task = scene.lane(worker), await scene.kit.add()
    (mine,) = await scene.took(lane)
    calm = worker.next_heartbeat_at
    worker.on_lost(mine.task_id, mine.attempt)
    assert worker.next_heartbeat_at < calm
    await worker.send_heartbeat()
    await worker.send_heartbeat()
    assert await scene.state(task.task_id) == (QUEUED, 1, 1)
    assert worker.next_heartbeat_at >= calm
    worker.on_lost(mine.task_id, mine.attempt)
    assert worker.next_heartbeat_at >= calm, "it has been told of that"


@pytest.mark.parametrize("slots", [5, 60])
async def test_answers_are_lost_all_the_time_and_everything_ends_once(kit: Kit, slots: int) -> None:
    """A worker with one lane and one with two: one run of each attempt, and no task waits for its time."""
    scene, chance = Scene(kit, 0.05), random.Random(7)
    RUNS.clear()

    async def perhaps() -> None:
        await asyncio.sleep(chance.choice((0, 0.02)))
        if chance.random() < 0.3:
            await scene.link.lose()

    scene.link.after_exchange = perhaps
    made = [
        each.record.task_id
        for each in await kit.create(
            *(kit.intent(task_type="counted", timeout_seconds=3600, max_retries=100) for _ in range(200))
        )
    ]
    settings = WorkerSettings.load(
        {"MANAGER_ADDR": "nowhere:1", "WORKER_CAPACITY": str(slots), "POLL_WAIT_MS": "20"}
    )
    stopping = asyncio.Event()
    working = asyncio.create_task(Worker(scene.service, settings, WORLD).run(scene.call, stopping))
    await eventually(
        lambda: kit.redis.zcard("tasks:status:completed"),
        wanted=lambda number: number >= len(made),
        patience=240,
    )
    scene.link.after_exchange = scene.link.nothing
    stopping.set()
    await working
    assert set(RUNS.values()) == {1}
    ended = [await kit.task(key) for key in made]
    assert all(task.attempt == task.retry_count + 1 for task in ended)
    assert sum(task.retry_count for task in ended) > 0, "some answers were lost with tasks in them"
    assert {key for key, _ in RUNS} == set(made)
    await kit.sound()
