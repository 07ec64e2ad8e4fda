"""The ending of a job: derive its terminal state and result envelope from a report, a cancel or a loss."""

from __future__ import annotations

from msgspec import Struct

from generated.taskqueue.errors import UNKNOWN_FAILURE, WORKER_CANCELED, WORKER_LOST
from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    JOB_OUTCOME_CANCELED,
    JOB_OUTCOME_SUCCEEDED,
    GetJobRecordResponse,
    JobStatus,
    ReportWorkOutcomeRequest,
    StoreResultRequest,
)


class Ending(Struct, frozen=True):
    """The terminal state of a job and the content of its result envelope."""

    target: JobStatus.ValueType
    reason: str = ""
    summary: str = ""
    runtime_ms: int = 0
    output: bytes = b""

    def to_envelope(self, job_id: str) -> StoreResultRequest:
        return StoreResultRequest(
            job_id=job_id,
            terminal_status=self.target,
            runtime_ms=self.runtime_ms,
            output_summary=self.summary,
            output_bytes=self.output,
        )


def from_report(request: ReportWorkOutcomeRequest, record: GetJobRecordResponse) -> Ending:
    """Build the ending of a running job from its report. A cancel that was requested in time wins."""
    if record.summary.cancel_requested:
        return from_cancel(record, "while running", request.runtime_ms)
    if request.outcome == JOB_OUTCOME_SUCCEEDED:
        return Ending(
            DONE, summary=request.output_summary, runtime_ms=request.runtime_ms, output=request.output_bytes
        )
    reason = WORKER_CANCELED if request.outcome == JOB_OUTCOME_CANCELED else request.failure_reason
    return Ending(
        FAILED,
        reason,
        request.output_summary or reason or UNKNOWN_FAILURE,
        request.runtime_ms,
        request.output_bytes,
    )


def from_cancel(record: GetJobRecordResponse, phase: str, runtime_ms: int = 0) -> Ending:
    """Build the ending of a job whose cancel was requested, with the reason of that request."""
    reason = record.cancel_reason
    return Ending(CANCELED, reason, reason or f"canceled {phase}", runtime_ms)


def from_lost_worker(detail: str) -> Ending:
    """Build the ending of a job that no worker will report on."""
    return Ending(FAILED, WORKER_LOST, f"{WORKER_LOST}: {detail}")
