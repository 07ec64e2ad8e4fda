"""The simulated network: it fails exactly as it is told to, and shares nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from generated.taskqueue.clients import JobInternalServiceClient, QueueInternalServiceClient
from generated.taskqueue.messages import (
    CreateJobRequest,
    CreateJobResponse,
    DequeueJobRequest,
    EnqueueJobRequest,
    EnqueueJobResponse,
    JobSpec,
    ListJobRecordsRequest,
)
from generated.taskqueue.system import SYSTEM
from runtime.call.conditions import CallFailed, Failure
from runtime.simulation import (
    Exchange,
    Fault,
    SimulatedDeployment,
    SimulatedWorld,
    simulate,
)

CREATE = CreateJobRequest(spec=JobSpec(job_type="x"))
KEYED = CreateJobRequest(spec=JobSpec(job_type="x"), client_request_id="key")


class Nodes:
    """A deployment of nodes that call nobody by themselves."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.deployment = SimulatedDeployment(
            SYSTEM, "microservices", world, without=("worker", "coordinator", "gateway")
        )
        self.jobs = JobInternalServiceClient(self.deployment.channel("gateway"))
        self.queue = QueueInternalServiceClient(self.deployment.channel("gateway"))

    async def create(
        self, request: CreateJobRequest = CREATE, seconds: float | None = None
    ) -> CreateJobResponse:
        return await self.jobs.create_job(request, self.deployment.call("gateway", seconds))

    async def enqueue(self, job_id: str = "x") -> EnqueueJobResponse:
        return await self.queue.enqueue_job(EnqueueJobRequest(job_id=job_id), self.deployment.call("gateway"))

    async def held(self) -> int:
        """How many records the job service has."""
        answer = await self.jobs.list_job_records(ListJobRecordsRequest(), self.deployment.call("gateway"))
        return len(answer.jobs)

    def fail_next(self, fault: Fault) -> None:
        faults = [fault]

        def plan(_: Exchange) -> Fault | None:
            return faults.pop() if faults else None

        self.deployment.network.plan = plan


def with_nodes(scenario: Callable[[Nodes], Coroutine[Any, Any, None]], seed: int = 0) -> Nodes:
    async def run(world: SimulatedWorld) -> Nodes:
        nodes = Nodes(world)
        await scenario(nodes)
        await nodes.deployment.stop()
        return nodes

    return simulate(run, seed)


def test_nothing_is_shared_across_the_network() -> None:
    """The callee gets a copy of the request, and so does the record of the exchange."""

    async def scenario(nodes: Nodes) -> None:
        request = CreateJobRequest(spec=JobSpec(job_type="before"))
        answer = await nodes.create(request)
        request.spec.job_type = "after"
        answer.job_id = "changed"
        (kept,) = nodes.deployment.network.exchanges
        assert isinstance(kept.request, CreateJobRequest)
        assert kept.request.spec.job_type == "before"
        assert kept.answers != [answer]

    with_nodes(scenario)


def test_the_guard_stands_in_the_simulation_too() -> None:
    """A caller outside the matrix is denied as it would be over the network."""

    async def scenario(nodes: Nodes) -> None:
        call = nodes.deployment.call("worker")
        jobs = JobInternalServiceClient(nodes.deployment.channel("worker"))
        with pytest.raises(Failure) as denied:
            await jobs.create_job(CREATE, call)
        assert denied.value.grpc == "PERMISSION_DENIED"
        assert denied.value.origin == "JobInternalService"

    with_nodes(scenario)


