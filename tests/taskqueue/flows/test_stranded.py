"""Jobs stranded outside the queue or on no worker, after restarts: each is requeued or ended."""

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
from tests.support.taskqueue.fault_plans import fail_calls
from tests.support.taskqueue.stack import NO_WORKER, SPEC, Stack, play

TWO_LOOKS = 2 * (4.0 + 5.0)
"""Seconds in which the coordinator looks twice: each WORKER_TIMEOUT_MS and 5000 ms."""
LONG = JobSpec(job_type="sleep", work_duration_ms=60_000)
REQUEUED = "was QUEUED outside the queue; put back into it"
UNOWNED = "is RUNNING on no worker; it is ended as lost"


def restart(stack: Stack, *names: str) -> None:
    """Kill nodes, all of them before one is started anew with nothing in its memory."""
    for name in names:
        stack.deployment.crash(name)
    for name in names:
        stack.deployment.start(name)


@pytest.mark.req("CH-94", "CH-63", "TQ-081", "TQ-082", "TQ-166")
def test_queued_jobs_survive_a_restart_of_the_queue() -> None:
    """Each job that the queue lost is requeued once, with an anomaly, in the order of its submit."""

    async def scenario(stack: Stack) -> None:
        jobs = [await stack.submit_job() for _ in range(5)]
        restart(stack, "queue")
        stack.deployment.start("worker")
        ended = [await stack.wait_until_terminal(job_id) for job_id in jobs]
        assert [each.status for each in ended] == [DONE] * 5
        assert [each.started_at_ms for each in ended] == sorted(each.started_at_ms for each in ended)
        assert [stack.anomalies(job_id) for job_id in jobs] == [[REQUEUED]] * 5

    play(scenario, without=NO_WORKER, WORKER_SLOTS="1")


@pytest.mark.req("CH-94", "TQ-081")
def test_more_than_a_page_of_lost_jobs_is_requeued() -> None:
    """All lost jobs are requeued, and not only the first page of them."""

    async def scenario(stack: Stack) -> None:
        jobs = {await stack.submit_job(JobSpec(job_type="sleep")) for _ in range(450)}
        restart(stack, "queue")
        stack.deployment.start("worker")
        await stack.wait_until_idle(60)
        assert {job.job_id for job in await stack.list(DONE)} == jobs

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-94", "TQ-081")
def test_a_lost_job_is_requeued_though_the_queue_is_never_empty() -> None:
    """It is detected since younger jobs overtake it, while these stay as they are."""

    async def scenario(stack: Stack) -> None:
        old = await stack.submit_job()
        restart(stack, "queue")
        stack.deployment.start("worker")
        others = [await stack.submit_job() for _ in range(20)]
        until = stack.world.monotonic() + 2 * TWO_LOOKS
        while (await stack.status(old)).status == QUEUED:
            assert stack.world.monotonic() < until
            others.append(await stack.submit_job())
            await stack.world.sleep(0.25)  # More than one slot gets done, so that some always wait.
        assert len(await stack.list(QUEUED)) > 5
        assert [line["job_id"] for line in stack.log("consistency_anomaly")] == [old]
        await stack.wait_until_idle(60)
        assert {(await stack.status(job_id)).status for job_id in (old, *others)} == {DONE}

    play(scenario, without=NO_WORKER, WORKER_SLOTS="1")


@pytest.mark.req("CH-94", "CH-63", "CH-32", "TQ-166")
@pytest.mark.parametrize("comes_back", [True, False])
def test_running_jobs_are_lost_with_their_coordinator_and_worker(comes_back: bool) -> None:
    """With a new worker or none, the job ends as WORKER_LOST with an anomaly, and its result says so."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_start(LONG)
        restart(stack, "coordinator", "worker")
        if not comes_back:
            stack.deployment.crash("worker")
        ended = await stack.wait_until_terminal(job_id, TWO_LOOKS + 2)
        assert (ended.status, ended.failure_reason) == (FAILED, "WORKER_LOST")
        assert (await stack.result(job_id)).output_summary == "WORKER_LOST: no worker runs it"
        assert stack.anomalies(job_id) == [UNOWNED]

    play(scenario)


@pytest.mark.req("CH-94", "CH-32")
def test_a_restarted_coordinator_learns_the_running_jobs_of_its_workers() -> None:
    """A job that runs for longer than several scans stays with its worker and ends as it would have."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_start(LONG)
        restart(stack, "coordinator")
        assert (await stack.wait_until_terminal(job_id, 90)).status == DONE
        assert stack.anomalies(job_id) == []

    play(scenario)


