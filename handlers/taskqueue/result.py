"""Result envelopes of terminal jobs. The first envelope of a job wins."""

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
    """The result of a terminal job."""

    terminal_status: JobStatus.ValueType
    runtime_ms: int
    output_summary: str
    output_bytes: bytes
    checksum: str

    @property
    def size(self) -> int:
        return len(self.output_bytes) + len(self.output_summary.encode()) + len(self.checksum)


class Result:
    """The owner of the result envelopes; it knows no other state of a job."""

    def __init__(self, settings: ResultSettings) -> None:
        self._max_output_bytes = settings.max_output_bytes
        self._envelopes: BoundedMap[Envelope] = BoundedMap(
            settings.max_retained_output_bytes, weigh=lambda envelope: envelope.size
        )

    async def store_result(self, request: StoreResultRequest, _call: Call) -> StoreResultResponse:
        envelope = self._limit_output(request)
        stored = self._envelopes.get(request.job_id)
        if stored is None:
            self._envelopes.add(request.job_id, envelope)
            return StoreResultResponse(stored=True, current_terminal_status=envelope.terminal_status)
        is_same = (stored.terminal_status, stored.checksum) == (envelope.terminal_status, envelope.checksum)
        return StoreResultResponse(
            stored=is_same, already_exists=True, current_terminal_status=stored.terminal_status
        )

    async def get_result(self, request: GetResultRequest, _call: Call) -> GetResultResponse:
        stored = self._envelopes.get(request.job_id)
        if stored is None:
            return GetResultResponse(found=False, job_id=request.job_id)
        return GetResultResponse(
            found=True,
            job_id=request.job_id,
            terminal_status=stored.terminal_status,
            runtime_ms=stored.runtime_ms,
            output_summary=stored.output_summary,
            output_bytes=stored.output_bytes,
            checksum=stored.checksum,
        )

    def _limit_output(self, request: StoreResultRequest) -> Envelope:
        """Build the envelope to store: an output that is too large is dropped and turns DONE into FAILED."""
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
