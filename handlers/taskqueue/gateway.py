"""The gateway: the steps behind each public method, and the compensation when a step fails."""

from __future__ import annotations

from generated.taskqueue import errors
from generated.taskqueue.events import CANCEL_RACE, CONSISTENCY_ANOMALY
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    CANCELED,
    JOB_STATUS_UNSPECIFIED,
    QUEUED,
    CancelJobRequest,
    CancelJobResponse,
    CreateJobRequest,
    CreateJobResponse,
    DeleteJobIfStatusRequest,
    EnqueueJobRequest,
    GetJobRecordRequest,
    GetJobResultRequest,
    GetJobResultResponse,
    GetJobStatusRequest,
    GetJobStatusResponse,
    GetResultRequest,
    JobStatus,
    ListJobRecordsRequest,
    ListJobsRequest,
    ListJobsResponse,
    RemoveJobIfPresentRequest,
    SetCancelRequestedRequest,
    StoreResultRequest,
    SubmitJobRequest,
    SubmitJobResponse,
    TransitionJobStatusRequest,
)
from generated.taskqueue.policy import COMPENSATION, RESCUE
from generated.taskqueue.services import JobInternalService, QueueInternalService, ResultInternalService
from runtime.call import Call
from runtime.call.conditions import CallFailed, Failure
from runtime.world import World


