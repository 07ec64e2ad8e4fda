"""Job records: created once per idempotency key, changed by guarded transitions, listed by age."""

from __future__ import annotations

from generated.taskqueue import errors
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    CREATED_AT_ASC,
    CreateJobRequest,
    CreateJobResponse,
    DeleteJobIfStatusRequest,
    DeleteJobIfStatusResponse,
    GetJobRecordRequest,
    GetJobRecordResponse,
    JobStatus,
    JobSummary,
    ListJobRecordsRequest,
    ListJobRecordsResponse,
    PageResponse,
    SetCancelRequestedRequest,
    SetCancelRequestedResponse,
    TransitionJobStatusRequest,
    TransitionJobStatusResponse,
)
from generated.taskqueue.records import JobRecord, SubmitKeyRecord
from generated.taskqueue.settings import JobSettings
from handlers.taskqueue.single_writer import Turns
from handlers.taskqueue.submit_keys import SubmitKeys
from runtime.call import Call
from runtime.stores.contract import EntityStore
from runtime.stores.store import NoSuchEntity
from runtime.world import World


class Job:
    """The owner of all job records and of the idempotency keys of earlier submits."""

    def __init__(
        self,
        records: EntityStore[JobRecord],
        keys: EntityStore[SubmitKeyRecord],
        settings: JobSettings,
        world: World,
    ) -> None:
        self._records = records
        self._world = world
        self._keys = SubmitKeys(keys, settings.max_dedup_keys, world)
        self._turns = Turns()

    async def create_job(self, request: CreateJobRequest, call: Call) -> CreateJobResponse:
        key = request.client_request_id
        spec = request.spec.SerializeToString(deterministic=True)
        if not key:
            return await self._create(request, spec, call)
        async with self._turns.of(key):
            if (earlier := await self._find_by_key(key, call)) is None:
                return await self._create(request, spec, call)
        if earlier.spec != spec:
            raise errors.RequestKeyReused(client_request_id=key)
        return _to_create_response(earlier, deduplicated=True)

    async def delete_job_if_status(
        self, request: DeleteJobIfStatusRequest, call: Call
    ) -> DeleteJobIfStatusResponse:
        job_id = request.job_id
        try:
            record = await self._get_existing(job_id)
            deletion = await self._records.delete(job_id, request.expected_status, call)
        except (errors.JobNotFound, NoSuchEntity):
            return DeleteJobIfStatusResponse(deleted=False)
        if deletion.applied and (key := record.client_request_id):
            async with self._turns.of(key):
                if await self._keys.get(key) == job_id:
                    await self._keys.remove(key, call)
        return DeleteJobIfStatusResponse(deleted=deletion.applied, current_status=_to_status(deletion.state))

    async def get_job_record(self, request: GetJobRecordRequest, _call: Call) -> GetJobRecordResponse:
        record = await self._get_existing(request.job_id)
        response = GetJobRecordResponse()
        _fill_summary(record, response.summary)
        response.spec.MergeFromString(record.spec)
        if record.failure_reason:
            response.failure_reason = record.failure_reason
        if record.cancel_reason:
            response.cancel_reason = record.cancel_reason
        return response

    async def list_job_records(self, request: ListJobRecordsRequest, _call: Call) -> ListJobRecordsResponse:
        offset = int(request.page.page_token or 0)
        page = await self._records.find(
            states=request.status_filter,
            offset=offset,
            size=request.page.page_size,
            newest_first=request.sort != CREATED_AT_ASC,
        )
        token = str(offset + len(page.records)) if page.next is not None else ""
        return ListJobRecordsResponse(
            jobs=[_to_summary(record) for record in page.records], page=PageResponse(next_page_token=token)
        )

    async def transition_job_status(
        self, request: TransitionJobStatusRequest, call: Call
    ) -> TransitionJobStatusResponse:
        edge = self._records.edge_between(request.expected_from_status, request.to_status, call)
        given = {"reason": request.reason}
        try:
            async with self._turns.of(request.job_id):
                transition = await self._records.transition(
                    request.job_id, edge.name, call, given=given, noted=given
                )
        except NoSuchEntity:
            raise errors.JobNotFound(job_id=request.job_id) from None
        return TransitionJobStatusResponse(
            applied=transition.applied, current_status=_to_status(transition.state)
        )

    async def set_cancel_requested(
        self, request: SetCancelRequestedRequest, _call: Call
    ) -> SetCancelRequestedResponse:
        async with self._turns.of(request.job_id):
            record = await self._get_existing(request.job_id)
            if record.status in JOB.terminal:
                return SetCancelRequestedResponse(applied=False, current_status=_to_status(record.status))
            await self._records.update(
                request.job_id, cancel_requested=True, cancel_reason=record.cancel_reason or request.reason
            )
        return SetCancelRequestedResponse(applied=True, current_status=_to_status(record.status))

    async def _create(self, request: CreateJobRequest, spec: bytes, call: Call) -> CreateJobResponse:
        """Create a job, its key first: what is left of a creation that broke off is a key without a job."""
        job_id, key = self._world.new_id(), request.client_request_id
        if key:
            job_id = await self._keys.add(key, job_id, call)
        record = JobRecord(job_id=job_id, spec=spec, job_type=request.spec.job_type, client_request_id=key)
        created = await self._records.create(record, call)
        return _to_create_response(created.record, deduplicated=False)

    async def _find_by_key(self, key: str, call: Call) -> JobRecord | None:
        """Find the job of an earlier submit with the same key, unless the key has been evicted."""
        job_id = await self._keys.get(key)
        if job_id is None:
            return None
        record = await self._records.get(job_id)
        if record is None:
            await self._keys.remove(key, call)
        return record

    async def _get_existing(self, job_id: str) -> JobRecord:
        record = await self._records.get(job_id)
        if record is None:
            raise errors.JobNotFound(job_id=job_id)
        return record


def _to_create_response(record: JobRecord, *, deduplicated: bool) -> CreateJobResponse:
    return CreateJobResponse(
        job_id=record.job_id,
        status=_to_status(record.status),
        created_at_ms=record.created_at_ms,
        deduplicated=deduplicated,
    )


def _to_summary(record: JobRecord) -> JobSummary:
    summary = JobSummary()
    _fill_summary(record, summary)
    return summary


def _fill_summary(record: JobRecord, summary: JobSummary) -> None:
    """Fill a summary in place: a message that is built first and assigned to a field is copied."""
    summary.job_id = record.job_id
    summary.status = _to_status(record.status)
    summary.job_type = record.job_type
    summary.created_at_ms = record.created_at_ms
    summary.started_at_ms = record.started_at_ms
    summary.finished_at_ms = record.finished_at_ms
    summary.cancel_requested = record.cancel_requested


def _to_status(state: int) -> JobStatus.ValueType:
    return JobStatus.ValueType(state)
