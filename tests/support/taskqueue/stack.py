"""The six services of the taskqueue in one simulated run, with short helpers to call them."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from google.protobuf.message import Message

from generated.taskqueue.clients import (
    CoordinatorInternalServiceClient,
    JobInternalServiceClient,
    QueueInternalServiceClient,
    ResultInternalServiceClient,
    TaskQueuePublicServiceClient,
)
from generated.taskqueue.messages import (
    CancelJobRequest,
    CancelJobResponse,
    FetchWorkRequest,
    FetchWorkResponse,
    GetJobRecordRequest,
    GetJobRecordResponse,
    GetJobResultRequest,
    GetJobResultResponse,
    GetJobStatusRequest,
    GetJobStatusResponse,
    GetResultRequest,
    GetResultResponse,
    JobOutcome,
    JobSpec,
    JobStatus,
    JobSummary,
    ListJobsRequest,
    PageRequest,
    ReportWorkOutcomeRequest,
    ReportWorkOutcomeResponse,
    StoreResultRequest,
    StoreResultResponse,
    SubmitJobRequest,
    SubmitJobResponse,
    TransitionJobStatusRequest,
    TransitionJobStatusResponse,
    WorkerHeartbeatRequest,
    WorkerHeartbeatResponse,
)
from generated.taskqueue.system import SYSTEM
from runtime.call import Call
from runtime.simulation import Exchange, Plan, SimulatedDeployment, SimulatedWorld, simulate
from tests.support.taskqueue.log_check import find_problems

SPEC = JobSpec(job_type="sleep", work_duration_ms=300, payload_size_bytes=8, labels={"b": "2", "a": "1"})
NO_WORKER = ("worker",)
TERMINAL = (JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELED)


class Stack:
    """A deployment and clients of it for each principal that calls it."""

    def __init__(self, world: SimulatedWorld, without: Sequence[str], environ: dict[str, str]) -> None:
        self.world = world
        self.deployment = SimulatedDeployment(
            SYSTEM, "microservices", world, environ={"WORKER_ID": "w1", **environ}, without=without
        )
        self._read = 0
        self._states: dict[str, str | None] = {}
        channel = self.deployment.channel
        self.public = TaskQueuePublicServiceClient(channel("client"))
        self.jobs = JobInternalServiceClient(channel("gateway"))
        self.jobs_of_coordinator = JobInternalServiceClient(channel("coordinator"))
        self.queue = QueueInternalServiceClient(channel("gateway"))
        self.queue_of_coordinator = QueueInternalServiceClient(channel("coordinator"))
        self.coordinator = CoordinatorInternalServiceClient(channel("worker"))
        self.results = ResultInternalServiceClient(channel("gateway"))
        self.results_of_coordinator = ResultInternalServiceClient(channel("coordinator"))

    @property
    def exchanges(self) -> list[Exchange]:
        return self.deployment.network.exchanges

    def call(self, principal: str = "client", seconds: float | None = None) -> Call:
        return self.deployment.call(principal, seconds)

    def fail(self, plan: Plan) -> None:
        """Decide how calls go from now on."""
        self.deployment.network.plan = plan

    def heal(self) -> None:
        """Let all calls succeed from now on."""
        self.deployment.network.plan = lambda _: None

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        return self.deployment.log(event)

    def anomalies(self, job_id: str | None = None) -> list[str]:
        """The messages of all anomalies, or those of one job."""
        lines = self.log("consistency_anomaly")
        return [line["message"] for line in lines if job_id is None or line.get("job_id") == job_id]

    def states(self) -> dict[str, str | None]:
        """The state of every job there was, by the log; None if it was deleted."""
        lines = self.deployment.lines
        for text in lines[self._read :]:
            if '"event":"transition"' in text:
                line = json.loads(text)
                self._states[line["job_id"]] = line.get("to_status")
        self._read = len(lines)
        return self._states

    async def wait_until_idle(self, seconds: float) -> None:
        """Wait until no job is QUEUED or RUNNING, but not longer than so many seconds."""
        until = self.world.monotonic() + seconds
        while self.world.monotonic() < until:
            await self.world.sleep(0.25)
            if not {"QUEUED", "RUNNING"} & set(self.states().values()):
                return

    def calls(self, principal: str, since: int = 0) -> list[str]:
        """The methods that a principal called, one name an attempt, in order."""
        return [each.name for each in self.exchanges[since:] if each.principal == principal]

    async def submit(self, spec: JobSpec = SPEC, key: str = "") -> SubmitJobResponse:
        return await self.public.submit_job(SubmitJobRequest(spec=spec, client_request_id=key), self.call())

    async def submit_job(self, spec: JobSpec = SPEC, key: str = "") -> str:
        return (await self.submit(spec, key)).job_id

    async def status(self, job_id: str) -> GetJobStatusResponse:
        return await self.public.get_job_status(GetJobStatusRequest(job_id=job_id), self.call())

    async def result(self, job_id: str) -> GetJobResultResponse:
        return await self.public.get_job_result(GetJobResultRequest(job_id=job_id), self.call())

    async def cancel(self, job_id: str, reason: str = "") -> CancelJobResponse:
        return await self.public.cancel_job(CancelJobRequest(job_id=job_id, reason=reason), self.call())

    async def list(self, *states: JobStatus.ValueType) -> list[JobSummary]:
        """All jobs, page by page."""
        found: list[JobSummary] = []
        token = ""
        while True:
            page = PageRequest(page_size=200, page_token=token)
            answer = await self.public.list_jobs(
                ListJobsRequest(status_filter=states, page=page), self.call()
            )
            found += answer.jobs
            token = answer.page.next_page_token
            if not token:
                return found

    async def record(self, job_id: str) -> GetJobRecordResponse:
        return await self.jobs.get_job_record(GetJobRecordRequest(job_id=job_id), self.call("gateway"))

    async def envelope(self, job_id: str) -> GetResultResponse:
        return await self.results.get_result(GetResultRequest(job_id=job_id), self.call("gateway"))

    async def store(self, job_id: str, status: JobStatus.ValueType, **fields: Any) -> StoreResultResponse:
        """Stores an envelope, as the coordinator."""
        request = StoreResultRequest(job_id=job_id, terminal_status=status, **fields)
        return await self.results_of_coordinator.store_result(request, self.call("coordinator"))

    async def read_outcome(self, job_id: str) -> tuple[int, str, str]:
        """Status, failure reason and summary of a job that is over."""
        status, result = await self.status(job_id), await self.result(job_id)
        assert result.result_ready and result.terminal_status == status.status
        return status.status, status.failure_reason, result.output_summary

    async def transition(
        self, job_id: str, source: JobStatus.ValueType, target: JobStatus.ValueType, reason: str = ""
    ) -> TransitionJobStatusResponse:
        """Ask the job service for a transition, as the coordinator."""
        request = TransitionJobStatusRequest(
            job_id=job_id, expected_from_status=source, to_status=target, reason=reason
        )
        return await self.jobs_of_coordinator.transition_job_status(request, self.call("coordinator"))

    def call_at_once(self, method: str, request: Message, caller: str = "coordinator") -> Any:
        """Have the job service carry out a call at once, before any call that is in flight."""
        node = self.deployment.nodes["job"]
        call = Call(world=self.world, log=node.log.of("job"), caller=caller, method=method)
        work = getattr(node.handlers["job"], method)(request, call)
        try:
            work.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError(f"{method} waits for something")

    async def beat(self, worker_id: str = "w1", slots: int = 0) -> WorkerHeartbeatResponse:
        request = WorkerHeartbeatRequest(worker_id=worker_id, capacity_hint=slots)
        return await self.coordinator.worker_heartbeat(request, self.call("worker"))

    async def fetch(self, worker_id: str = "w1") -> FetchWorkResponse:
        return await self.coordinator.fetch_work(FetchWorkRequest(worker_id=worker_id), self.call("worker"))

    async def report(
        self,
        job_id: str,
        outcome: JobOutcome.ValueType = JobOutcome.JOB_OUTCOME_SUCCEEDED,
        worker_id: str = "w1",
        **fields: Any,
    ) -> ReportWorkOutcomeResponse:
        request = ReportWorkOutcomeRequest(worker_id=worker_id, job_id=job_id, outcome=outcome, **fields)
        return await self.coordinator.report_work_outcome(request, self.call("worker"))

    async def submit_and_fetch(self, spec: JobSpec = SPEC) -> str:
        """Submit a job and fetch it as a worker that does not exist."""
        job_id = await self.submit_job(spec)
        await self.beat()
        assert (await self.fetch()).job_id == job_id
        return job_id

    async def submit_and_start(self, spec: JobSpec = SPEC) -> str:
        """Submit a job and wait until the worker runs it."""
        job_id = await self.submit_job(spec)
        while (await self.status(job_id)).status != JobStatus.RUNNING:
            await self.world.sleep(0.02)
        return job_id

    async def wait_until_terminal(self, job_id: str, seconds: float = 30.0) -> GetJobStatusResponse:
        """The status of a job as soon as it is terminal."""
        until = self.world.monotonic() + seconds
        while (status := await self.status(job_id)).status not in TERMINAL:
            assert self.world.monotonic() < until, f"{job_id} is still {status}"
            await self.world.sleep(0.1)
        return status

    async def run_to_end(self, job_type: str, **spec: Any) -> tuple[int, str, str]:
        """Submit a job, wait until it is terminal, and read its outcome."""
        job_id = await self.submit_job(JobSpec(job_type=job_type, **spec))
        await self.wait_until_terminal(job_id)
        return await self.read_outcome(job_id)


def play(
    scenario: Callable[[Stack], Coroutine[Any, Any, None]],
    *,
    seed: int = 0,
    without: Sequence[str] = (),
    **environ: str,
) -> Stack:
    """Play a scenario to its end and check its log."""

    async def run(world: SimulatedWorld) -> Stack:
        stack = Stack(world, without, environ)
        await scenario(stack)
        stack.heal()
        await stack.deployment.stop()
        return stack

    stack = simulate(run, seed)
    assert find_problems(stack.deployment.lines) == []
    return stack
