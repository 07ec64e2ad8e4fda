"""Terminal result envelopes. The first one of a job stays."""

from __future__ import annotations

from msgspec import Struct

from generated.taskqueue.errors import OUTPUT_TOO_LARGE
from generated.taskqueue.messages import (
    DONE,
    FAILED,
    GetResultRequest,
    GetResultResponse,
    JobStatus,
    StoreResultRequest,
    StoreResultResponse,
)
from generated.taskqueue.settings import ResultSettings
from runtime.call import Call
from runtime.model.text import sha256_hex
from runtime.stores.bounded import BoundedMap


class Envelope(Struct, frozen=True):
    """What is left of a job when it is over."""

    terminal_status: JobStatus.ValueType
    runtime_ms: int
    output_summary: str
    output_bytes: bytes
    checksum: str

    @property
    def size(self) -> int:
        return len(self.output_bytes) + len(self.output_summary.encode()) + len(self.checksum)


class Result:
    """Owns the envelopes and knows no other state of a job."""

    def __init__(self, settings: ResultSettings) -> None:
        self._max_output_bytes = settings.max_output_bytes
        self._envelopes: BoundedMap[Envelope] = BoundedMap(
            settings.max_retained_output_bytes, weigh=lambda envelope: envelope.size
        )

    async def store_result(self, request: StoreResultRequest, _call: Call) -> StoreResultResponse:
        offered = self._within_bounds(request)
        held = self._envelopes.get(request.job_id)
        if held is None:
            self._envelopes.add(request.job_id, offered)
            return StoreResultResponse(stored=True, current_terminal_status=offered.terminal_status)
        same = (held.terminal_status, held.checksum) == (offered.terminal_status, offered.checksum)
        return StoreResultResponse(
            stored=same, already_exists=True, current_terminal_status=held.terminal_status
        )

    async def get_result(self, request: GetResultRequest, _call: Call) -> GetResultResponse:
        held = self._envelopes.get(request.job_id)
        if held is None:
            return GetResultResponse(found=False, job_id=request.job_id)
        return GetResultResponse(
            found=True,
            job_id=request.job_id,
            terminal_status=held.terminal_status,
            runtime_ms=held.runtime_ms,
            output_summary=held.output_summary,
            output_bytes=held.output_bytes,
            checksum=held.checksum,
        )

    def _within_bounds(self, request: StoreResultRequest) -> Envelope:
        """The envelope as it may be stored: an output that is too large fails a job that was done."""
        status, summary = request.terminal_status, request.output_summary
        content, checksum = request.output_bytes, request.checksum
        if len(content) > self._max_output_bytes:
            if status == DONE:
                status = FAILED
                summary = (
                    f"{OUTPUT_TOO_LARGE}: {len(content)} bytes, at most {self._max_output_bytes} are kept"
                )
            content, checksum = b"", sha256_hex(b"")
        return Envelope(status, request.runtime_ms, summary, content, checksum)