class Gateway:
    """The public API. It is stateless: every response comes from the components that own the data."""

    def __init__(
        self,
        jobs: JobInternalService,
        queue: QueueInternalService,
        results: ResultInternalService,
        world: World,
    ) -> None:
        self._jobs = jobs
        self._queue = queue
        self._results = results
        self._world = world

    async def submit_job(self, request: SubmitJobRequest, call: Call) -> SubmitJobResponse:
        created = await self._create(request, call)
        call.note(job_id=created.job_id)
        if created.status == QUEUED and not await self._enqueue(created.job_id, call):
            if created.deduplicated:
                # An earlier submit with the same key may have been accepted, so the record stays.
                call.tell(
                    CONSISTENCY_ANOMALY, "a repeated submit could not make sure that the job is in the queue"
                )
            else:
                await self._roll_back_submit(created.job_id, call)
            raise errors.SubmitNotAccepted
        return SubmitJobResponse(
            job_id=created.job_id, initial_status=QUEUED, accepted_at_ms=created.created_at_ms
        )

    async def get_job_status(self, request: GetJobStatusRequest, call: Call) -> GetJobStatusResponse:
        record = await self._jobs.get_job_record(GetJobRecordRequest(job_id=request.job_id), call)
        summary = record.summary
        return GetJobStatusResponse(
            job_id=summary.job_id,
            status=summary.status,
            cancel_requested=summary.cancel_requested,
            created_at_ms=summary.created_at_ms,
            started_at_ms=summary.started_at_ms,
            finished_at_ms=summary.finished_at_ms,
            failure_reason=record.failure_reason,
        )

    async def get_job_result(self, request: GetJobResultRequest, call: Call) -> GetJobResultResponse:
        job_id = request.job_id
        record = await self._jobs.get_job_record(GetJobRecordRequest(job_id=job_id), call)
        status = record.summary.status
        if status not in JOB.terminal:
            return GetJobResultResponse(job_id=job_id, result_ready=False)
        result = await self._results.get_result(GetResultRequest(job_id=job_id), call)
        if not result.found or result.terminal_status != status:
            name = JobStatus.Name(status)
            call.tell(CONSISTENCY_ANOMALY, "a terminal job has no matching result", current_status=name)
            raise errors.ResultMissing(job_id=job_id, status=name)
        return GetJobResultResponse(
            job_id=job_id,
            result_ready=True,
            terminal_status=status,
            output_bytes=result.output_bytes,
            output_summary=result.output_summary,
            runtime_ms=result.runtime_ms,
            checksum=result.checksum,
        )

    async def cancel_job(self, request: CancelJobRequest, call: Call) -> CancelJobResponse:
        record = await self._jobs.get_job_record(GetJobRecordRequest(job_id=request.job_id), call)
        status = record.summary.status
        if status in JOB.terminal:
            return CancelJobResponse(
                job_id=request.job_id, accepted=True, current_status=status, already_terminal=True
            )
        if status == JOB.initial and await self._cancel_queued(request, record.cancel_reason, call):
            status = CANCELED
        else:
            status = await self._request_cancel(request, call)
        return CancelJobResponse(job_id=request.job_id, accepted=True, current_status=status)

    async def list_jobs(self, request: ListJobsRequest, call: Call) -> ListJobsResponse:
        records = await self._jobs.list_job_records(
            ListJobRecordsRequest(status_filter=request.status_filter, page=request.page, sort=request.sort),
            call,
        )
        return ListJobsResponse(jobs=records.jobs, page=records.page)

    async def _create(self, request: SubmitJobRequest, call: Call) -> CreateJobResponse:
        creation = CreateJobRequest(spec=request.spec, client_request_id=request.client_request_id)
        try:
            return await self._jobs.create_job(creation, call)
        except CallFailed:
            # With a key the record can be found again: a retry of the submit returns its id.
            if not request.client_request_id:
                call.tell(CONSISTENCY_ANOMALY, "a record may have been created whose id is unknown")
            raise

    async def _enqueue(self, job_id: str, call: Call) -> bool:
        try:
            return (await self._queue.enqueue_job(self._build_enqueue_request(job_id), call)).accepted
        except Failure:
            return False

    async def _roll_back_submit(self, job_id: str, call: Call) -> None:
        """Roll back a submit that was not accepted: delete its record and any entry in the queue."""
        compensation = call.under(COMPENSATION)
        try:
            deletion = await self._jobs.delete_job_if_status(
                DeleteJobIfStatusRequest(job_id=job_id, expected_status=QUEUED), compensation
            )
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"a submit could not be taken back: {failure.message}")
            return
        if not deletion.deleted and deletion.current_status != JOB_STATUS_UNSPECIFIED:
            call.tell(
                CONSISTENCY_ANOMALY,
                "a submit that was refused has been dispatched",
                expected_status=JobStatus.Name(QUEUED),
                current_status=JobStatus.Name(deletion.current_status),
            )
            return
        try:
            removal = await self._queue.remove_job_if_present(
                RemoveJobIfPresentRequest(job_id=job_id), compensation
            )
        except Failure:
            return  # An entry left in the queue has no record; it is logged and dropped at its dispatch.
        if removal.removed:
            call.tell(CONSISTENCY_ANOMALY, "a failed enqueue had taken effect; removed")

    async def _cancel_queued(self, request: CancelJobRequest, earlier_reason: str, call: Call) -> bool:
        """Cancel a queued job: remove it from the queue, store the envelope, then change the state.

        Return whether that succeeded: the job may not be in the queue, or may have changed concurrently.
        """
        job_id = request.job_id
        reason = earlier_reason or request.reason
        try:
            removal = await self._queue.remove_job_if_present(RemoveJobIfPresentRequest(job_id=job_id), call)
            if not removal.removed:
                return False
            envelope = StoreResultRequest(
                job_id=job_id, terminal_status=CANCELED, output_summary=reason or "canceled while queued"
            )
            stored = await self._results.store_result(envelope, call)
            if stored.current_terminal_status != CANCELED:
                await self._requeue(job_id, "an envelope of another state was there first", call)
                return False
            transition = await self._jobs.transition_job_status(
                TransitionJobStatusRequest(
                    job_id=job_id, expected_from_status=QUEUED, to_status=CANCELED, reason=reason
                ),
                call,
            )
        except errors.JobNotFound:
            raise
        except Failure as failure:
            # Whichever step failed, the job may be out of the queue now; enqueue is idempotent.
            await self._requeue(job_id, failure.message, call)
            raise errors.CancelNotCompleted(job_id=job_id) from failure
        if transition.current_status != CANCELED:
            call.tell(
                CONSISTENCY_ANOMALY,
                "a cancel lost its race after its envelope was stored",
                expected_status=JobStatus.Name(QUEUED),
                current_status=JobStatus.Name(transition.current_status),
            )
        return transition.current_status == CANCELED

    async def _request_cancel(self, request: CancelJobRequest, call: Call) -> JobStatus.ValueType:
        response = await self._jobs.set_cancel_requested(
            SetCancelRequestedRequest(job_id=request.job_id, cancel_requested=True, reason=request.reason),
            call,
        )
        if response.current_status == QUEUED:
            call.tell(CANCEL_RACE, "a queued job was not in the queue; it may be on its way to a worker")
        return response.current_status

    async def _requeue(self, job_id: str, cause: str, call: Call) -> None:
        call.tell(CONSISTENCY_ANOMALY, f"a cancel broke off and the job is put back into the queue: {cause}")
        try:
            response = await self._queue.enqueue_job(self._build_enqueue_request(job_id), call.under(RESCUE))
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"the job could not be put back: {failure.message}")
            return
        if not response.accepted:
            call.tell(CONSISTENCY_ANOMALY, "the queue did not take the job back")

    def _build_enqueue_request(self, job_id: str) -> EnqueueJobRequest:
        return EnqueueJobRequest(job_id=job_id, enqueued_at_ms=self._world.now_ms())
