"""Streams, the limits of a connection, and the interface of the application on a server connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from msgspec import Struct

from runtime.transport.grpc.direct.http2.header_fields import Header

if TYPE_CHECKING:
    from runtime.transport.grpc.direct.http2.server_connection import ServerConnection

HeadersT = TypeVar("HeadersT")
_MAX_BUFFERED_BYTES = 256 * 2**20
_MAX_SERVER_BUFFERED_BYTES = 2 * _MAX_BUFFERED_BYTES
"""Of all connections of a server: each may use its own limit for a moment, as when one large message follows
the other, but thousands of them that use it at once would need more memory than any node has. Two
connections at their limit fit, so that one alone cannot shut out the others."""


class Limits(Struct, frozen=True):
    """The limits of one connection."""

    streams: int
    message_bytes: int
    ping_every_s: float
    ping_timeout_s: float
    shortest_ping_s: float
    idle_pings: bool
    connection_age_s: float | None = None
    """After which a server asks a client to connect again, give or take a tenth; None for never."""

    @property
    def max_buffered_bytes(self) -> int:
        """Bytes that may be buffered in each direction: incomplete messages, and data that flow control
        holds back."""
        return max(_MAX_BUFFERED_BYTES, 4 * self.message_bytes)


class BufferBudget:
    """A count of the bytes that several connections buffer together, in both directions, and its limit."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @classmethod
    def for_server(cls, limits: Limits) -> Self:
        """Make the budget that all connections of a server share."""
        return cls(max(_MAX_SERVER_BUFFERED_BYTES, 2 * limits.max_buffered_bytes))


class Stream:
    """A stream with its flow-control windows and the data that waits to be sent."""

    __slots__ = (
        "content_length_left",
        "context",
        "id",
        "is_remote_closed",
        "receive_window",
        "send_buffer",
        "send_window",
        "sent_offset",
        "trailers",
    )

    def __init__(self, stream_id: int, receive_window: int, send_window: int) -> None:
        self.id = stream_id
        self.receive_window = receive_window
        """Bytes that the peer may send before it gets a WINDOW_UPDATE."""
        self.send_window = send_window
        """Bytes that may be sent before the peer sends a WINDOW_UPDATE."""
        self.content_length_left: int | None = None
        """Bytes that are missing from the content-length; None without one."""
        self.is_remote_closed = False
        """Whether the peer has sent END_STREAM."""
        self.send_buffer = b""
        """Data that flow control holds back."""
        self.sent_offset = 0
        """Number of sent bytes of the send buffer."""
        self.trailers: bytes | None = None
        """The header block to send after the data; empty where the data ends the stream, None while more
        data may follow."""
        self.context: Any = None
        """The application's own state of the stream."""


class Application(Protocol[HeadersT]):
    """The application that a server connection serves."""

    buffer_budget: BufferBudget
    """The bytes that all its connections buffer."""

    def parse_headers(self, headers: list[Header]) -> HeadersT:
        """Parse the headers of a request. Not called again for a header block that is known."""
        ...

    def parse_oversized_headers(self, headers: list[Header]) -> HeadersT:
        """Make something of a request whose header list is too large; `headers` are its first ones."""
        ...

    def on_stream_opened(
        self, connection: ServerConnection[HeadersT], stream: Stream, headers: HeadersT
    ) -> None:
        """Begin a request."""
        ...

    def on_data(self, connection: ServerConnection[HeadersT], stream: Stream, data: bytes) -> None:
        """Take data of a request; the last of it where `stream.is_remote_closed`."""
        ...

    def on_stream_aborted(self, connection: ServerConnection[HeadersT], stream: Stream) -> None:
        """Give up a request whose stream was reset or whose connection is lost."""
        ...

    def accept_connection(self, connection: ServerConnection[HeadersT]) -> bool:
        """Take a new connection; returns whether there is room for it."""
        ...

    def on_connection_closed(self, connection: ServerConnection[HeadersT]) -> None:
        """Forget a connection."""
        ...
