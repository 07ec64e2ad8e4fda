"""Invariants of the taskqueue after any failure, once all jobs have ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from generated.taskqueue.messages import CANCELED, DONE, FetchWorkResponse, JobSpec, JobStatus, JobSummary
from runtime.call.conditions import Failure
from runtime.model.text import sha256_hex
from tests.support.taskqueue.stack import SPEC, TERMINAL, Stack


@dataclass
class Ledger:
    """The answers that clients got."""

    accepted: set[str] = field(default_factory=set)
    terminal: dict[str, JobStatus.ValueType] = field(default_factory=dict)
    """The terminal states that they saw."""

    async def submit(self, stack: Stack, key: str = "", spec: JobSpec = SPEC) -> str | None:
        try:
            job_id = await stack.submit_job(spec, key)
        except Failure:
            return None
        self.accepted.add(job_id)
        return job_id

    async def cancel(self, stack: Stack, job_id: str) -> None:
        try:
            answer = await stack.cancel(job_id, "no longer needed")
        except Failure:
            return
        self._record(job_id, answer.current_status)

    async def look(self, stack: Stack, job_id: str) -> None:
        try:
            self._record(job_id, (await stack.status(job_id)).status)
            result = await stack.result(job_id)
        except Failure:
            return
        if result.result_ready:
            self._record(job_id, result.terminal_status)

    def _record(self, job_id: str, status: JobStatus.ValueType) -> None:
        if status in TERMINAL:
            assert self.terminal.setdefault(job_id, status) == status, f"{job_id} changed its terminal state"
        else:
            assert job_id not in self.terminal, f"{job_id} came back to life"


async def settle(stack: Stack, seconds: float = 40.0) -> None:
    """Let all calls succeed, with a worker, until all jobs are over or plainly will not be.

    Stranded jobs are found by two looks, each nine seconds after the one before.
    """
    stack.heal()
    if "worker" not in stack.deployment.nodes:
        stack.deployment.start("worker")
    await stack.wait_until_idle(seconds)
    await stack.world.sleep(1.0)


async def verify(stack: Stack, ledger: Ledger, *, may_vanish: bool = False) -> None:
    """Fail if a job did not end, vanished without a log line, or has two ends."""
    jobs = {job.job_id: job for job in await stack.list()}
    logged = {line.get("job_id") for line in stack.log("consistency_anomaly")}
    for job_id in sorted(ledger.accepted | jobs.keys()):
        job = jobs.get(job_id)
        if job is None:
            assert may_vanish and job_id in logged, f"{job_id} was accepted and is gone"
        elif job.status not in TERMINAL:
            raise AssertionError(f"{job_id} stays {JobStatus.Name(job.status)}")
        else:
            await _check_ended(stack, job)
    for job_id, status in ledger.terminal.items():
        assert jobs[job_id].status == status, f"{job_id} changed its terminal state"
    check_assignments(stack)


async def _check_ended(stack: Stack, job: JobSummary) -> None:
    envelope = await stack.envelope(job.job_id)
    assert envelope.found and envelope.terminal_status == job.status, job
    assert job.finished_at_ms >= max(job.created_at_ms, job.started_at_ms) > 0
    assert job.cancel_requested or job.status != CANCELED
    assert envelope.checksum == sha256_hex(envelope.output_bytes)
    if job.status == DONE:
        assert (await stack.record(job.job_id)).failure_reason == ""


def check_assignments(stack: Stack) -> None:
    """A job is assigned at most once for each transition to RUNNING, of which there is at most one."""
    assigned = Counter(
        answer.job_id
        for exchange in stack.exchanges
        for answer in exchange.answers
        if isinstance(answer, FetchWorkResponse) and answer.assigned
    )
    started = Counter(line["job_id"] for line in stack.log("transition") if line["transition"] == "dispatch")
    assert all(count <= 1 for count in started.values()), started
    assert all(count <= started[job_id] for job_id, count in assigned.items()), assigned - started
