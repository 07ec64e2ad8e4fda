"""Clients of HTTP/2 that share no code with the server: one of frames by hand, one of a library."""

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

from tests.runtime.transport.grpc.direct.tiny import PATIENCE_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, WITH_PRIORITY = 0x4, 0x8, 0x20
BOTH = END_HEADERS | END_STREAM
NO_ERROR, PROTOCOL, INTERNAL, FLOW, CLOSED, SIZE, REFUSED, CANCEL, COMPRESSION, CALM = (
    *(0, 1, 2, 3, 5, 6, 7, 8, 9, 11),
)
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 1, 4, 5


class Frame(NamedTuple):
    """What is received."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def code(self) -> int:
        """Of a reset or a leave."""
        code: int = struct.unpack_from(">L", self.payload, 4 if self.kind == GOAWAY else 0)[0]
        return code

    @property
    def last(self) -> int:
        """The last stream that somebody who leaves has taken."""
        last: int = struct.unpack_from(">L", self.payload)[0]
        return last


class Answer(NamedTuple):
    """All of an answer."""

    headers: dict[bytes, bytes]
    body: bytes
    trailers: dict[bytes, bytes]
    reset: int | None = None
    sizes: tuple[int, ...] = ()
    """Of the frames of its body."""


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return struct.pack(">L", len(payload))[1:] + struct.pack(">BBL", kind, flags, stream) + payload


def settings(*values: tuple[int, int]) -> bytes:
    return frame(SETTINGS, payload=b"".join(struct.pack(">HL", *each) for each in values))


def window(stream: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, stream=stream, payload=struct.pack(">L", increment))


def reset(stream: int, code: int = CANCEL) -> bytes:
    return frame(RST_STREAM, stream=stream, payload=struct.pack(">L", code))


GREETING = PREFACE + settings()


class Peer:
    """Says whatever a test wants it to say."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.encoder, self._decoder = Encoder(), Decoder()

    def say(self, *parts: bytes) -> None:
        """Sends bytes."""
        self.writer.write(b"".join(parts))

    def block(self, path: bytes = b"/echo", *more: tuple[bytes, bytes]) -> bytes:
        """The header block of a call."""
        usual = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"here")]
        encoded: bytes = self.encoder.encode([*usual, *more])
        return encoded

    def call(self, number: int, path: bytes = b"/echo", body: bytes | None = None) -> bytes:
        """The frames of a call."""
        if body is None:
            return frame(HEADERS, BOTH, number, self.block(path))
        parts = [body[at : at + 16_384] for at in range(0, len(body), 16_384)] or [b""]
        said = [frame(HEADERS, END_HEADERS, number, self.block(path))]
        said += [frame(DATA, 0, number, part) for part in parts[:-1]]
        return b"".join((*said, frame(DATA, END_STREAM, number, parts[-1])))

    async def next(self) -> Frame | None:
        """What the server says next; None if nothing ever again."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                head = await self.reader.readexactly(9)
                length = int.from_bytes(head[:3], "big")
                payload = await self.reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
        kind, flags, stream = struct.unpack(">BBL", head[3:])
        return Frame(kind, flags, stream, payload)

    async def find(self, kind: int, stream: int = 0, flags: int = 0) -> Frame:
        """The next frame of a kind."""
        while (found := await self.next()) is not None:
            if (found.kind, found.stream, found.flags & flags) == (kind, stream, flags):
                return found
        raise AssertionError("the server has gone")

    async def answers(self, *streams: int) -> dict[int, Answer]:
        """The answers to some calls."""
        heads = defaultdict[int, list[dict[bytes, bytes]]](list)
        bodies = defaultdict[int, list[bytes]](list)
        done: dict[int, Answer] = {}
        left = set(streams)
        while left:
            found = await self.next()
            assert found is not None, f"the server has gone after {len(done)} of {len(streams)} answers"
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
                done[found.stream] = Answer(first, b"".join(parts), rest[0] if rest else {}, code, sizes)
        return done

    async def answer(self, stream: int = 1) -> Answer:
        """The answer to a call."""
        return (await self.answers(stream))[stream]

    async def heard(self) -> None:
        """Returns when the server has taken everything in."""
        self.say(frame(PING, payload=b"areyouok"))
        await self.find(PING, flags=ACK)

    async def end(self) -> Frame:
        """The leave with which the server ends the connection."""
        found = None
        while (said := await self.next()) is not None:
            if said.kind == GOAWAY:
                found = said
        assert found is not None, "the server went without a word"
        return found

    async def drained(self) -> Frame:
        """Acknowledge the first GOAWAY of a graceful shutdown; returns the second."""
        first = await self.find(GOAWAY)
        assert (first.last, first.code) == (2**31 - 1, NO_ERROR)
        self.say(frame(PING, ACK, 0, (await self.find(PING)).payload))
        return await self.find(GOAWAY)

    async def silence(self) -> list[Frame]:
        """What the server says until it goes."""
        said = []
        while (found := await self.next()) is not None:
            said.append(found)
        return said


@asynccontextmanager
async def connected(port: int, greeting: bytes = GREETING, buffer: int | None = None) -> AsyncIterator[Peer]:
    """A client that has said its greeting; `buffer` is what it takes in without reading it."""
    sock = socket.socket()
    if buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=2**16)
    peer = Peer(reader, writer)
    peer.say(greeting)
    try:
        yield peer
    finally:
        writer.transport.abort()


class Library:
    """A client that keeps all rules, as the library h2 has them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.connection = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.connection.initiate_connection()

    def flush(self) -> None:
        self._writer.write(self.connection.data_to_send())

    async def events(self) -> list[Event]:
        """What has happened since."""
        self.flush()
        async with asyncio.timeout(PATIENCE_S):
            data = await self._reader.read(65_536)
        assert data, "the server has gone"
        found: list[Event] = self.connection.receive_data(data)
        self.flush()
        return found

    def call(
        self,
        path: bytes,
        body: Iterable[bytes],
        trailers: Iterable[tuple[bytes, bytes]] = (),
        padding: int = 0,
    ) -> int:
        """Begins a call; its stream."""
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

    async def answers(self, *streams: int) -> dict[int, Answer]:
        """The answers to some calls; what comes in is acknowledged as it comes."""
        made = {each: Answer({}, b"", {}) for each in streams}
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
async def library(port: int) -> AsyncIterator[Library]:
    """A connection of the library's."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    made = Library(reader, writer)
    made.flush()
    try:
        yield made
    finally:
        writer.transport.abort()
