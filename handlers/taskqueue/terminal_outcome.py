"""How a job ends, from what is known of it when it does."""

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
    """The terminal state of a job and what its envelope is to say."""

    target: JobStatus.ValueType
    reason: str = ""
    summary: str = ""
    runtime_ms: int = 0
    output: bytes = b""

    def envelope(self, job_id: str) -> StoreResultRequest:
        return StoreResultRequest(
            job_id=job_id,
            terminal_status=self.target,
            runtime_ms=self.runtime_ms,
            output_summary=self.summary,
            output_bytes=self.output,
        )


def reported(request: ReportWorkOutcomeRequest, record: GetJobRecordResponse) -> Ending:
    """What a report makes of a running job. A cancel that was asked for in time wins."""
    if record.summary.cancel_requested:
        return canceled(record, "while running", request.runtime_ms)
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


def canceled(record: GetJobRecordResponse, phase: str, runtime_ms: int = 0) -> Ending:
    """A cancel that was asked for, with the reason that was given for it."""
    reason = record.cancel_reason
    return Ending(CANCELED, reason, reason or f"canceled {phase}", runtime_ms)


def lost(how: str) -> Ending:
    """A job that no worker will report on."""
    return Ending(FAILED, WORKER_LOST, f"{WORKER_LOST}: {how}")
