"""Tasks whose assignment never reached the worker, or whose outcome was dropped, are requeued.

The worker's side is the real one, the manager is the real one on a real Redis, and the test controls
the connection between them.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from generated.priority.errors import UpstreamUnavailable
from generated.priority.lifecycle import TASK_COMPLETE
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
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.redis.connection.client import RedisUnavailable
from tests.priority.conftest import NewServers
from tests.runtime.stores.redis.kit import WORLD, Kit
from tests.support.eventually import eventually

AWAY = {"REDIS_URL": "redis://nowhere", "DATABASE_URL": "postgresql://nowhere/none"}
RUNS: Counter[tuple[str, int]] = Counter()


@job("counted")
async def count_run(job_: Job) -> Any:
    """Count the run, which lasts a moment or none."""
    RUNS[job_.job_id, job_.attempt] += 1
    if job_.attempt % 2:
        await asyncio.sleep(0.001)
    return {}


class Link:
    """A manager behind a connection that may lose its answers; the effects of its calls stay."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.beats: list[HeartbeatRequest] = []
        self.is_cut = False
        self.after_exchange: Callable[[], Awaitable[None]] = self.deliver

    async def deliver(self) -> None:
        """The answer arrives."""

    async def lose(self) -> None:
        """The answer does not arrive."""
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
        settings = {"HEARTBEAT_INTERVAL_SECONDS": str(interval_s)}
        self.manager = Manager(kit.tasks, kit.workers, ManagerSettings.load({**AWAY, **settings}), WORLD)
        self.link = Link(self.manager)
        self.service: Any = self.link

    async def register_worker(self) -> Registration:
        """Register a worker and send its first heartbeat."""
        registration = Registration(self.service, RegisterWorkerRequest(capacity=100), self.call)
        await registration.register()
        await registration.send_heartbeat()
        return registration

    def make_lane(self, worker: Registration, wait_s: float = 0.0) -> ManagerLeaseStore:
        return ManagerLeaseStore(self.service, worker, self.call, wait_s)

    async def start_waiting(self, lane: ManagerLeaseStore) -> asyncio.Task[bool]:
        """Let a lane wait for a task until the manager knows of it."""
        await lane.exchange("", [], 10, self.call)
        before = await self._count_calls()
        waiting = asyncio.create_task(lane.wait(60))
        await eventually(self._count_calls, "it has found nothing", lambda calls: calls > before)
        assert not waiting.done()
        return waiting

    async def _count_calls(self) -> int:
        stats: dict[str, Any] = await self.kit.redis.info("commandstats")
        return int(stats["cmdstat_evalsha"]["calls"])

    async def claim(self, lane: ManagerLeaseStore) -> list[AssignedTask]:
        return list((await lane.exchange("", [], 10, self.call)).claimed)

    async def claim_without_answer(self, lane: ManagerLeaseStore) -> None:
        """Tasks are claimed, and the worker never gets the answer."""
        self.link.after_exchange = self.link.lose
        with pytest.raises(UpstreamUnavailable):
            await self.claim(lane)
        self.link.after_exchange = self.link.deliver

    async def read_state(self, key: str) -> tuple[int, int, int]:
        task = await self.kit.task(key)
        return task.status, task.attempt, task.retry_count


def make_settlement(worker: Registration, task: AssignedTask) -> LeaseSettlement:
    """The settlement of a task that its worker has done."""
    lease = LeaseProof(worker.worker_id, task.attempt)
    return LeaseSettlement(task.task_id, lease, TASK_COMPLETE.name, {"result": "{}"})


@pytest.fixture
def redis_url(new_servers: NewServers) -> str:
    """A Redis without an API, which would remove the entries of the outbox."""
    return new_servers().redis_url


@pytest.fixture
async def kit(redis_url: str) -> AsyncIterator[Kit]:
    kit = await Kit(redis_url, level="INFO").open()
    yield kit
    await kit.close()


@pytest.fixture
def scene(kit: Kit) -> Scene:
    return Scene(kit)


