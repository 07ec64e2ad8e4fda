"""Jobs that wait outside the queue or run on no worker, after restarts: each is put back or ended."""

from __future__ import annotations

import pytest

from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    DONE,
    FAILED,
    QUEUED,
    RUNNING,
    GetJobStatusRequest,
    GetJobStatusResponse,
    JobSpec,
    RemoveJobIfPresentRequest,
    SubmitJobRequest,
    TransitionJobStatusRequest,
    WorkerHeartbeatRequest,
)
from generated.taskqueue.system import SYSTEM
from runtime.call import Call
from runtime.simulation import SimulatedDeployment, SimulatedNode, SimulatedWorld, simulate
from tests.support.taskqueue.fault_plans import failing
from tests.support.taskqueue.stack import NO_WORKER, SPEC, Stack, play

TWO_LOOKS = 2 * (4.0 + 5.0)
"""Seconds in which the coordinator looks twice: each WORKER_TIMEOUT_MS and 5000 ms."""
LONG = JobSpec(job_type="sleep", work_duration_ms=60_000)
REQUEUED = "was QUEUED outside the queue; put back into it"
UNOWNED = "is RUNNING on no worker; it is ended as lost"


def restart(stack: Stack, *names: str) -> None:
    """Kills nodes, all of them before one is started anew with nothing in its memory."""
    for name in names:
        stack.deployment.crash(name)
    for name in names:
        stack.deployment.start(name)


@pytest.mark.req("CH-94", "CH-63", "TQ-081", "TQ-082", "TQ-166")
def test_what_waited_in_a_restarted_queue_runs() -> None:
    """Each job that the queue forgot is put back once, with an anomaly, in the order of its submit."""

    async def scenario(stack: Stack) -> None:
        jobs = [await stack.submitted() for _ in range(5)]
        restart(stack, "queue")
        stack.deployment.start("worker")
        ended = [await stack.ended(job_id) for job_id in jobs]
        assert [each.status for each in ended] == [DONE] * 5
        assert [each.started_at_ms for each in ended] == sorted(each.started_at_ms for each in ended)
        assert [stack.anomalies(job_id) for job_id in jobs] == [[REQUEUED]] * 5

    play(scenario, without=NO_WORKER, WORKER_SLOTS="1")


@pytest.mark.req("CH-94", "TQ-081")
def test_more_than_a_page_of_forgotten_jobs_runs() -> None:
    """As many as there are, and not only the first page of them."""

    async def scenario(stack: Stack) -> None:
        jobs = {await stack.submitted(JobSpec(job_type="sleep")) for _ in range(450)}
        restart(stack, "queue")
        stack.deployment.start("worker")
        await stack.rest(60)
        assert {job.job_id for job in await stack.list(DONE)} == jobs

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-94", "TQ-081")
def test_a_forgotten_job_runs_though_the_queue_is_never_empty() -> None:
    """That younger jobs overtake it gives it away, while these are left as they are."""

    async def scenario(stack: Stack) -> None:
        old = await stack.submitted()
        restart(stack, "queue")
        stack.deployment.start("worker")
        others = [await stack.submitted() for _ in range(20)]
        until = stack.world.monotonic() + 2 * TWO_LOOKS
        while (await stack.status(old)).status == QUEUED:
            assert stack.world.monotonic() < until
            others.append(await stack.submitted())
            await stack.world.sleep(0.25)  # More than one slot gets done, so that some always wait.
        assert len(await stack.list(QUEUED)) > 5
        assert [line["job_id"] for line in stack.log("consistency_anomaly")] == [old]
        await stack.rest(60)
        assert {(await stack.status(job_id)).status for job_id in (old, *others)} == {DONE}

    play(scenario, without=NO_WORKER, WORKER_SLOTS="1")


@pytest.mark.req("CH-94", "CH-63", "CH-32", "TQ-166")
@pytest.mark.parametrize("comes_back", [True, False])
def test_what_ran_when_coordinator_and_worker_went_down_is_lost(comes_back: bool) -> None:
    """With a new worker or none, the job ends as WORKER_LOST with an anomaly, and its result says so."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.started(LONG)
        restart(stack, "coordinator", "worker")
        if not comes_back:
            stack.deployment.crash("worker")
        ended = await stack.ended(job_id, TWO_LOOKS + 2)
        assert (ended.status, ended.failure_reason) == (FAILED, "WORKER_LOST")
        assert (await stack.result(job_id)).output_summary == "WORKER_LOST: no worker runs it"
        assert stack.anomalies(job_id) == [UNOWNED]

    play(scenario)


@pytest.mark.req("CH-94", "CH-32")
def test_a_restarted_coordinator_learns_what_its_workers_run() -> None:
    """A job that runs for longer than several looks is left to its worker and ends as it would have."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.started(LONG)
        restart(stack, "coordinator")
        assert (await stack.ended(job_id, 90)).status == DONE
        assert stack.anomalies(job_id) == []

    play(scenario)


