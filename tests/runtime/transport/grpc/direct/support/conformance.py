"""Expectations of RFC 9113: reactions of a server connection to the bytes of a client, over a real socket."""

from __future__ import annotations

import asyncio

from tests.runtime.transport.grpc.direct.support.echo_application import EchoApplication, start_server
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    CLIENT_PREFACE,
    CONTINUATION,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    RawResponse,
    connect,
    frame,
)


def literal(name: bytes, value: bytes) -> bytes:
    """A field as a literal without indexing, of less than 127 bytes each."""
    return b"\x00" + bytes((len(name),)) + name + bytes((len(value),)) + value


def request_block(path: bytes, *fields: tuple[bytes, bytes]) -> bytes:
    """The header block of a POST that does not change the dynamic table."""
    return b"\x83\x86\x04" + bytes((len(path),)) + path + b"".join(literal(*each) for each in fields)


WAIT, ECHO = request_block(b"/wait"), request_block(b"/echo")
OPEN = frame(HEADERS, END_HEADERS, 1, WAIT)
"""A stream that is open: a request without END_STREAM."""
HALF_CLOSED = frame(HEADERS, END_BOTH, 1, WAIT)
"""A stream that is half-closed (remote): its response is never sent."""
CLOSED = frame(HEADERS, END_BOTH, 1, ECHO)
"""A stream that is closed: its response is sent at once."""


def split_block(stream: int, block: bytes, size: int = 16_384) -> bytes:
    """The frames of a whole request in fragments of a header block: HEADERS and CONTINUATION."""
    parts = [block[at : at + size] for at in range(0, len(block), size)]
    encoded = [frame(HEADERS, END_STREAM, stream, parts[0])]
    encoded += [frame(CONTINUATION, 0, stream, part) for part in parts[1:]]
    return b"".join((*encoded, frame(CONTINUATION, END_HEADERS, stream)))


async def check_connection_error(sent: bytes, code: int, greeting: bytes = CLIENT_PREFACE) -> None:
    """The server sends a GOAWAY with the code and closes; other connections go on (section 5.4.1)."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as other, connect(port, greeting) as peer:
        other.send(other.request(1, b"/wait"))
        await other.ping()
        peer.send(sent, frame(PING, payload=b"too late"))
        assert (await peer.read_goaway()).code == code
        await application.wait_until(lambda: len(application.connections) == 1)
        other.send(other.request(3, body=b"and me?"))
        assert (await other.read_response(3)).body == b"and me?"
        assert application.connections[0]._streams.keys() == {1}


async def check_stream_error(sent: bytes, code: int, stream: int = 1) -> None:
    """The server sends an RST_STREAM with the code; the connection goes on (section 5.4.2)."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(sent)
        assert (await peer.read_response(stream)).reset == code
        assert application.aborted_streams in ([], [stream])
        peer.send(peer.request(99, body=b"and me?"))
        assert (await peer.read_response(99)).body == b"and me?"
        assert application.connections[0]._streams == {}


async def check_ignored(sent: bytes) -> None:
    """The server goes on as if nothing had been sent: a PING and a request are answered after it."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(sent)
        await peer.ping()
        peer.send(peer.request(99, body=b"and me?"))
        assert (await peer.read_response(99)).body == b"and me?"


async def exchange(*sent: bytes, stream: int = 1) -> RawResponse:
    """The response to a request that is sent piece by piece."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        for part in sent:
            peer.send(part)
            await asyncio.sleep(0)
        return await peer.read_response(stream)
