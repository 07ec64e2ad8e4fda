"""The public API: the order of steps behind each of its methods, and what is undone when a step fails."""

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
    """Keeps nothing: every answer comes from the components that own the data."""

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
        if created.status == QUEUED and not await self._enqueued(created.job_id, call):
            if created.deduplicated:
                # An earlier submit under the same key may have been accepted, so the record stays.
                call.tell(
                    CONSISTENCY_ANOMALY, "a repeated submit could not make sure that the job is in the queue"
                )
            else:
                await self._take_back(created.job_id, call)
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
        if status == JOB.initial and await self._withdrawn(request, record.cancel_reason, call):
            status = CANCELED
        else:
            status = await self._ask_to_cancel(request, call)
        return CancelJobResponse(job_id=request.job_id, accepted=True, current_status=status)

    async def list_jobs(self, request: ListJobsRequest, call: Call) -> ListJobsResponse:
        records = await self._jobs.list_job_records(
            ListJobRecordsRequest(status_filter=request.status_filter, page=request.page, sort=request.sort),
            call,
        )
        return ListJobsResponse(jobs=records.jobs, page=records.page)

    async def _create(self, request: SubmitJobRequest, call: Call) -> CreateJobResponse:
        wanted = CreateJobRequest(spec=request.spec, client_request_id=request.client_request_id)
        try:
            return await self._jobs.create_job(wanted, call)
        except CallFailed:
            # With a key the record can be found again: a repeat of the submit has its id.
            if not request.client_request_id:
                call.tell(CONSISTENCY_ANOMALY, "a record may have been created that nobody knows the id of")
            raise

    async def _enqueued(self, job_id: str, call: Call) -> bool:
        try:
            return (await self._queue.enqueue_job(self._enqueue_request(job_id), call)).accepted
        except Failure:
            return False

    async def _take_back(self, job_id: str, call: Call) -> None:
        """Deletes the record of a submit that was not accepted, and what may have got into the queue."""
        undo = call.under(COMPENSATION)
        try:
            gone = await self._jobs.delete_job_if_status(
                DeleteJobIfStatusRequest(job_id=job_id, expected_status=QUEUED), undo
            )
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"a submit could not be taken back: {failure.message}")
            return
        if not gone.deleted and gone.current_status != JOB_STATUS_UNSPECIFIED:
            call.tell(
                CONSISTENCY_ANOMALY,
                "a submit that was refused has been dispatched",
                expected_status=JobStatus.Name(QUEUED),
                current_status=JobStatus.Name(gone.current_status),
            )
            return
        try:
            ghost = await self._queue.remove_job_if_present(RemoveJobIfPresentRequest(job_id=job_id), undo)
        except Failure:
            return  # A ghost that is left in the queue is told of when it comes up for dispatch.
        if ghost.removed:
            call.tell(CONSISTENCY_ANOMALY, "a failed enqueue had taken effect; removed")

    async def _withdrawn(self, request: CancelJobRequest, earlier_reason: str, call: Call) -> bool:
        """Cancels a job that waits: out of the queue, then the envelope, then the state.

        Whether that succeeded: the job may not have been in the queue, or have gone another way meanwhile.
        """
        job_id = request.job_id
        reason = earlier_reason or request.reason
        try:
            removed = await self._queue.remove_job_if_present(RemoveJobIfPresentRequest(job_id=job_id), call)
            if not removed.removed:
                return False
            envelope = StoreResultRequest(
                job_id=job_id, terminal_status=CANCELED, output_summary=reason or "canceled while queued"
            )
            stored = await self._results.store_result(envelope, call)
            if stored.current_terminal_status != CANCELED:
                await self._put_back(job_id, "an envelope of another state was there first", call)
                return False
            moved = await self._jobs.transition_job_status(
                TransitionJobStatusRequest(
                    job_id=job_id, expected_from_status=QUEUED, to_status=CANCELED, reason=reason
                ),
                call,
            )
        except errors.JobNotFound:
            raise
        except Failure as failure:
            # Whatever was done, the job may be out of the queue now; once more in it does no harm.
            await self._put_back(job_id, failure.message, call)
            raise errors.CancelNotCompleted(job_id=job_id) from failure
        if moved.current_status != CANCELED:
            call.tell(
                CONSISTENCY_ANOMALY,
                "a cancel lost its race after its envelope was stored",
                expected_status=JobStatus.Name(QUEUED),
                current_status=JobStatus.Name(moved.current_status),
            )
        return moved.current_status == CANCELED

    async def _ask_to_cancel(self, request: CancelJobRequest, call: Call) -> JobStatus.ValueType:
        flagged = await self._jobs.set_cancel_requested(
            SetCancelRequestedRequest(job_id=request.job_id, cancel_requested=True, reason=request.reason),
            call,
        )
        if flagged.current_status == QUEUED:
            call.tell(CANCEL_RACE, "a queued job was not in the queue; it may be on its way to a worker")
        return flagged.current_status

    async def _put_back(self, job_id: str, why: str, call: Call) -> None:
        call.tell(CONSISTENCY_ANOMALY, f"a cancel broke off and the job is put back into the queue: {why}")
        try:
            answer = await self._queue.enqueue_job(self._enqueue_request(job_id), call.under(RESCUE))
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"the job could not be put back: {failure.message}")
            return
        if not answer.accepted:
            call.tell(CONSISTENCY_ANOMALY, "the queue did not take the job back")

    def _enqueue_request(self, job_id: str) -> EnqueueJobRequest:
        return EnqueueJobRequest(job_id=job_id, enqueued_at_ms=self._world.now_ms())
