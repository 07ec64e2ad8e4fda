"""The queue: hands out jobs and keeps what became of them. It never runs one and never reads an address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from generated.queuey import errors
from generated.queuey.errors import CANCELED
from generated.queuey.lifecycle import JOB, JOB_ABANDON, JOB_RELEASE
from generated.queuey.messages import (
    ACTIVE,
    COMPLETED,
    FAILED,
    PENDING,
    CancelJobRequest,
    ClaimJobRequest,
    CompleteJobRequest,
    CountJobsRequest,
    CountJobsResponse,
    CreateJobRequest,
    GetJobRequest,
    GetReportRequest,
    Job,
    JobChange,
    JobStatus,
    ListJobsRequest,
    ListJobsResponse,
    ReleaseJobRequest,
    Report,
    RetryJobRequest,
    TickleJobRequest,
)
from generated.queuey.records import JobRecord
from generated.queuey.settings import QueueSettings
from runtime.call import Call
from runtime.stores.file_store import FileStore
from runtime.stores.store import Held, NoSuchEntity
from runtime.world import World

_SHOWN = tuple(each.name for each in Job.DESCRIPTOR.fields)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Queue:
    """Keeps nothing in memory: every answer comes from the file."""

    def __init__(self, jobs: FileStore[JobRecord], settings: QueueSettings, world: World) -> None:
        self._jobs = jobs
        self._must_name_runner = settings.require_runner_id
        self._world = world

    async def create_job(self, request: CreateJobRequest, call: Call) -> Job:
        wanted = self._wish(request.binary_addr, _given(request, "input_addr"))
        return await self._create(wanted, _given(request, "idempotency_key"), call)

    async def get_job(self, request: GetJobRequest, call: Call) -> Job:
        async def ended() -> JobRecord | None:
            record = await self._existing(request.job_id)
            return record if record.status in JOB.terminal else None

        found = await self._awaited(ended, self._jobs.changed, request.wait_ms) if request.wait_ms else None
        call.note(job_id=request.job_id)
        return _shown(found or await self._existing(request.job_id))

    async def list_jobs(self, request: ListJobsRequest, _call: Call) -> ListJobsResponse:
        found = await self._jobs.find(
            states=request.status,
            equal={"runner_id": request.runner_id} if request.runner_id else {},
            after=(_EPOCH, request.page_token) if request.page_token else None,
            size=request.page_size + 1,
        )
        page = found[: request.page_size]
        token = page[-1].job_id if len(found) > len(page) else ""
        return ListJobsResponse(jobs=map(_shown, page), next_page_token=token)

    async def count_jobs(self, _request: CountJobsRequest, _call: Call) -> CountJobsResponse:
        counts = await self._jobs.counts()
        return CountJobsResponse(
            pending=counts[PENDING],
            active=counts[ACTIVE],
            completed=counts[COMPLETED],
            failed=counts[FAILED],
        )

    async def claim_job(self, request: ClaimJobRequest, call: Call) -> Job:
        async def taken() -> JobRecord | None:
            return await self._jobs.acquire(request.runner_id, call)

        record = await self._awaited(taken, self._jobs.awaited, request.wait_ms)
        if record is None:
            return Job()
        call.note(job_id=record.job_id)
        return _shown(record)

    async def tickle_job(self, request: TickleJobRequest, _call: Call) -> Job:
        held = self._held(request)
        try:
            record = await self._jobs.extend(request.job_id, held)
        except NoSuchEntity:
            raise errors.JobNotFound(job_id=request.job_id) from None
        if record is None:
            raise await self._not_active(request.job_id)
        return _shown(record)

    async def complete_job(self, request: CompleteJobRequest, call: Call) -> Job:
        held = self._held(request)
        outcome = {
            "output_addr": _given(request, "output_addr"),
            "stderr_addr": _given(request, "stderr_addr"),
            "exit_code": str(request.exit_code) if request.HasField("exit_code") else None,
            "reason": _given(request, "reason"),
        }
        try:
            moved = await self._jobs.leave(request.job_id, request.status, held, call, **outcome)
        except NoSuchEntity:
            raise errors.JobNotFound(job_id=request.job_id) from None
        record = await self._existing(request.job_id)
        if moved.applied or _is_repeat(request, record):
            return _shown(record)
        raise await self._not_active(request.job_id)

    async def release_job(self, request: ReleaseJobRequest, call: Call) -> Job:
        try:
            edge = JOB_ABANDON if request.abandoned else JOB_RELEASE
            held = self._held(request)
            await self._jobs.settle(request.job_id, edge.target, held, call, False, edge.name)
        except NoSuchEntity:
            raise errors.JobNotFound(job_id=request.job_id) from None
        return _shown(await self._existing(request.job_id))

    async def cancel_job(self, request: CancelJobRequest, call: Call) -> Job:
        record = await self._existing(request.job_id)
        # Whatever waits is taken first, so that no runner can, and ended in the same step.
        path = [PENDING, ACTIVE, FAILED] if record.status == PENDING else [ACTIVE, FAILED]
        moved = await self._jobs.follow(request.job_id, path, call, owner=call.caller, reason=CANCELED)
        if not moved.applied and moved.state not in JOB.terminal:
            return await self.cancel_job(request, call)  # A runner took it, or gave it back, just now.
        if not moved.applied:
            raise await self._not_active(request.job_id)
        return _shown(await self._existing(request.job_id))

    async def retry_job(self, request: RetryJobRequest, call: Call) -> Job:
        failed = await self._existing(request.job_id)
        if failed.status != FAILED:
            raise errors.JobNotFailed(job_id=failed.job_id, status=_word(failed))
        return await self._create(self._wish(failed.binary_addr, failed.input_addr), None, call)

    async def get_report(self, request: GetReportRequest, _call: Call) -> Report:
        record = await self._existing(request.job_id)
        changes = await self._jobs.history(request.job_id)
        return Report(
            job_id=record.job_id,
            status=JobStatus.ValueType(record.status),
            exit_code=record.exit_code,
            stderr_addr=record.stderr_addr,
            reason=record.reason,
            changes=[
                JobChange(
                    from_status=each.source.lower(),
                    to_status=each.target.lower(),
                    actor=each.actor,
                    run_attempts=each.fence,
                    transition=each.edge,
                    at=(each.at - _EPOCH) // timedelta(milliseconds=1),
                )
                for each in changes
            ],
        )

    def _wish(self, binary_addr: str, input_addr: str | None) -> dict[str, Any]:
        return {"job_id": self._world.new_id().upper(), "binary_addr": binary_addr, "input_addr": input_addr}

    async def _create(self, wish: dict[str, Any], key: str | None, call: Call) -> Job:
        record, _ = await self._jobs.create_or_find(JobRecord(**wish, idempotency_key=key), call)
        call.note(job_id=record.job_id)
        return _shown(record)

    async def _awaited(
        self,
        look: Callable[[], Awaitable[JobRecord | None]],
        news: Callable[[float], Awaitable[bool]],
        wait_ms: int,
    ) -> JobRecord | None:
        """Looks until something is found or the time is over."""
        until = self._world.monotonic() + wait_ms / 1000
        while (found := await look()) is None and (left := until - self._world.monotonic()) > 0:
            await news(left)
        return found

    def _held(self, request: TickleJobRequest | CompleteJobRequest | ReleaseJobRequest) -> Held:
        """What a runner says of its hold on a job; what it does not say is not compared."""
        if self._must_name_runner and not request.runner_id:
            raise errors.ValidationError(field="runner_id", problem="must be given; REQUIRE_RUNNER_ID is on")
        return Held(request.runner_id, request.run_attempts)

    async def _existing(self, job_id: str) -> JobRecord:
        record = await self._jobs.get(job_id)
        if record is None:
            raise errors.JobNotFound(job_id=job_id)
        return record

    async def _not_active(self, job_id: str) -> errors.JobNotActive:
        return errors.JobNotActive(job_id=job_id, status=_word(await self._existing(job_id)))


def _given(request: Any, field: str) -> str | None:
    value: str = getattr(request, field)
    return value if request.HasField(field) else None


def _is_repeat(request: CompleteJobRequest, record: JobRecord) -> bool:
    """Whether an accepted outcome is told once more."""
    return (
        record.status == request.status
        and record.output_addr == _given(request, "output_addr")
        and record.completed_at is not None
        and request.runner_id in ("", record.runner_id)
    )


def _shown(record: JobRecord) -> Job:
    return Job(**{name: getattr(record, name) for name in _SHOWN})


def _word(record: JobRecord) -> str:
    return JOB.states[record.status].lower()
