"""The queue: assigns jobs to runners and stores their outcomes. It never runs one or reads an address."""

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

_JOB_FIELDS = tuple(each.name for each in Job.DESCRIPTOR.fields)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Queue:
    """The methods of QueueService. It is stateless: every response comes from the file."""

    def __init__(self, jobs: FileStore[JobRecord], settings: QueueSettings, world: World) -> None:
        self._jobs = jobs
        self._must_name_runner = settings.require_runner_id
        self._world = world

    async def create_job(self, request: CreateJobRequest, call: Call) -> Job:
        fields = self._build_fields(request.binary_addr, _get_optional(request, "input_addr"))
        return await self._create(fields, _get_optional(request, "idempotency_key"), call)

    async def get_job(self, request: GetJobRequest, call: Call) -> Job:
        async def find_ended() -> JobRecord | None:
            record = await self._get_existing(request.job_id)
            return record if record.status in JOB.terminal else None

        found = (
            await self._poll_until(find_ended, self._jobs.changed, request.wait_ms)
            if request.wait_ms
            else None
        )
        call.note(job_id=request.job_id)
        return _to_job(found or await self._get_existing(request.job_id))

    async def list_jobs(self, request: ListJobsRequest, _call: Call) -> ListJobsResponse:
        found = await self._jobs.find(
            states=request.status,
            equal={"runner_id": request.runner_id} if request.runner_id else {},
            after=(_EPOCH, request.page_token) if request.page_token else None,
            size=request.page_size + 1,
        )
        page = found[: request.page_size]
        token = page[-1].job_id if len(found) > len(page) else ""
        return ListJobsResponse(jobs=map(_to_job, page), next_page_token=token)

    async def count_jobs(self, _request: CountJobsRequest, _call: Call) -> CountJobsResponse:
        counts = await self._jobs.counts()
        return CountJobsResponse(
            pending=counts[PENDING],
            active=counts[ACTIVE],
            completed=counts[COMPLETED],
            failed=counts[FAILED],
        )

    async def claim_job(self, request: ClaimJobRequest, call: Call) -> Job:
        async def claim() -> JobRecord | None:
            return await self._jobs.acquire(request.runner_id, call)

        record = await self._poll_until(claim, self._jobs.awaited, request.wait_ms)
        if record is None:
            return Job()
        call.note(job_id=record.job_id)
        return _to_job(record)

    async def tickle_job(self, request: TickleJobRequest, _call: Call) -> Job:
        lease = self._parse_lease(request)
        try:
            record = await self._jobs.extend(request.job_id, lease)
        except NoSuchEntity:
            raise errors.JobNotFound(job_id=request.job_id) from None
        if record is None:
            raise await self._build_not_active(request.job_id)
        return _to_job(record)

    async def complete_job(self, request: CompleteJobRequest, call: Call) -> Job:
        lease = self._parse_lease(request)
        outcome = {
            "output_addr": _get_optional(request, "output_addr"),
            "stderr_addr": _get_optional(request, "stderr_addr"),
            "exit_code": str(request.exit_code) if request.HasField("exit_code") else None,
            "reason": _get_optional(request, "reason"),
        }
        try:
            transition = await self._jobs.leave(request.job_id, request.status, lease, call, **outcome)
        except NoSuchEntity:
            raise errors.JobNotFound(job_id=request.job_id) from None
        record = await self._get_existing(request.job_id)
        if transition.applied or _is_repeat(request, record):
            return _to_job(record)
        raise await self._build_not_active(request.job_id)

    async def release_job(self, request: ReleaseJobRequest, call: Call) -> Job:
        try:
            edge = JOB_ABANDON if request.abandoned else JOB_RELEASE
            lease = self._parse_lease(request)
            await self._jobs.settle(request.job_id, edge.target, lease, call, False, edge.name)
        except NoSuchEntity:
            raise errors.JobNotFound(job_id=request.job_id) from None
        return _to_job(await self._get_existing(request.job_id))

    async def cancel_job(self, request: CancelJobRequest, call: Call) -> Job:
        record = await self._get_existing(request.job_id)
        # A pending job is claimed first, so that no runner can claim it, and ended atomically with that.
        path = [PENDING, ACTIVE, FAILED] if record.status == PENDING else [ACTIVE, FAILED]
        transition = await self._jobs.follow(request.job_id, path, call, owner=call.caller, reason=CANCELED)
        if not transition.applied and transition.state not in JOB.terminal:
            return await self.cancel_job(request, call)  # A runner claimed or released it concurrently.
        if not transition.applied:
            raise await self._build_not_active(request.job_id)
        return _to_job(await self._get_existing(request.job_id))

    async def retry_job(self, request: RetryJobRequest, call: Call) -> Job:
        failed = await self._get_existing(request.job_id)
        if failed.status != FAILED:
            raise errors.JobNotFailed(job_id=failed.job_id, status=_format_status(failed))
        return await self._create(self._build_fields(failed.binary_addr, failed.input_addr), None, call)

    async def get_report(self, request: GetReportRequest, _call: Call) -> Report:
        record = await self._get_existing(request.job_id)
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

    def _build_fields(self, binary_addr: str, input_addr: str | None) -> dict[str, Any]:
        return {"job_id": self._world.new_id().upper(), "binary_addr": binary_addr, "input_addr": input_addr}

    async def _create(self, fields: dict[str, Any], key: str | None, call: Call) -> Job:
        record, _ = await self._jobs.create_or_find(JobRecord(**fields, idempotency_key=key), call)
        call.note(job_id=record.job_id)
        return _to_job(record)

    async def _poll_until(
        self,
        poll: Callable[[], Awaitable[JobRecord | None]],
        wait_for_change: Callable[[float], Awaitable[bool]],
        wait_ms: int,
    ) -> JobRecord | None:
        """Poll after each change until there is a result or the time is over."""
        deadline = self._world.monotonic() + wait_ms / 1000
        while (found := await poll()) is None and (left := deadline - self._world.monotonic()) > 0:
            await wait_for_change(left)
        return found

    def _parse_lease(self, request: TickleJobRequest | CompleteJobRequest | ReleaseJobRequest) -> Held:
        """Parse the lease that a runner names; omitted fields are not compared."""
        if self._must_name_runner and not request.runner_id:
            raise errors.ValidationError(field="runner_id", problem="must be given; REQUIRE_RUNNER_ID is on")
        return Held(request.runner_id, request.run_attempts)

    async def _get_existing(self, job_id: str) -> JobRecord:
        record = await self._jobs.get(job_id)
        if record is None:
            raise errors.JobNotFound(job_id=job_id)
        return record

    async def _build_not_active(self, job_id: str) -> errors.JobNotActive:
        return errors.JobNotActive(job_id=job_id, status=_format_status(await self._get_existing(job_id)))


def _get_optional(request: Any, field: str) -> str | None:
    value: str = getattr(request, field)
    return value if request.HasField(field) else None


def _is_repeat(request: CompleteJobRequest, record: JobRecord) -> bool:
    """Whether a request repeats an accepted outcome, which is idempotent."""
    return (
        record.status == request.status
        and record.output_addr == _get_optional(request, "output_addr")
        and record.completed_at is not None
        and request.runner_id in ("", record.runner_id)
    )


def _to_job(record: JobRecord) -> Job:
    return Job(**{name: getattr(record, name) for name in _JOB_FIELDS})


def _format_status(record: JobRecord) -> str:
    return JOB.states[record.status].lower()