@pytest.mark.req("CH-94", "CH-32")
def test_nothing_is_taken_from_a_worker_that_does_not_say_what_it_runs() -> None:
    """While one is alive whose heartbeats name no jobs, a job may be its own; when it is gone, it is lost."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.running()
        restart(stack, "coordinator")
        for _ in range(30):
            await stack.beat()
            await stack.world.sleep(1)
        assert (await stack.status(job_id)).status == RUNNING
        assert (await stack.ended(job_id)).failure_reason == "WORKER_LOST"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-94", "CH-27")
def test_a_job_whose_worker_never_heard_of_it_is_lost() -> None:
    """By its heartbeats the worker runs another job and not this one, and its slots never all ask at once."""

    async def scenario(stack: Stack) -> None:
        lost = await stack.running()
        busy = WorkerHeartbeatRequest(
            worker_id="w1", capacity_hint=2, running=["another"], reports_running=True
        )
        for _ in range(int(TWO_LOOKS) + 2):
            await stack.coordinator.worker_heartbeat(busy, stack.call("worker"))
            await stack.world.sleep(1)
        assert (await stack.status(lost)).failure_reason == "WORKER_LOST"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-94", "TQ-021", "TQ-083")
def test_a_run_without_faults_is_left_alone() -> None:
    """With jobs that wait and run over many looks, nothing is enqueued again and no anomaly is told of."""

    async def scenario(stack: Stack) -> None:
        jobs = [await stack.submitted(JobSpec(job_type="sleep", work_duration_ms=700)) for _ in range(60)]
        await stack.submitted(LONG)
        await stack.rest(120)
        assert {job.status for job in await stack.list()} == {DONE}
        assert stack.anomalies() == []
        assert stack.calls("coordinator").count("ListJobRecords") >= 8
        assert "EnqueueJob" not in stack.calls("coordinator")
        started = [line["job_id"] for line in stack.log("transition") if line["transition"] == "dispatch"]
        assert started[: len(jobs)] == jobs

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("CH-94")
def test_a_look_that_fails_is_made_up_for() -> None:
    """While the records cannot be listed nothing is found; afterwards it is."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submitted()
        restart(stack, "queue")
        stack.fail(failing("ListJobRecords", principal="coordinator"))
        stack.deployment.start("worker")
        await stack.world.sleep(2 * TWO_LOOKS)
        assert (await stack.status(job_id)).status == QUEUED
        stack.heal()
        assert (await stack.ended(job_id)).status == DONE

    play(scenario, without=NO_WORKER)


class MonolithNode:
    """One node of the other design, whose components are called past its public API."""

    def __init__(self, world: SimulatedWorld) -> None:
        environ = {"WORKER_SLOTS": "1"}
        self.deployment = SimulatedDeployment(SYSTEM, "monolith", world, environ=environ)
        name = next(iter(self.deployment.nodes))
        self._node: SimulatedNode = self.deployment.nodes[name]
        self._public = TaskQueuePublicServiceClient(self.deployment.channel("client", node=name))

    def component_call(self, caller: str) -> Call:
        return Call(world=self.deployment.world, log=self._node.log, caller=caller)

    async def submitted(self, spec: JobSpec = SPEC) -> str:
        request = SubmitJobRequest(spec=spec)
        return (await self._public.submit_job(request, self.deployment.call("client"))).job_id

    async def forget(self, job_id: str) -> None:
        """Takes a job out of the queue, which no component of the node knows of."""
        request = RemoveJobIfPresentRequest(job_id=job_id)
        removed = await self._node.handlers["queue"].remove_job_if_present(
            request, self.component_call("gateway")
        )
        assert removed.removed

    async def start(self, job_id: str) -> None:
        """Moves a job to RUNNING that no worker has."""
        request = TransitionJobStatusRequest(
            job_id=job_id, expected_from_status=QUEUED, to_status=RUNNING, actor="coordinator"
        )
        await self._node.handlers["job"].transition_job_status(request, self.component_call("coordinator"))

    async def ended(self, job_id: str) -> GetJobStatusResponse:
        until = self.deployment.world.monotonic() + 2 * TWO_LOOKS
        request = GetJobStatusRequest(job_id=job_id)
        while self.deployment.world.monotonic() < until:
            seen = await self._public.get_job_status(request, self.deployment.call("client"))
            if seen.status in JOB.terminal:
                return seen
            await self.deployment.world.sleep(0.5)
        raise AssertionError(f"{job_id} is still {seen}")


@pytest.mark.req("CH-94", "TQ-066", "CH-89")
def test_a_monolith_node_finds_its_stranded_jobs() -> None:
    """The other design puts back and ends them in the same way, with the same lines."""

    async def run(world: SimulatedWorld) -> None:
        node = MonolithNode(world)
        busy = await node.submitted(JobSpec(job_type="sleep", work_duration_ms=3000))
        await world.sleep(1)
        forgotten, lost = await node.submitted(), await node.submitted()
        await node.forget(forgotten)
        await node.forget(lost)
        await node.start(lost)
        assert (await node.ended(busy)).status == DONE
        assert (await node.ended(forgotten)).status == DONE
        assert (await node.ended(lost)).failure_reason == "WORKER_LOST"
        told = [(line["job_id"], line["message"]) for line in node.deployment.log("consistency_anomaly")]
        assert sorted(told) == sorted([(forgotten, REQUEUED), (lost, UNOWNED)])
        await node.deployment.stop()

    simulate(run)