@pytest.mark.req("PQ-137")
async def test_an_assignment_that_never_arrived_is_requeued(scene: Scene) -> None:
    """The first heartbeat after it detects it, the next requeues it; running tasks stay with the worker."""
    worker = await scene.register_worker()
    lane = scene.make_lane(worker)
    running = await scene.kit.add()
    (mine,) = await scene.claim(lane)
    assert mine.task_id == running.task_id
    lost, regular = await scene.kit.add(), worker.next_heartbeat_at
    await scene.claim_without_answer(lane)
    assert worker.next_heartbeat_at < regular, "it does not wait as long as usual"
    await worker.send_heartbeat()
    await worker.send_heartbeat()
    assert worker.next_heartbeat_at >= regular
    assert await scene.read_state(lost.task_id) == (QUEUED, 1, 1)
    assert await scene.read_state(running.task_id) == (EXECUTING, 1, 0)
    assert (await scene.kit.outbox(lost.task_id))[-1]["reason"] == "worker_lost"
    (again,) = await scene.claim(lane)
    assert (again.task_id, again.attempt) == (lost.task_id, 2)
    for _ in range(3):
        await worker.send_heartbeat()
    assert await scene.read_state(lost.task_id) == (EXECUTING, 2, 1)
    await scene.kit.sound()


@pytest.mark.req("PQ-137")
async def test_an_assignment_that_the_manager_never_got_is_requeued(scene: Scene) -> None:
    """Redis has settled one task and assigned the next, and its answer to the manager is lost."""
    worker, server = await scene.register_worker(), scene.kit.server
    lane, settled = scene.make_lane(worker), await scene.kit.add()
    (mine,) = await scene.claim(lane)
    lost, regular = await scene.kit.add(), worker.next_heartbeat_at
    settling = make_settlement(worker, mine)
    run = server.run

    async def lose_assignment(commands: Any, *, repeatable: bool = False, line: str = "main") -> Any:
        answers = await run(commands, repeatable=repeatable, line=line)
        # The answer that assigns it is the one to lose, however many exchanges come before that one: the
        # text of a script may be missing, and the news of a task may arrive later than the claim that looks.
        if not repeatable and (await scene.read_state(lost.task_id))[0] == EXECUTING:
            raise RedisUnavailable("the connection was lost", unknown=True)
        return answers

    server.run = lose_assignment  # type: ignore[method-assign]
    claimed, (away,) = await lane.exchange("", [settling], 10, scene.call)
    server.run = run  # type: ignore[method-assign]
    assert not claimed and isinstance(away, UpstreamUnavailable)
    assert await scene.read_state(lost.task_id) == (EXECUTING, 1, 0)
    assert worker.next_heartbeat_at < regular, "it does not wait as long as usual"
    assert await lane.settle_many([settling], scene.call) == [COMPLETED]
    await worker.send_heartbeat()
    await worker.send_heartbeat()
    assert await scene.read_state(settled.task_id) == (COMPLETED, 1, 0)
    assert await scene.read_state(lost.task_id) == (QUEUED, 1, 1)
    await scene.kit.sound()


async def test_an_assignment_during_shutdown_is_released(scene: Scene) -> None:
    """The worker claims no more when the poll in flight returns it."""
    worker = await scene.register_worker()
    lane = scene.make_lane(worker, wait_s=60.0)
    waiting = await scene.start_waiting(lane)
    task = await scene.kit.add()
    await waiting
    assert await scene.read_state(task.task_id) == (EXECUTING, 1, 0)
    await lane.release_undelivered(scene.call)
    assert await scene.read_state(task.task_id) == (QUEUED, 1, 0)


@pytest.mark.req("PQ-137")
async def test_an_assignment_in_flight_does_not_count_as_lost(scene: Scene) -> None:
    """Any number of heartbeats overtakes the answer; the task stays with its worker."""
    worker = await scene.register_worker()
    lane, task = scene.make_lane(worker), await scene.kit.add()
    arrives, is_done = asyncio.Event(), asyncio.Event()

    async def late() -> None:
        is_done.set()
        await arrives.wait()

    scene.link.after_exchange = late
    claiming = asyncio.create_task(scene.claim(lane))
    await is_done.wait()
    for _ in range(4):
        await worker.send_heartbeat()
        assert not scene.link.beats[-1].running
        assert await scene.read_state(task.task_id) == (EXECUTING, 1, 0)
    arrives.set()
    (mine,) = await claiming
    for _ in range(3):
        await worker.send_heartbeat()
    assert list(scene.link.beats[-1].running) == [mine.task_id]
    settling = make_settlement(worker, mine)
    assert await lane.settle_many([settling], scene.call) == [COMPLETED]
    await scene.kit.sound()


