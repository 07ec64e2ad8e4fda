"""Result envelopes of terminal jobs. The first envelope of a job wins."""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from generated.taskqueue.errors import OUTPUT_TOO_LARGE
from generated.taskqueue.messages import (
    DONE,
    FAILED,
    PRESENCE_PRESENT,
    GetResultRequest,
    GetResultResponse,
    JobStatus,
    StoreResultRequest,
    StoreResultResponse,
)
from generated.taskqueue.records import EnvelopeRecord
from generated.taskqueue.settings import ResultSettings
from handlers.taskqueue.single_writer import Turns, create_or_find
from runtime.call import Call
from runtime.model.text import sha256_hex
from runtime.stores.contract import EntityStore
from runtime.stores.store import NoSuchEntity
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
            earlier = await self._envelopes.get(request.job_id)
            stored = earlier or await self._retention.add(envelope, call)
        is_same = (stored.terminal_status, stored.checksum) == (envelope.terminal_status, envelope.checksum)
        return StoreResultResponse(
            stored=is_same,
            already_exists=earlier is not None,
            current_terminal_status=_status_of(stored),
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


class EnvelopeRetention:
    """Adds envelopes to a store, and deletes the oldest ones beyond a bound of bytes; 0 keeps all.

    Each envelope has the bytes of all that were ever stored up to it, so that the newest and the oldest tell
    how many are retained, and nothing is added up after a restart.
    """

    def __init__(self, store: EntityStore[EnvelopeRecord], bound: int, world: World) -> None:
        self._store = store
        self._bound = bound
        self._world = world
        self._newest: EnvelopeRecord | None = None
        """The one that was added last, or is about to be; None until the store was read."""
        self._deleted_bytes = 0

    async def add(self, envelope: EnvelopeRecord, call: Call) -> EnvelopeRecord:
        """Add an envelope, which stays, and delete the oldest as far as there are too many bytes."""
        newest = self._newest or await self._read_ends()
        at_ms = max(newest.stored_at_ms + 1, self._world.now_ms())
        stored_bytes = newest.stored_bytes + _measure(envelope)
        placed = self._newest = replace(envelope, stored_at_ms=at_ms, stored_bytes=stored_bytes)
        kept = await create_or_find(self._store, placed, placed.job_id, call)
        while self._bound and self._newest.stored_bytes - self._deleted_bytes > self._bound:
            oldest = (await self._store.find(size=2, newest_first=False)).records
            if len(oldest) < 2:
                break
            with suppress(NoSuchEntity):  # Another call deletes, too.
                await self._store.delete(oldest[0].job_id, PRESENCE_PRESENT, call)
            self._deleted_bytes = max(self._deleted_bytes, oldest[0].stored_bytes)
        return kept

    async def _read_ends(self) -> EnvelopeRecord:
        """Read the newest and the oldest, and return the newest, or that of a call that was faster."""
        newest = (await self._store.find(size=1)).records
        oldest = (await self._store.find(size=1, newest_first=False)).records
        if self._newest is None:
            self._newest = newest[0] if newest else EnvelopeRecord(job_id="")
            self._deleted_bytes = oldest[0].stored_bytes - _measure(oldest[0]) if oldest else 0
        return self._newest


def _measure(envelope: EnvelopeRecord) -> int:
    return len(envelope.output_bytes) + len(envelope.output_summary.encode()) + len(envelope.checksum)


def _status_of(envelope: EnvelopeRecord) -> JobStatus.ValueType:
    return JobStatus.ValueType(envelope.terminal_status)
