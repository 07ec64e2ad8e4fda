"""The store: content-addressed blobs, under the hash of their content."""

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
from handlers.queuey.blobs import (
    BlobFolder,
    CorruptBlob,
    FileFingerprint,
    FolderUnusable,
    TooLarge,
    WrongAddress,
)
from runtime.call import Call
from runtime.call.streams import Content


class Store:
    """The methods of the store. It knows its folder, and nothing of the use of the content."""

    def __init__(self, settings: StoreSettings) -> None:
        self._blobs = BlobFolder(settings.store_path, settings.max_blob_bytes)

    async def put_blob(self, request: PutBlobRequest, call: Call) -> PutBlobResponse:
        return await self._put(call.incoming(request.content), None, call)

    async def put_blob_at(self, request: PutBlobAtRequest, call: Call) -> PutBlobResponse:
        return await self._put(call.incoming(request.content), request.address, call)

    async def get_blob(self, request: GetBlobRequest, call: Call) -> GetBlobResponse:
        try:
            fingerprint = await self._blobs.verify(request.address)
            if fingerprint is None:
                raise errors.BlobNotFound(address=request.address)
            read = partial(self._stream_content, request.address, fingerprint, call)
            if call.send(Content(fingerprint.size, request.address, read)):
                return GetBlobResponse()
            if fingerprint.size > MESSAGE_BYTES // 2:
                raise errors.BlobTooLarge(limit=str(MESSAGE_BYTES // 2))
            chunks = [
                chunk async for chunk in self._blobs.read(request.address, fingerprint, 0, fingerprint.size)
            ]
        except FolderUnusable:
            raise errors.BlobStoreUnavailable from None
        except CorruptBlob:
            _log_corrupt(request.address, call)
            raise errors.BlobCorrupt(address=request.address) from None
        return GetBlobResponse(content=b"".join(chunks))

    async def _stream_content(
        self, address: str, fingerprint: FileFingerprint, call: Call, first: int, last: int
    ) -> AsyncIterator[bytes]:
        """Stream content after its head; corrupt content ends before its announced length."""
        try:
            async for chunk in self._blobs.read(address, fingerprint, first, last):
                yield chunk
        except CorruptBlob:
            _log_corrupt(address, call)
            raise

    async def _put(self, chunks: AsyncIterator[bytes], address: str | None, call: Call) -> PutBlobResponse:
        announced = call.stream.length if call.stream is not None else None
        try:
            stored = await self._blobs.put(chunks, address, announced)
        except TooLarge as problem:
            raise errors.BlobTooLarge(limit=str(problem.limit)) from None
        except WrongAddress as problem:
            raise errors.WrongAddress(address=problem.wanted, actual=problem.actual) from None
        except FolderUnusable:
            raise errors.BlobStoreUnavailable from None
        return PutBlobResponse(address=stored.address, size=stored.size, known=stored.is_known)


def _log_corrupt(address: str, call: Call) -> None:
    call.tell(CORRUPT_CONTENT, f"what is stored under {address} is not its content; uploading it repairs it")
