"""Streamed content: bytes too large for a message, sent in chunks beside the request and the response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from msgspec import Struct


class Content(Struct, frozen=True):
    """Content of a response: its size, its entity tag, and how a range of it is read."""

    size: int
    tag: str
    """Entity tag: contents with the same tag are equal."""
    read: Callable[[int, int], AsyncIterator[bytes]]
    """Takes the first byte and the one behind the last; iterates over the chunks."""


class ContentStream:
    """The content of one call, in both directions."""

    def __init__(self, incoming: AsyncIterator[bytes] | None = None, length: int | None = None) -> None:
        self.incoming = incoming
        self.length = length
        """The number of bytes to come, where the caller has declared it."""
        self.outgoing: Content | None = None


async def iterate_once(content: bytes) -> AsyncIterator[bytes]:
    """Iterate over content that came in a message, as one chunk."""
    if content:
        yield content