@pytest.mark.parametrize(
    ("fault", "code", "held_at_once", "held_later"),
    [
        (Fault.BEFORE, "UNAVAILABLE", 0, 0),
        (Fault.AFTER, "UNAVAILABLE", 1, 1),
        (Fault.TIMEOUT, "DEADLINE_EXCEEDED", 1, 1),
        (Fault.LATE, "DEADLINE_EXCEEDED", 0, 1),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
def test_a_fault_does_what_it_says(fault: Fault, code: str, held_at_once: int, held_later: int) -> None:
    """Each fault gives its caller its code, and the callee has or has not done its work."""

    async def scenario(nodes: Nodes) -> None:
        nodes.fail_next(fault)
        with pytest.raises(CallFailed) as failed:
            await nodes.create()
        assert failed.value.grpc == code
        assert nodes.deployment.network.exchanges[0].fault is fault
        assert await nodes.held() == held_at_once
        await nodes.deployment.world.sleep(2)
        assert await nodes.held() == held_later

    with_nodes(scenario)


def test_a_call_that_arrives_twice_is_carried_out_twice() -> None:
    """The caller notices nothing, and the callee does the work again."""

    async def scenario(nodes: Nodes) -> None:
        nodes.fail_next(Fault.TWICE)
        await nodes.create()
        await nodes.deployment.world.sleep(1)
        assert await nodes.held() == 2
        assert len(nodes.deployment.network.exchanges[0].answers) == 2

    with_nodes(scenario)


def test_a_plan_may_answer_for_the_callee() -> None:
    """An answer in the plan reaches the caller, and the callee is not asked."""

    async def scenario(nodes: Nodes) -> None:
        nodes.deployment.network.plan = lambda _: CreateJobResponse(job_id="made up")
        assert (await nodes.create()).job_id == "made up"
        nodes.deployment.network.plan = lambda _: None
        assert await nodes.held() == 0

    with_nodes(scenario)


def test_retries_are_attempts_of_their_own() -> None:
    """A call that may be repeated is, each attempt an exchange with a fate of its own."""

    async def scenario(nodes: Nodes) -> None:
        nodes.fail_next(Fault.AFTER)
        assert (await nodes.create(KEYED)).deduplicated
        first, second = nodes.deployment.network.exchanges
        assert (first.fault, second.fault) == (Fault.AFTER, None)
        assert await nodes.held() == 1

    with_nodes(scenario)


def test_a_crash_takes_the_memory_and_breaks_the_calls() -> None:
    """Who waits for a node that dies is told so at once; a node started anew knows nothing."""

    async def scenario(nodes: Nodes) -> None:
        await nodes.create()
        queue = QueueInternalServiceClient(nodes.deployment.channel("coordinator"))
        call = nodes.deployment.call("coordinator")
        waiting = asyncio.create_task(queue.dequeue_job(DequeueJobRequest(worker_id="w"), call))
        await nodes.deployment.world.sleep(0.1)
        for name in ("job", "queue"):
            nodes.deployment.crash(name)
        with pytest.raises(CallFailed, match="went down"):
            await waiting
        assert nodes.deployment.world.monotonic() < 0.2
        with pytest.raises(CallFailed, match="cannot be reached"):
            await nodes.create()
        nodes.deployment.start("job")
        assert await nodes.held() == 0

    with_nodes(scenario)


def test_a_call_on_its_way_to_a_node_that_dies_fails() -> None:
    """A request that has been sent and not yet arrived finds nobody."""

    async def scenario(nodes: Nodes) -> None:
        calling = asyncio.create_task(nodes.create())
        await asyncio.sleep(0)
        nodes.deployment.crash("job")
        with pytest.raises(CallFailed, match="is down"):
            await calling

    with_nodes(scenario)


def test_a_dead_node_says_nothing_more() -> None:
    """What a crashed node would do while it is being ended reaches neither the log nor the network."""

    async def scenario(world: SimulatedWorld) -> None:
        deployment = SimulatedDeployment(SYSTEM, "microservices", world, environ={"LOG_LEVEL": "DEBUG"})
        await world.sleep(0.1)
        deployment.crash("worker")
        lines, calls = len(deployment.lines), len(deployment.network.exchanges)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [line for line in deployment.log()[lines:] if line["service"] == "worker"] == []
        assert [each for each in deployment.network.exchanges[calls:] if each.principal == "worker"] == []
        await deployment.stop()

    simulate(scenario)


def test_replicas_are_nodes_of_their_own() -> None:
    """Every replica of a node is started, and each draws ids that it owns."""

    async def scenario(world: SimulatedWorld) -> None:
        deployment = SimulatedDeployment(SYSTEM, "monolith", world, without=["monolith-5"])
        assert list(deployment.nodes) == [f"monolith-{place}" for place in range(5)]
        jobs = [
            await JobInternalServiceClient(deployment.channel("gateway", node=name)).create_job(
                CREATE, deployment.call("gateway")
            )
            for name in deployment.nodes
        ]
        assert len({job.job_id for job in jobs}) == 5
        with pytest.raises(ValueError, match="runs already"):
            deployment.start("monolith-0")
        await deployment.stop()

    simulate(scenario)