@pytest.mark.req("CH-94", "CH-32")
def test_a_worker_that_does_not_list_its_jobs_loses_none() -> None:
    """While a worker lives whose heartbeats list no jobs, a job may be its own; after it, the job is lost."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        restart(stack, "coordinator")
        for _ in range(30):
            await stack.beat()
            await stack.world.sleep(1)
        assert (await stack.status(job_id)).status == RUNNING
        assert (await stack.wait_until_terminal(job_id)).failure_reason == "WORKER_LOST"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-94", "CH-27")
def test_a_job_that_never_reached_its_worker_is_lost() -> None:
    """By its heartbeats the worker runs another job and not this one, and its slots never all ask at once."""

    async def scenario(stack: Stack) -> None:
        lost = await stack.submit_and_fetch()
        busy = WorkerHeartbeatRequest(
            worker_id="w1", capacity_hint=2, running=["another"], reports_running=True
        )
        for _ in range(int(TWO_LOOKS) + 2):
            await stack.coordinator.worker_heartbeat(busy, stack.call("worker"))
            await stack.world.sleep(1)
        assert (await stack.status(lost)).failure_reason == "WORKER_LOST"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-94", "TQ-021", "TQ-083")
def test_a_run_without_faults_is_not_changed() -> None:
    """With jobs that wait and run over many scans, nothing is enqueued again and no anomaly is logged."""

    async def scenario(stack: Stack) -> None:
        jobs = [await stack.submit_job(JobSpec(job_type="sleep", work_duration_ms=700)) for _ in range(60)]
        await stack.submit_job(LONG)
        await stack.wait_until_idle(120)
        assert {job.status for job in await stack.list()} == {DONE}
        assert stack.anomalies() == []
        assert stack.calls("coordinator").count("ListJobRecords") >= 8
        assert "EnqueueJob" not in stack.calls("coordinator")
        started = [line["job_id"] for line in stack.log("transition") if line["transition"] == "dispatch"]
        assert started[: len(jobs)] == jobs

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("CH-94")
def test_a_failed_scan_is_repeated() -> None:
    """While the records cannot be listed nothing is found; afterwards it is."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        restart(stack, "queue")
        stack.fail(fail_calls("ListJobRecords", principal="coordinator"))
        stack.deployment.start("worker")
        await stack.world.sleep(2 * TWO_LOOKS)
        assert (await stack.status(job_id)).status == QUEUED
        stack.heal()
        assert (await stack.wait_until_terminal(job_id)).status == DONE

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

    async def submit_job(self, spec: JobSpec = SPEC) -> str:
        request = SubmitJobRequest(spec=spec)
        return (await self._public.submit_job(request, self.deployment.call("client"))).job_id

    async def forget(self, job_id: str) -> None:
        """Remove a job from the queue behind the back of the node's components."""
        request = RemoveJobIfPresentRequest(job_id=job_id)
        removed = await self._node.handlers["queue"].remove_job_if_present(
            request, self.component_call("gateway")
        )
        assert removed.removed

    async def start(self, job_id: str) -> None:
        """Transition a job to RUNNING that no worker has."""
        request = TransitionJobStatusRequest(
            job_id=job_id, expected_from_status=QUEUED, to_status=RUNNING, actor="coordinator"
        )
        await self._node.handlers["job"].transition_job_status(request, self.component_call("coordinator"))

    async def wait_until_terminal(self, job_id: str) -> GetJobStatusResponse:
        until = self.deployment.world.monotonic() + 2 * TWO_LOOKS
        request = GetJobStatusRequest(job_id=job_id)
        while self.deployment.world.monotonic() < until:
            status = await self._public.get_job_status(request, self.deployment.call("client"))
            if status.status in JOB.terminal:
                return status
            await self.deployment.world.sleep(0.5)
        raise AssertionError(f"{job_id} is still {status}")


@pytest.mark.req("CH-94", "TQ-066", "CH-89")
def test_a_monolith_node_finds_its_stranded_jobs() -> None:
    """The monolith requeues and ends them like the microservices, with the same log lines."""

    async def run(world: SimulatedWorld) -> None:
        node = MonolithNode(world)
        busy = await node.submit_job(JobSpec(job_type="sleep", work_duration_ms=3000))
        await world.sleep(1)
        forgotten, lost = await node.submit_job(), await node.submit_job()
        await node.forget(forgotten)
        await node.forget(lost)
        await node.start(lost)
        assert (await node.wait_until_terminal(busy)).status == DONE
        assert (await node.wait_until_terminal(forgotten)).status == DONE
        assert (await node.wait_until_terminal(lost)).failure_reason == "WORKER_LOST"
        anomalies = [(line["job_id"], line["message"]) for line in node.deployment.log("consistency_anomaly")]
        assert sorted(anomalies) == sorted([(forgotten, REQUEUED), (lost, UNOWNED)])
        await node.deployment.stop()

    simulate(run)
