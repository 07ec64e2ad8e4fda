"""Content that is too large for a message: it comes and goes in pieces, beside the request and the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from msgspec import Struct


class Content(Struct, frozen=True):
    """What an answer carries: how much there is, what tells it apart, and how a part of it is read."""

    size: int
    tag: str
    """Two contents with the same tag are the same."""
    read: Callable[[int, int], AsyncIterator[bytes]]
    """Takes the first byte and the one behind the last."""


class Stream:
    """The content of one call, in both directions."""

    def __init__(self, incoming: AsyncIterator[bytes] | None = None, length: int | None = None) -> None:
        self.incoming = incoming
        self.length = length
        """How many bytes are to come, where the caller has said so."""
        self.outgoing: Content | None = None


async def whole(content: bytes) -> AsyncIterator[bytes]:
    """Content that came in a message, as if it came in pieces."""
    if content:
        yield content
