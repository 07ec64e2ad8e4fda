"""HTTP/2 clients that share no code with the server: one that sends raw frames, and one of the library h2."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from hpack import Decoder, Encoder

from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20
END_BOTH = END_HEADERS | END_STREAM
(
    NO_ERROR,
    PROTOCOL_ERROR,
    INTERNAL_ERROR,
    FLOW_CONTROL_ERROR,
    STREAM_CLOSED,
    FRAME_SIZE_ERROR,
    REFUSED_STREAM,
    CANCEL,
    COMPRESSION_ERROR,
    ENHANCE_YOUR_CALM,
) = (*(0, 1, 2, 3, 5, 6, 7, 8, 9, 11),)
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 1, 4, 5


class Frame(NamedTuple):
    """A frame that was received."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def code(self) -> int:
        """The error code of an RST_STREAM or a GOAWAY."""
        code: int = struct.unpack_from(">L", self.payload, 4 if self.kind == GOAWAY else 0)[0]
        return code

    @property
    def last_stream_id(self) -> int:
        """The last stream identifier of a GOAWAY."""
        last: int = struct.unpack_from(">L", self.payload)[0]
        return last


class RawResponse(NamedTuple):
    """All that was received on a stream."""

    headers: dict[bytes, bytes]
    body: bytes
    trailers: dict[bytes, bytes]
    reset: int | None = None
    sizes: tuple[int, ...] = ()
    """Of its DATA frames."""


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """Encode a frame."""
    return struct.pack(">L", len(payload))[1:] + struct.pack(">BBL", kind, flags, stream) + payload


def settings(*values: tuple[int, int]) -> bytes:
    """Encode a SETTINGS frame."""
    return frame(SETTINGS, payload=b"".join(struct.pack(">HL", *each) for each in values))


def window_update(stream: int, increment: int) -> bytes:
    """Encode a WINDOW_UPDATE frame."""
    return frame(WINDOW_UPDATE, stream=stream, payload=struct.pack(">L", increment))


def rst_stream(stream: int, code: int = CANCEL) -> bytes:
    """Encode an RST_STREAM frame."""
    return frame(RST_STREAM, stream=stream, payload=struct.pack(">L", code))


CLIENT_PREFACE = PREFACE + settings()


class RawPeer:
    """A client that sends whatever bytes a test wants, and reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.encoder, self._decoder = Encoder(), Decoder()

    def send(self, *parts: bytes) -> None:
        """Send bytes."""
        self.writer.write(b"".join(parts))

    def encode(self, path: bytes = b"/echo", *more: tuple[bytes, bytes]) -> bytes:
        """Encode the header block of a request."""
        usual = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"here")]
        encoded: bytes = self.encoder.encode([*usual, *more])
        return encoded

    def request(self, number: int, path: bytes = b"/echo", body: bytes | None = None) -> bytes:
        """Encode the frames of a request."""
        if body is None:
            return frame(HEADERS, END_BOTH, number, self.encode(path))
        parts = [body[at : at + 16_384] for at in range(0, len(body), 16_384)] or [b""]
        encoded = [frame(HEADERS, END_HEADERS, number, self.encode(path))]
        encoded += [frame(DATA, 0, number, part) for part in parts[:-1]]
        return b"".join((*encoded, frame(DATA, END_STREAM, number, parts[-1])))

    async def read_frame(self) -> Frame | None:
        """Read a frame; None when the connection is closed."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                head = await self.reader.readexactly(9)
                length = int.from_bytes(head[:3], "big")
                payload = await self.reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
        kind, flags, stream = struct.unpack(">BBL", head[3:])
        return Frame(kind, flags, stream, payload)

    async def wait_for(self, kind: int, stream: int = 0, flags: int = 0) -> Frame:
        """Read up to the next frame of a type."""
        while (found := await self.read_frame()) is not None:
            if (found.kind, found.stream, found.flags & flags) == (kind, stream, flags):
                return found
        raise AssertionError("the server has closed the connection")

    async def read_responses(self, *streams: int) -> dict[int, RawResponse]:
        """Read the responses on some streams."""
        heads = defaultdict[int, list[dict[bytes, bytes]]](list)
        bodies = defaultdict[int, list[bytes]](list)
        done: dict[int, RawResponse] = {}
        left = set(streams)
        while left:
            found = await self.read_frame()
            assert found is not None, f"closed after {len(done)} of {len(streams)} responses"
            if found.kind == HEADERS:
                heads[found.stream].append(dict(self._decoder.decode(found.payload, raw=True)))
            elif found.kind == DATA:
                bodies[found.stream].append(found.payload)
            over = found.kind == RST_STREAM or (found.kind in (HEADERS, DATA) and found.flags & END_STREAM)
            if over and found.stream in left:
                left.remove(found.stream)
                first, *rest = heads[found.stream] or [{}]
                parts = bodies[found.stream]
                code = found.code if found.kind == RST_STREAM else None
                sizes = tuple(map(len, parts))
                done[found.stream] = RawResponse(first, b"".join(parts), rest[0] if rest else {}, code, sizes)
        return done

    async def read_response(self, stream: int = 1) -> RawResponse:
        """Read the response on a stream."""
        return (await self.read_responses(stream))[stream]

    async def ping(self) -> None:
        """Wait until the server has handled everything that was sent."""
        self.send(frame(PING, payload=b"areyouok"))
        await self.wait_for(PING, flags=ACK)

    async def read_goaway(self) -> Frame:
        """Read to the end of the connection; returns the last GOAWAY."""
        found = None
        while (each := await self.read_frame()) is not None:
            if each.kind == GOAWAY:
                found = each
        assert found is not None, "the server has closed without a GOAWAY"
        return found

    async def acknowledge_drain(self) -> Frame:
        """Acknowledge the first GOAWAY of a graceful shutdown; returns the second."""
        first = await self.wait_for(GOAWAY)
        assert (first.last_stream_id, first.code) == (2**31 - 1, NO_ERROR)
        self.send(frame(PING, ACK, 0, (await self.wait_for(PING)).payload))
        return await self.wait_for(GOAWAY)

    async def read_to_end(self) -> list[Frame]:
        """Read all frames to the end of the connection."""
        received = []
        while (found := await self.read_frame()) is not None:
            received.append(found)
        return received


