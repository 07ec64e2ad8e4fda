"""The API: records what clients want done, shows what became of it, and never runs a job."""

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
    """Keeps nothing: every answer comes from the database."""

    def __init__(self, jobs: KeptStore[JobRecord], settings: ApiSettings, world: World) -> None:
        self._jobs = jobs
        self._strict = settings.idempotency_strict
        self._world = world

    async def submit_job(self, request: SubmitJobRequest, call: Call) -> SubmitJobResponse:
        (job_id,) = self._world.new_keys(1)
        wanted = _intent(job_id, request.job_type, request.payload, request.idempotency_key)
        return _accepted(await self._accept(wanted, call))

    async def submit_jobs(self, request: SubmitJobsRequest, call: Call) -> SubmitJobsResponse:
        wanted = [
            _intent(job_id, each.job_type, each.payload, each.idempotency_key)
            for job_id, each in zip(self._world.new_keys(len(request.jobs)), request.jobs, strict=True)
        ]
        return SubmitJobsResponse(jobs=map(_accepted, await self._accept_all(wanted, call)))

    async def get_job(self, request: GetJobRequest, _call: Call) -> Job:
        return _shown(await self._existing(request.job_id))

    async def list_jobs(self, request: ListJobsRequest, _call: Call) -> ListJobsResponse:
        found = await self._jobs.find(
            states=_states(request.status),
            equal={"job_type": request.job_type} if request.job_type else {},
            since=_time(request, "created_from"),
            until=_time(request, "created_to"),
            after=_position(request.page_token),
            size=request.page_size + 1,
        )
        page = found[: request.page_size]
        more = len(found) > len(page)
        return ListJobsResponse(jobs=map(_shown, page), next_page_token=_token(page[-1]) if more else "")

    async def retry_job(self, request: RetryJobRequest, call: Call) -> SubmitJobResponse:
        failed = await self._existing(request.job_id)
        if failed.state != DEAD:
            raise errors.JobNotFailed(job_id=request.job_id)
        (job_id,) = self._world.new_keys(1)
        again = _intent(job_id, failed.job_type, failed.payload, request.idempotency_key)
        return _accepted(await self._accept(again, call))

    async def get_job_history(self, request: GetJobHistoryRequest, _call: Call) -> GetJobHistoryResponse:
        record = await self._existing(request.job_id)
        return GetJobHistoryResponse(
            job=_shown(record),
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
                    at=_stamp(each.at),
                )
                for each in await self._jobs.history(request.job_id)
            ],
        )

    async def purge_jobs(self, request: PurgeJobsRequest, call: Call) -> PurgeJobsResponse:
        return PurgeJobsResponse(purged=await self._jobs.purge(request.older_than_days * _DAY_S, call))

    async def _accept(self, wanted: JobRecord, call: Call) -> JobRecord:
        """Stores an intent, then queues it: two steps, and the first alone makes the promise.

        A job that is left between them, by a crash or an outage, is queued by a repeat or by the sweeper.
        """
        found, new = await self._jobs.create_or_find(wanted, call.itself())
        if not new:
            self._compare(wanted, found, call)
        call.note(job_id=found.job_id)
        if found.state == CREATED:
            await self._queue([found], call)
        return found

    async def _accept_all(self, wanted: Sequence[JobRecord], call: Call) -> list[JobRecord]:
        def refuse(intent: JobRecord, record: JobRecord) -> None:
            self._compare(intent, record, call)

        # A key that is refused refuses the whole batch, so nothing of it may be stored by then.
        compare = refuse if self._strict else None
        found = await self._jobs.create_or_find_all(wanted, call.itself(), compare=compare)
        if not self._strict:
            for intent, (record, new) in zip(wanted, found, strict=True):
                if not new:
                    self._compare(intent, record, call)
        await self._queue([record for record, _ in found if record.state == CREATED], call)
        return [record for record, _ in found]

    async def _queue(self, records: Iterable[JobRecord], call: Call) -> None:
        keys = list(dict.fromkeys(each.job_id for each in records))
        if not keys:
            return
        try:
            await self._jobs.move_all(keys, CREATED, QUEUED, call.itself())
        except Failure:
            return  # The intents are stored, which is all that was promised; the sweeper queues them.

    def _compare(self, wanted: JobRecord, found: JobRecord, call: Call) -> None:
        """A key names one intent. Another one under it is answered with the first, or refused."""
        if found.job_type == wanted.job_type and _equal(found.payload, wanted.payload):
            return
        if self._strict:
            raise errors.IdempotencyKeyReused
        call.tell(KEY_REUSED, "a known key came with another intent", job_id=found.job_id)

    async def _existing(self, job_id: str) -> JobRecord:
        record = await self._jobs.get(job_id)
        if record is None:
            raise errors.JobNotFound(job_id=job_id)
        return record


def _intent(job_id: str, job_type: str, payload: str, key: str) -> JobRecord:
    return JobRecord(job_id=job_id, job_type=job_type, payload=payload, idempotency_key=key)


def _accepted(record: JobRecord) -> SubmitJobResponse:
    return SubmitJobResponse(job_id=record.job_id, status=_status(record))


def _shown(record: JobRecord) -> Job:
    return Job(
        job_id=record.job_id,
        job_type=record.job_type,
        status=_status(record),
        created_at=_stamp(record.created_at),
        updated_at=_stamp(record.updated_at),
    )


def _status(record: JobRecord) -> Status.ValueType:
    return Status.ValueType(JOB.shown[record.state])


def _states(shown: Iterable[int]) -> list[int]:
    """The states that are shown as one of these; none at all means every state."""
    wanted = set(shown)
    return [state for state, status in JOB.shown.items() if status in wanted]


def _equal(one: str, other: str) -> bool:
    return one == other or json.loads(one) == json.loads(other)


def _stamp(at: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(at)
    return stamp


def _time(request: ListJobsRequest, field: Literal["created_from", "created_to"]) -> datetime | None:
    if not request.HasField(field):
        return None
    given: Timestamp = getattr(request, field)
    try:
        return given.ToDatetime(UTC)
    except (ValueError, OverflowError):
        problem = "must be a time from the year 1 to the year 9999"
        raise errors.ValidationError(field=field, problem=problem) from None


def _token(last: JobRecord) -> str:
    seconds, rest = divmod(last.created_at - _EPOCH, timedelta(seconds=1))
    return f"{seconds}.{rest.microseconds:06}~{last.job_id}"


def _position(token: str) -> tuple[datetime, str] | None:
    """Where the page before ended; the spec lets no other tokens through."""
    if not token:
        return None
    at, _, job_id = token.partition("~")
    seconds, _, microseconds = at.partition(".")
    return _EPOCH + timedelta(seconds=int(seconds), microseconds=int(microseconds)), job_id
