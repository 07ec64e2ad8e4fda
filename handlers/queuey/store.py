"""The store: content under addresses that are made from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from generated.queuey import errors
from generated.queuey.events import CORRUPT_CONTENT
from generated.queuey.messages import (
    GetBlobRequest,
    GetBlobResponse,
    PutBlobAtRequest,
    PutBlobRequest,
    PutBlobResponse,
)
from generated.queuey.policy import MESSAGE_BYTES
from generated.queuey.settings import StoreSettings
from handlers.queuey.blobs import Blobs, Corrupt, Proof, TooLarge, Unwritable, WrongAddress
from runtime.call import Call
from runtime.call.streams import Content


class Store:
    """Knows a folder, and nothing of what the content is for."""

    def __init__(self, settings: StoreSettings) -> None:
        self._blobs = Blobs(settings.store_path, settings.max_blob_bytes)

    async def put_blob(self, request: PutBlobRequest, call: Call) -> PutBlobResponse:
        return await self._put(call.incoming(request.content), None, call)

    async def put_blob_at(self, request: PutBlobAtRequest, call: Call) -> PutBlobResponse:
        return await self._put(call.incoming(request.content), request.address, call)

    async def get_blob(self, request: GetBlobRequest, call: Call) -> GetBlobResponse:
        try:
            proof = await self._blobs.verify(request.address)
            if proof is None:
                raise errors.BlobNotFound(address=request.address)
            read = partial(self._read, request.address, proof, call)
            if call.send(Content(proof.size, request.address, read)):
                return GetBlobResponse()
            if proof.size > MESSAGE_BYTES // 2:
                raise errors.BlobTooLarge(limit=str(MESSAGE_BYTES // 2))
            pieces = [piece async for piece in self._blobs.read(request.address, proof, 0, proof.size)]
        except Unwritable:
            raise errors.BlobStoreUnavailable from None
        except Corrupt:
            _report_corrupt(request.address, call)
            raise errors.BlobCorrupt(address=request.address) from None
        return GetBlobResponse(content=b"".join(pieces))

    async def _read(
        self, address: str, proof: Proof, call: Call, first: int, last: int
    ) -> AsyncIterator[bytes]:
        """Send content after its head; what turns out to be wrong ends before its announced length."""
        try:
            async for piece in self._blobs.read(address, proof, first, last):
                yield piece
        except Corrupt:
            _report_corrupt(address, call)
            raise

    async def _put(self, pieces: AsyncIterator[bytes], address: str | None, call: Call) -> PutBlobResponse:
        announced = call.stream.length if call.stream is not None else None
        try:
            stored = await self._blobs.put(pieces, address, announced)
        except TooLarge as problem:
            raise errors.BlobTooLarge(limit=str(problem.limit)) from None
        except WrongAddress as problem:
            raise errors.WrongAddress(address=problem.wanted, actual=problem.actual) from None
        except Unwritable:
            raise errors.BlobStoreUnavailable from None
        return PutBlobResponse(address=stored.address, size=stored.size, known=stored.known)


def _report_corrupt(address: str, call: Call) -> None:
    call.tell(CORRUPT_CONTENT, f"what is stored under {address} is not its content; uploading it repairs it")