@asynccontextmanager
async def connect(
    port: int, greeting: bytes = CLIENT_PREFACE, buffer: int | None = None
) -> AsyncIterator[RawPeer]:
    """A client that has sent `greeting`; `buffer` is the size of its receive buffer."""
    sock = socket.socket()
    if buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=2**16)
    peer = RawPeer(reader, writer)
    peer.send(greeting)
    try:
        yield peer
    finally:
        writer.transport.abort()


class H2Client:
    """A client of the library h2, which raises at any violation of the protocol."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.connection = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.connection.initiate_connection()

    def flush(self) -> None:
        self._writer.write(self.connection.data_to_send())

    async def events(self) -> list[Event]:
        """Read, and return the events of the library."""
        self.flush()
        async with asyncio.timeout(PATIENCE_S):
            data = await self._reader.read(65_536)
        assert data, "the server has closed the connection"
        found: list[Event] = self.connection.receive_data(data)
        self.flush()
        return found

    def request(
        self,
        path: bytes,
        body: Iterable[bytes],
        trailers: Iterable[tuple[bytes, bytes]] = (),
        padding: int = 0,
    ) -> int:
        """Send a request; returns its stream."""
        number = self.connection.get_next_available_stream_id()
        usual = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"here")]
        self.connection.send_headers(number, usual)
        for part in body:
            self.connection.send_data(number, part, pad_length=padding or None)
        if trailers := list(trailers):
            self.connection.send_headers(number, trailers, end_stream=True)
        else:
            self.connection.end_stream(number)
        self.flush()
        return number

    async def read_responses(self, *streams: int) -> dict[int, RawResponse]:
        """Read the responses on some streams, with a WINDOW_UPDATE for all data."""
        made = {each: RawResponse({}, b"", {}) for each in streams}
        bodies: dict[int, list[bytes]] = {each: [] for each in streams}
        left = set(streams)
        while left:
            for event in await self.events():
                if isinstance(event, ResponseReceived):
                    assert event.stream_id is not None
                    made[event.stream_id] = made[event.stream_id]._replace(headers=dict(event.headers or ()))
                elif isinstance(event, TrailersReceived):
                    assert event.stream_id is not None
                    made[event.stream_id] = made[event.stream_id]._replace(trailers=dict(event.headers or ()))
                elif isinstance(event, DataReceived):
                    assert event.stream_id is not None
                    bodies[event.stream_id].append(event.data or b"")
                    self.connection.acknowledge_received_data(
                        event.flow_controlled_length or 0, event.stream_id
                    )
                elif isinstance(event, StreamEnded | StreamReset):
                    assert event.stream_id is not None
                    left.discard(event.stream_id)
        return {each: made[each]._replace(body=b"".join(bodies[each])) for each in streams}


@asynccontextmanager
async def h2_client(port: int) -> AsyncIterator[H2Client]:
    """A connection of the library h2."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    made = H2Client(reader, writer)
    made.flush()
    try:
        yield made
    finally:
        writer.transport.abort()
