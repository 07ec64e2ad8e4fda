"""What a connection has and serves: streams, limits, and the application that answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from msgspec import Struct

from runtime.transport.grpc.direct.header_blocks import Header

if TYPE_CHECKING:
    from runtime.transport.grpc.direct.server_connection import Connection

Head = TypeVar("Head")
_MOST_HELD = 256 * 2**20
_MOST_HELD_TOGETHER = 2 * _MOST_HELD
"""Of all connections of a server: each may have its own share for a moment, as when one large message follows
the other, but thousands of them that have it at once would need more memory than any node has. Two
connections at their limit fit, so that one alone cannot shut out the others."""


class Limits(Struct, frozen=True):
    """What one connection may have and do."""

    streams: int
    message_bytes: int
    ping_every_s: float
    ping_timeout_s: float
    shortest_ping_s: float
    idle_pings: bool
    connection_age_s: float | None = None
    """After which a server asks a client to connect again, give or take a tenth; None for never."""

    @property
    def most_held(self) -> int:
        """Bytes in either direction that may wait: for the rest of a message, or for a client to read."""
        return max(_MOST_HELD, 4 * self.message_bytes)


class Held:
    """Bytes that wait on some connections together, in either direction, and how many may."""

    __slots__ = ("most", "size")

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0

    @classmethod
    def of(cls, limits: Limits) -> Self:
        """What all connections of a server may hold."""
        return cls(max(_MOST_HELD_TOGETHER, 2 * limits.most_held))


class Stream:
    """A call of a client with its answer."""

    __slots__ = ("credit", "due", "ended", "gone", "id", "outgoing", "state", "trailers", "window")

    def __init__(self, number: int, credit: int, window: int) -> None:
        self.id = number
        self.credit = credit
        """What the client may send before it hears of us."""
        self.window = window
        """What we may send before we hear of the client."""
        self.due: int | None = None
        """What is left of the content-length, where the client has said one."""
        self.ended = False
        """Whether the client has said everything."""
        self.outgoing = b""
        """What is to be sent as soon as it may be."""
        self.gone = 0
        """How much of that has been sent."""
        self.trailers: bytes | None = None
        """What is to be sent at last; None while more may come."""
        self.state: Any = None
        """Whatever the application keeps for it."""


class Application(Protocol[Head]):
    """What is served over connections."""

    held: Held
    """What waits on all of them."""

    def head(self, headers: list[Header]) -> Head:
        """What the headers of a call say. The same headers are not read twice."""
        ...

    def oversized(self, headers: list[Header]) -> Head:
        """What is made of a call whose header list is too large; `headers` are those that came first."""
        ...

    def opened(self, connection: Connection[Head], stream: Stream, head: Head) -> None:
        """A call has begun."""
        ...

    def received(self, connection: Connection[Head], stream: Stream, data: bytes) -> None:
        """The client has sent something; where `stream.ended`, that was the last of it."""
        ...

    def lost(self, connection: Connection[Head], stream: Stream) -> None:
        """The client is not interested any more, or is gone."""
        ...

    def connected(self, connection: Connection[Head]) -> bool:
        """Somebody has connected; whether there is room for one more."""
        ...

    def disconnected(self, connection: Connection[Head]) -> None:
        """Somebody is gone."""
        ...
