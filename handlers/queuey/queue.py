"""The queue: assigns jobs to runners and stores their outcomes. It never runs one or reads an address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from generated.queuey import errors
from generated.queuey.errors import CANCELED
from generated.queuey.lifecycle import JOB, JOB_ABANDON, JOB_CLAIM, JOB_FAIL, JOB_RELEASE
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
from runtime.stores.contract import CREATION, Cursor, EntityStore, HistoryEntry, LeaseProof, LeaseSettlement
from runtime.stores.store import NoSuchEntity
from runtime.world import World

_JOB_FIELDS = tuple(each.name for each in Job.DESCRIPTOR.fields)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ANY_LEASE = LeaseProof("", 0)
"""The proof of a cancellation, which does not depend on the owner of the lease."""


class Queue:
    """The methods of QueueService. It is stateless: every response comes from the file."""

    def __init__(self, jobs: EntityStore[JobRecord], settings: QueueSettings, world: World) -> None:
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
            await self._poll_until(find_ended, partial(self._jobs.wait, key=request.job_id), request.wait_ms)
            if request.wait_ms
            else None
        )
        call.note(job_id=request.job_id)
        return _to_job(found or await self._get_existing(request.job_id))

    async def list_jobs(self, request: ListJobsRequest, _call: Call) -> ListJobsResponse:
        after = await self._find_place(request.page_token) if request.page_token else None
        if request.page_token and after is None:
            return ListJobsResponse()
        found: list[JobRecord] = []
        while len(found) <= request.page_size:
            page = await self._jobs.find(
                states=request.status,
                equal={"runner_id": request.runner_id} if request.runner_id else {},
                after=after,
                size=request.page_size + 1 - len(found),
            )
            found += page.records
            after = page.next
            if after is None:
                break
        shown = found[: request.page_size]
        token = shown[-1].job_id if len(found) > len(shown) else ""
        return ListJobsResponse(jobs=map(_to_job, shown), next_page_token=token)

    async def _find_place(self, job_id: str) -> Cursor | None:
        """Find the place of a job in the listing; None where there is no such job."""
        record = await self._jobs.get(job_id)
        return None if record is None else Cursor(record.created_at * 1000, job_id)

    async def count_jobs(self, _request: CountJobsRequest, _call: Call) -> CountJobsResponse:
        counts = await self._jobs.count()
        return CountJobsResponse(
            pending=counts[PENDING],
            active=counts[ACTIVE],
            completed=counts[COMPLETED],
            failed=counts[FAILED],
        )

    async def claim_job(self, request: ClaimJobRequest, call: Call) -> Job:
        async def claim() -> JobRecord | None:
            claimed = await self._jobs.claim(request.runner_id, 1, call)
            return claimed[0] if claimed else None

        record = await self._poll_until(claim, self._jobs.wait, request.wait_ms)
        if record is None:
            return Job()
        call.note(job_id=record.job_id)
        return _to_job(record)

    async def tickle_job(self, request: TickleJobRequest, _call: Call) -> Job:
        lease = self._parse_lease(request)
        (record,) = await self._jobs.renew([(request.job_id, lease)])
        if record is not None:
            return _to_job(record)
        existing = await self._get_existing(request.job_id)
        if existing.status != ACTIVE:
            raise await self._build_not_active(request.job_id)
        if lease.owner and existing.runner_id != lease.owner:
            raise errors.NotOwner(holder=lease.owner, key=request.job_id)
        raise errors.StaleAttempt(key=request.job_id)

    async def complete_job(self, request: CompleteJobRequest, call: Call) -> Job:
        lease = self._parse_lease(request)
        outcome = {
            "output_addr": _get_optional(request, "output_addr"),
            "stderr_addr": _get_optional(request, "stderr_addr"),
            "exit_code": str(request.exit_code) if request.HasField("exit_code") else None,
            "reason": _get_optional(request, "reason"),
        }
        try:
            edge = self._jobs.edge_between(ACTIVE, request.status, call)
            transition = await self._jobs.transition(
                request.job_id, edge.name, call, lease=lease, given=outcome
            )
        except NoSuchEntity:
            raise errors.JobNotFound(job_id=request.job_id) from None
        record = await self._get_existing(request.job_id)
        if transition.applied or _is_repeat(request, record):
            return _to_job(record)
        raise await self._build_not_active(request.job_id)

    async def release_job(self, request: ReleaseJobRequest, call: Call) -> Job:
        edge = JOB_ABANDON if request.abandoned else JOB_RELEASE
        lease = self._parse_lease(request)
        await self._get_existing(request.job_id)
        await self._jobs.settle(LeaseSettlement(request.job_id, lease, edge.name), call)
        return _to_job(await self._get_existing(request.job_id))

    async def cancel_job(self, request: CancelJobRequest, call: Call) -> Job:
        record = await self._get_existing(request.job_id)
        # A pending job is claimed first, so that no runner can claim it, and ended atomically with that.
        edges = [JOB_CLAIM.name, JOB_FAIL.name] if record.status == PENDING else [JOB_FAIL.name]
        transition = await self._jobs.transition(
            request.job_id, edges, call, lease=_ANY_LEASE, given={"reason": CANCELED}
        )
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
            changes=[_to_change(each) for each in changes],
        )

    def _build_fields(self, binary_addr: str, input_addr: str | None) -> dict[str, Any]:
        return {"job_id": self._world.new_id().upper(), "binary_addr": binary_addr, "input_addr": input_addr}

    async def _create(self, fields: dict[str, Any], key: str | None, call: Call) -> Job:
        record = (await self._jobs.create(JobRecord(**fields, idempotency_key=key), call)).record
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

    def _parse_lease(self, request: TickleJobRequest | CompleteJobRequest | ReleaseJobRequest) -> LeaseProof:
        """Parse the lease that a runner names; omitted fields are not compared."""
        if self._must_name_runner and not request.runner_id:
            raise errors.ValidationError(field="runner_id", problem="must be given; REQUIRE_RUNNER_ID is on")
        return LeaseProof(request.runner_id, request.run_attempts)

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


def _to_change(entry: HistoryEntry) -> JobChange:
    source = "" if entry.source is None else JOB.states[entry.source].lower()
    return JobChange(
        from_status=source,
        to_status=JOB.states[entry.target].lower(),
        actor=entry.actor,
        run_attempts=entry.fence,
        transition="" if entry.edge == CREATION else entry.edge,
        at=(entry.at - _EPOCH) // timedelta(milliseconds=1),
    )


def _to_job(record: JobRecord) -> Job:
    return Job(**{name: getattr(record, name) for name in _JOB_FIELDS})


def _format_status(record: JobRecord) -> str:
    return JOB.states[record.status].lower()
