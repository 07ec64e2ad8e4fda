"""The API: stores submitted jobs, shows their state, and never runs one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp

from generated.orchestrator import errors
from generated.orchestrator.events import KEY_REUSED
from generated.orchestrator.lifecycle import JOB
from generated.orchestrator.messages import (
    CREATED,
    DEAD,
    QUEUED,
    GetJobHistoryRequest,
    GetJobHistoryResponse,
    GetJobRequest,
    Job,
    JobTransition,
    ListJobsRequest,
    ListJobsResponse,
    PurgeJobsRequest,
    PurgeJobsResponse,
    RetryJobRequest,
    Status,
    SubmitJobRequest,
    SubmitJobResponse,
    SubmitJobsRequest,
    SubmitJobsResponse,
)
from generated.orchestrator.records import JobRecord
from generated.orchestrator.settings import ApiSettings
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.store import KeptStore
from runtime.world import World

_DAY_S = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Api:
    """The methods of JobsService. It is stateless: every response comes from the database."""

    def __init__(self, jobs: KeptStore[JobRecord], settings: ApiSettings, world: World) -> None:
        self._jobs = jobs
        self._is_strict = settings.idempotency_strict
        self._world = world

    async def submit_job(self, request: SubmitJobRequest, call: Call) -> SubmitJobResponse:
        (job_id,) = self._world.new_keys(1)
        intent = _build_intent(job_id, request.job_type, request.payload, request.idempotency_key)
        return _to_submit_response(await self._accept(intent, call))

    async def submit_jobs(self, request: SubmitJobsRequest, call: Call) -> SubmitJobsResponse:
        intents = [
            _build_intent(job_id, each.job_type, each.payload, each.idempotency_key)
            for job_id, each in zip(self._world.new_keys(len(request.jobs)), request.jobs, strict=True)
        ]
        return SubmitJobsResponse(jobs=map(_to_submit_response, await self._accept_all(intents, call)))

    async def get_job(self, request: GetJobRequest, _call: Call) -> Job:
        return _to_job(await self._get_existing(request.job_id))

    async def list_jobs(self, request: ListJobsRequest, _call: Call) -> ListJobsResponse:
        found = await self._jobs.find(
            states=_to_states(request.status),
            equal={"job_type": request.job_type} if request.job_type else {},
            since=_parse_time(request, "created_from"),
            until=_parse_time(request, "created_to"),
            after=_parse_page_token(request.page_token),
            size=request.page_size + 1,
        )
        page = found[: request.page_size]
        has_more = len(found) > len(page)
        return ListJobsResponse(
            jobs=map(_to_job, page), next_page_token=_format_page_token(page[-1]) if has_more else ""
        )

    async def retry_job(self, request: RetryJobRequest, call: Call) -> SubmitJobResponse:
        failed = await self._get_existing(request.job_id)
        if failed.state != DEAD:
            raise errors.JobNotFailed(job_id=request.job_id)
        (job_id,) = self._world.new_keys(1)
        intent = _build_intent(job_id, failed.job_type, failed.payload, request.idempotency_key)
        return _to_submit_response(await self._accept(intent, call))

    async def get_job_history(self, request: GetJobHistoryRequest, _call: Call) -> GetJobHistoryResponse:
        record = await self._get_existing(request.job_id)
        return GetJobHistoryResponse(
            job=_to_job(record),
            retry_count=record.retry_count,
            attempt=record.attempt,
            last_error=record.last_error or "",
            transitions=[
                JobTransition(
                    from_state=each.source,
                    to_state=each.target,
                    actor=each.actor,
                    attempt=each.fence,
                    transition=each.edge,
                    at=_to_timestamp(each.at),
                )
                for each in await self._jobs.history(request.job_id)
            ],
        )

    async def purge_jobs(self, request: PurgeJobsRequest, call: Call) -> PurgeJobsResponse:
        return PurgeJobsResponse(purged=await self._jobs.purge(request.older_than_days * _DAY_S, call))

    async def _accept(self, intent: JobRecord, call: Call) -> JobRecord:
        """Store an intent durably, then enqueue it. The first step alone is what the response promises.

        A job that is left between the steps, by a crash or an outage, is enqueued by a retry or the sweeper.
        """
        found, is_new = await self._jobs.create_or_find(intent, call.itself())
        if not is_new:
            self._check_same_intent(intent, found, call)
        call.note(job_id=found.job_id)
        if found.state == CREATED:
            await self._enqueue([found], call)
        return found

    async def _accept_all(self, intents: Sequence[JobRecord], call: Call) -> list[JobRecord]:
        def refuse(intent: JobRecord, record: JobRecord) -> None:
            self._check_same_intent(intent, record, call)

        # A refused key refuses the whole batch atomically, so compare before anything is stored.
        compare = refuse if self._is_strict else None
        found = await self._jobs.create_or_find_all(intents, call.itself(), compare=compare)
        if not self._is_strict:
            for intent, (record, is_new) in zip(intents, found, strict=True):
                if not is_new:
                    self._check_same_intent(intent, record, call)
        await self._enqueue([record for record, _ in found if record.state == CREATED], call)
        return [record for record, _ in found]

    async def _enqueue(self, records: Iterable[JobRecord], call: Call) -> None:
        keys = list(dict.fromkeys(each.job_id for each in records))
        if not keys:
            return
        try:
            await self._jobs.move_all(keys, CREATED, QUEUED, call.itself())
        except Failure:
            return  # The intents are stored, which is all that was promised; the sweeper enqueues them.

    def _check_same_intent(self, intent: JobRecord, found: JobRecord, call: Call) -> None:
        """Check that a reused idempotency key has the same intent; in strict mode refuse another one."""
        if found.job_type == intent.job_type and _is_equal_json(found.payload, intent.payload):
            return
        if self._is_strict:
            raise errors.IdempotencyKeyReused
        call.tell(KEY_REUSED, "a known key came with another intent", job_id=found.job_id)

    async def _get_existing(self, job_id: str) -> JobRecord:
        record = await self._jobs.get(job_id)
        if record is None:
            raise errors.JobNotFound(job_id=job_id)
        return record


def _build_intent(job_id: str, job_type: str, payload: str, key: str) -> JobRecord:
    return JobRecord(job_id=job_id, job_type=job_type, payload=payload, idempotency_key=key)


def _to_submit_response(record: JobRecord) -> SubmitJobResponse:
    return SubmitJobResponse(job_id=record.job_id, status=_to_public_status(record))


def _to_job(record: JobRecord) -> Job:
    return Job(
        job_id=record.job_id,
        job_type=record.job_type,
        status=_to_public_status(record),
        created_at=_to_timestamp(record.created_at),
        updated_at=_to_timestamp(record.updated_at),
    )


def _to_public_status(record: JobRecord) -> Status.ValueType:
    return Status.ValueType(JOB.shown[record.state])


def _to_states(public: Iterable[int]) -> list[int]:
    """Convert public statuses to the internal states that are shown as them; none means every state."""
    statuses = set(public)
    return [state for state, status in JOB.shown.items() if status in statuses]


def _is_equal_json(one: str, other: str) -> bool:
    return one == other or json.loads(one) == json.loads(other)


def _to_timestamp(at: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(at)
    return timestamp


def _parse_time(request: ListJobsRequest, field: Literal["created_from", "created_to"]) -> datetime | None:
    if not request.HasField(field):
        return None
    timestamp: Timestamp = getattr(request, field)
    try:
        return timestamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        problem = "must be a time from the year 1 to the year 9999"
        raise errors.ValidationError(field=field, problem=problem) from None


def _format_page_token(last: JobRecord) -> str:
    seconds, rest = divmod(last.created_at - _EPOCH, timedelta(seconds=1))
    return f"{seconds}.{rest.microseconds:06}~{last.job_id}"


def _parse_page_token(token: str) -> tuple[datetime, str] | None:
    """Parse the position where the previous page ended; the spec lets no other tokens through."""
    if not token:
        return None
    at, _, job_id = token.partition("~")
    seconds, _, microseconds = at.partition(".")
    return _EPOCH + timedelta(seconds=int(seconds), microseconds=int(microseconds)), job_id
