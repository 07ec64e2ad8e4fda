"""Result envelopes of terminal jobs. The first envelope of a job wins."""

from __future__ import annotations

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
from generated.taskqueue.records import EnvelopeRecord
from generated.taskqueue.settings import ResultSettings
from handlers.taskqueue.envelope_retention import EnvelopeRetention
from handlers.taskqueue.turns import Turns
from runtime.call import Call
from runtime.model.text import sha256_hex
from runtime.stores.contract import EntityStore
from runtime.world import World


class Result:
    """The owner of the result envelopes; it knows no other state of a job."""

    def __init__(
        self, envelopes: EntityStore[EnvelopeRecord], settings: ResultSettings, world: World
    ) -> None:
        self._max_output_bytes = settings.max_output_bytes
        self._envelopes = envelopes
        self._retention = EnvelopeRetention(envelopes, settings.max_retained_output_bytes, world)
        self._turns = Turns()

    async def store_result(self, request: StoreResultRequest, call: Call) -> StoreResultResponse:
        envelope = self._limit_output(request)
        async with self._turns.of(request.job_id):
            stored = await self._envelopes.get(request.job_id)
            if stored is None:
                await self._retention.add(envelope, call)
                return StoreResultResponse(stored=True, current_terminal_status=_status_of(envelope))
        is_same = (stored.terminal_status, stored.checksum) == (envelope.terminal_status, envelope.checksum)
        return StoreResultResponse(
            stored=is_same, already_exists=True, current_terminal_status=_status_of(stored)
        )

    async def get_result(self, request: GetResultRequest, _call: Call) -> GetResultResponse:
        stored = await self._envelopes.get(request.job_id)
        if stored is None:
            return GetResultResponse(found=False, job_id=request.job_id)
        return GetResultResponse(
            found=True,
            job_id=request.job_id,
            terminal_status=_status_of(stored),
            runtime_ms=stored.runtime_ms,
            output_summary=stored.output_summary,
            output_bytes=stored.output_bytes,
            checksum=stored.checksum,
        )

    def _limit_output(self, request: StoreResultRequest) -> EnvelopeRecord:
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
        return EnvelopeRecord(
            job_id=request.job_id,
            terminal_status=status,
            runtime_ms=request.runtime_ms,
            output_summary=summary,
            output_bytes=content,
            checksum=checksum,
        )


def _status_of(envelope: EnvelopeRecord) -> JobStatus.ValueType:
    return JobStatus.ValueType(envelope.terminal_status)
