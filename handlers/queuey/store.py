"""The store: content under addresses that are made from it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from generated.queuey import errors
from generated.queuey.messages import (
    GetBlobRequest,
    GetBlobResponse,
    PutBlobAtRequest,
    PutBlobRequest,
    PutBlobResponse,
)
from generated.queuey.policy import MESSAGE_BYTES
from generated.queuey.settings import StoreSettings
from handlers.queuey.blobs import Blobs, TooLarge, Unwritable, WrongAddress
from runtime.call import Call
from runtime.streams import Content


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
            size = await self._blobs.size(request.address)
        except Unwritable:
            raise errors.BlobStoreUnavailable from None
        if size is None:
            raise errors.BlobNotFound(address=request.address)
        content = Content(
            size, request.address, lambda first, last: self._blobs.read(request.address, first, last)
        )
        if call.send(content):
            return GetBlobResponse()
        if size > MESSAGE_BYTES // 2:
            raise errors.BlobTooLarge(limit=str(MESSAGE_BYTES // 2))
        return GetBlobResponse(content=b"".join([piece async for piece in content.read(0, size)]))

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