async def test_one_lane_loses_an_assignment_while_another_waits(scene: Scene) -> None:
    """The assignment in flight to one stays; the lost one of the other is requeued once that arrived."""
    worker = await scene.register_worker()
    one, other = scene.make_lane(worker), scene.make_lane(worker)
    coming = await scene.kit.add()
    arrives, is_done = asyncio.Event(), asyncio.Event()

    async def late() -> None:
        is_done.set()
        await arrives.wait()

    scene.link.after_exchange = late
    claiming = asyncio.create_task(scene.claim(one))
    await is_done.wait()
    lost = await scene.kit.add()
    await scene.claim_without_answer(other)
    for _ in range(3):
        await worker.send_heartbeat()
    assert await scene.read_state(coming.task_id) == (EXECUTING, 1, 0)
    arrives.set()
    (mine,) = await claiming
    await worker.send_heartbeat()
    assert await scene.read_state(lost.task_id) == (QUEUED, 1, 1)
    assert await scene.read_state(mine.task_id) == (EXECUTING, 1, 0)


async def test_a_repeated_heartbeat_has_no_effect(scene: Scene) -> None:
    """Each is delivered once more when the worker runs other tasks; all of them stay its own."""
    worker = await scene.register_worker()
    lane = scene.make_lane(worker)
    for _ in range(4):
        added = await scene.kit.add()
        (mine,) = await scene.claim(lane)
        assert mine.task_id == added.task_id
        await worker.send_heartbeat()
    for late in [*scene.link.beats]:
        await scene.manager.heartbeat(late, scene.call)
    assert {row.status for row in [await scene.kit.task(key) for key, _ in worker.leases]} == {EXECUTING}
    assert len(worker.leases) == 4


async def test_a_result_that_is_not_reported_yet_stays_in_the_heartbeat(scene: Scene) -> None:
    """As long as the worker tries to report it, the task is assigned to no other."""
    worker = await scene.register_worker()
    lane, task = scene.make_lane(worker), await scene.kit.add()
    (mine,) = await scene.claim(lane)
    await worker.send_heartbeat()
    settling = make_settlement(worker, mine)
    scene.link.is_cut = True
    (away,) = await lane.settle_many([settling], scene.call)
    assert isinstance(away, UpstreamUnavailable)
    for _ in range(3):
        await worker.send_heartbeat()
    assert await scene.read_state(task.task_id) == (EXECUTING, 1, 0)
    scene.link.is_cut = False
    assert await lane.settle_many([settling], scene.call) == [COMPLETED]
    await worker.send_heartbeat()
    assert await scene.read_state(task.task_id) == (COMPLETED, 1, 0)


async def test_a_task_whose_outcome_was_dropped_is_run_by_another(scene: Scene) -> None:
    """The worker does not list it any more; heartbeats come sooner until that is resolved."""
    worker = await scene.register_worker()
    lane, task = scene.make_lane(worker), await scene.kit.add()
    (mine,) = await scene.claim(lane)
    regular = worker.next_heartbeat_at
    worker.on_lost(mine.task_id, mine.attempt)
    assert worker.next_heartbeat_at < regular
    await worker.send_heartbeat()
    await worker.send_heartbeat()
    assert await scene.read_state(task.task_id) == (QUEUED, 1, 1)
    assert worker.next_heartbeat_at >= regular
    worker.on_lost(mine.task_id, mine.attempt)
    assert worker.next_heartbeat_at >= regular, "that is resolved"


@pytest.mark.parametrize("slots", [5, 60])
async def test_with_many_lost_answers_every_task_ends_once(kit: Kit, slots: int) -> None:
    """A worker with one lane and one with two: one run of each attempt, and no task waits for its timeout."""
    scene, chance = Scene(kit, 0.05), random.Random(7)
    RUNS.clear()

    async def lose_at_random() -> None:
        await asyncio.sleep(chance.choice((0, 0.02)))
        if chance.random() < 0.3:
            await scene.link.lose()

    scene.link.after_exchange = lose_at_random
    keys = [
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
        wanted=lambda number: number >= len(keys),
        patience=240,
    )
    scene.link.after_exchange = scene.link.deliver
    stopping.set()
    await working
    assert set(RUNS.values()) == {1}
    ended = [await kit.task(key) for key in keys]
    # An assignment that a busy machine delivers after 0.15 s is released, which is an attempt and no retry.
    assert all(task.attempt > task.retry_count for task in ended)
    assert sum(task.retry_count for task in ended) > 0, "some answers were lost with tasks in them"
    assert {key for key, _ in RUNS} == set(keys)
    await kit.sound()
