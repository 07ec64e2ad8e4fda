"""A server that sends whatever bytes a test wants, and a channel to it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hpack import Decoder, Encoder

from runtime.transport.grpc.direct.channel import Channel
from runtime.transport.grpc.direct.http2.header_blocks import encode_headers
from runtime.transport.grpc.direct.http2.header_fields import Header
from runtime.transport.grpc.direct.messages import ACCEPT_ENCODING, CONTENT_TYPE, frame_message, make_timeout
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S, limits
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    Frame,
    frame,
    settings,
)

HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS = 1, 3
OK = [(":status", "200"), ("content-type", "application/grpc")]
UNUSED_ADDRESS = "127.0.0.1:9"


def headers(path: str = "/echo.Echo/Say", *more: Header) -> tuple[Header, ...]:
    return (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path.encode()),
        (b":authority", b"here"),
        (b"te", b"trailers"),
        CONTENT_TYPE,
        ACCEPT_ENCODING,
        *more,
    )


async def call_echo(
    channel: Channel, message: bytes = b"hello", path: str = "/echo.Echo/Say", patience: float = PATIENCE_S
) -> bytes:
    """Make a unary call."""
    varying = encode_headers([make_timeout(patience), (b"x-request-id", message[:8].hex().encode())])
    return await channel.call(headers(path), varying, frame_message(message), patience)


@asynccontextmanager
async def open_channel(address: str, **changed: Any) -> AsyncIterator[Channel]:
    channel = Channel(address, limits(**changed))
    try:
        yield channel
    finally:
        await channel.close()


class ScriptedServer:
    """The server's end of one connection after the other."""

    def __init__(self, answer: Callable[[ScriptedServer, Frame], bytes], greeting: bytes) -> None:
        self._answer = answer
        self._greeting = greeting
        self.decoder, self.encoder = Decoder(), Encoder()
        self.received: list[Frame] = []
        self.request_headers: list[dict[str, str]] = []
        self.connections = 0
        self.writer: asyncio.StreamWriter
        self._news = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writer = writer
        self.decoder, self.encoder = Decoder(), Encoder()
        try:
            assert await reader.readexactly(len(PREFACE)) == PREFACE
            writer.write(self._greeting)
            while True:
                head = await reader.readexactly(9)
                payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
                kind, flags, stream = struct.unpack(">BBL", head[3:])
                found = Frame(kind, flags, stream, payload)
                self.received.append(found)
                if found.kind == HEADERS:
                    self.request_headers.append(
                        {str(name): str(value) for name, value in self.decoder.decode(payload)}
                    )
                self._news.set()
                if found.flags & END_STREAM and found.kind == DATA:
                    writer.write(self._answer(self, found))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def wait_for(self, kind: int) -> Frame:
        """Wait for the first frame of a type."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for each in self.received:
                    if each.kind == kind and not (kind == SETTINGS and each.flags & ACK):
                        return each
                self._news.clear()
                await self._news.wait()

    def encode_response(self, stream: int, *blocks: Sequence[tuple[str, str]], body: bytes = b"") -> bytes:
        """Encode headers, a body and trailers, or trailers alone."""
        encoded = [self.encoder.encode(each) for each in blocks]
        first = [frame(HEADERS, END_HEADERS, stream, each) for each in encoded[:-1]]
        return b"".join((*first, body, frame(HEADERS, END_BOTH, stream, encoded[-1])))

    def respond(self, found: Frame, message: bytes = b"good") -> bytes:
        """Encode a successful response."""
        return self.encode_response(
            found.stream,
            OK,
            [("grpc-status", "0")],
            body=frame(DATA, 0, found.stream, frame_message(message)),
        )


def in_turns(*answers: Callable[[ScriptedServer, Frame], bytes]) -> Callable[[ScriptedServer, Frame], bytes]:
    """Respond with one function after the other."""
    turns = iter(answers)

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        return next(turns)(script, found)

    return answer


@asynccontextmanager
async def scripted_server(
    answer: Callable[[ScriptedServer, Frame], bytes], greeting: bytes | None = None
) -> AsyncIterator[tuple[ScriptedServer, Channel]]:
    script = ScriptedServer(answer, settings() if greeting is None else greeting)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    try:
        async with open_channel(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as channel:
            yield script, channel
    finally:
        server.close()
