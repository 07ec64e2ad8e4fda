"""The API: stores submitted jobs, shows their state, and never runs one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp

from generated.orchestrator import errors
from generated.orchestrator.events import KEY_REUSED
from generated.orchestrator.lifecycle import JOB, JOB_ACCEPT
from generated.orchestrator.messages import (
    CREATED,
    DEAD,
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
from runtime.stores.contract import Cursor, EntityStore
from runtime.stores.store import NoSuchEntity
from runtime.world import World

_DAY_S = 86_400


class Api:
    """The methods of JobsService. It is stateless: every response comes from the database."""

    def __init__(self, jobs: EntityStore[JobRecord], settings: ApiSettings, world: World) -> None:
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
        page = await self._jobs.find(
            states=_to_states(request.status),
            equal={"job_type": request.job_type} if request.job_type else {},
            since=_parse_time(request, "created_from"),
            until=_parse_time(request, "created_to"),
            after=_parse_page_token(request.page_token),
            size=request.page_size,
        )
        next_page_token = _format_page_token(page.next) if page.next is not None else ""
        return ListJobsResponse(jobs=map(_to_job, page.records), next_page_token=next_page_token)

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
                    from_state="" if each.source is None else JOB.states[each.source],
                    to_state=JOB.states[each.target],
                    actor=each.actor,
                    attempt=each.fence,
                    transition="" if each.source is None else each.edge,
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
        found, is_new, *_ = await self._jobs.create(intent, call.itself())
        if not is_new:
            self._check_same_intent(intent, found, call)
        call.note(job_id=found.job_id)
        await self._enqueue([found], call)
        return found

    async def _accept_all(self, intents: Sequence[JobRecord], call: Call) -> list[JobRecord]:
        def refuse(intent: JobRecord, record: JobRecord) -> None:
            self._check_same_intent(intent, record, call)

        # A refused key refuses the whole batch atomically, so compare before anything is stored.
        compare = refuse if self._is_strict else None
        results = await self._jobs.create_many(intents, call.itself(), compare=compare)
        if not self._is_strict:
            for intent, (record, is_new, *_) in zip(intents, results, strict=True):
                if not is_new:
                    self._check_same_intent(intent, record, call)
        found = [each.record for each in results]
        await self._enqueue(found, call)
        return found

    async def _enqueue(self, records: Iterable[JobRecord], call: Call) -> None:
        """Enqueue jobs that are stored and not enqueued yet; the store makes few steps of them."""
        keys = dict.fromkeys(each.job_id for each in records if each.state == CREATED)
        enqueued = (self._jobs.transition(key, JOB_ACCEPT.name, call.itself()) for key in keys)
        for outcome in await asyncio.gather(*enqueued, return_exceptions=True):
            # The intents are stored, which is all that was promised; the sweeper enqueues what is left.
            if isinstance(outcome, BaseException) and not isinstance(outcome, Failure | NoSuchEntity):
                raise outcome

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
    return Status.ValueType(JOB.public_status[record.state])


def _to_states(public: Iterable[int]) -> list[int]:
    """Convert public statuses to the internal states that are shown as them; none means every state."""
    statuses = set(public)
    return [state for state, status in JOB.public_status.items() if status in statuses]


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


def _format_page_token(last: Cursor) -> str:
    seconds, microseconds = divmod(last.at, 1_000_000)
    return f"{seconds}.{microseconds:06}~{last.key}"


def _parse_page_token(token: str) -> Cursor | None:
    """Parse the position where the previous page ended; the spec lets no other tokens through."""
    if not token:
        return None
    at, _, job_id = token.partition("~")
    seconds, _, microseconds = at.partition(".")
    return Cursor(int(seconds) * 1_000_000 + int(microseconds), job_id)
