"""Lines for tests to call over, and a server that says whatever a test wants it to say."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hpack import Decoder, Encoder

from runtime.transport.grpc.direct.channel import Line
from runtime.transport.grpc.direct.header_blocks import Header, written
from runtime.transport.grpc.direct.messages import ACCEPT_ENCODING, CONTENT_TYPE, framed, timeout_of
from tests.runtime.transport.grpc.direct.peer import (
    ACK,
    BOTH,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    Frame,
    frame,
    settings,
)
from tests.runtime.transport.grpc.direct.tiny import PATIENCE_S, limits

HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS = 1, 3
OK = [(":status", "200"), ("content-type", "application/grpc")]
NOBODY = "127.0.0.1:9"


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


async def say(
    line: Line, message: bytes = b"hello", path: str = "/echo.Echo/Say", patience: float = PATIENCE_S
) -> bytes:
    """A call as a channel makes it."""
    varying = written([timeout_of(patience), (b"x-request-id", message[:8].hex().encode())])
    return await line.call(headers(path), varying, framed(message), patience)


@asynccontextmanager
async def lines(address: str, **changed: Any) -> AsyncIterator[Line]:
    line = Line(address, limits(**changed))
    try:
        yield line
    finally:
        await line.close()


class Scripted:
    """The other end of one connection after the other."""

    def __init__(self, answer: Callable[[Scripted, Frame], bytes], greeting: bytes) -> None:
        self._answer = answer
        self._greeting = greeting
        self.decoder, self.encoder = Decoder(), Encoder()
        self.heard: list[Frame] = []
        self.heads: list[dict[str, str]] = []
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
                self.heard.append(found)
                if found.kind == HEADERS:
                    self.heads.append({str(name): str(value) for name, value in self.decoder.decode(payload)})
                self._news.set()
                if found.flags & END_STREAM and found.kind == DATA:
                    writer.write(self._answer(self, found))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def until(self, kind: int) -> Frame:
        """The first frame of a kind."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for each in self.heard:
                    if each.kind == kind and not (kind == SETTINGS and each.flags & ACK):
                        return each
                self._news.clear()
                await self._news.wait()

    def said(self, stream: int, *blocks: Sequence[tuple[str, str]], body: bytes = b"") -> bytes:
        """Headers, a body and trailers, or trailers alone."""
        encoded = [self.encoder.encode(each) for each in blocks]
        first = [frame(HEADERS, END_HEADERS, stream, each) for each in encoded[:-1]]
        return b"".join((*first, body, frame(HEADERS, BOTH, stream, encoded[-1])))

    def echo(self, found: Frame, message: bytes = b"good") -> bytes:
        """A good answer."""
        return self.said(
            found.stream, OK, [("grpc-status", "0")], body=frame(DATA, 0, found.stream, framed(message))
        )


def in_turns(*answers: Callable[[Scripted, Frame], bytes]) -> Callable[[Scripted, Frame], bytes]:
    """One answer after the other."""
    turns = iter(answers)

    def answer(script: Scripted, found: Frame) -> bytes:
        return next(turns)(script, found)

    return answer


@asynccontextmanager
async def scripted(
    answer: Callable[[Scripted, Frame], bytes], greeting: bytes | None = None
) -> AsyncIterator[tuple[Scripted, Line]]:
    script = Scripted(answer, settings() if greeting is None else greeting)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    try:
        async with lines(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as line:
            yield script, line
    finally:
        server.close()
