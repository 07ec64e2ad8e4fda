"""How much one connection has of a turn of the event loop: bounded work, however much has come at once."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import pytest

from runtime.transport.grpc.direct.http2 import frame_reader as receiving
from runtime.transport.grpc.direct.http2.server_connection import ServerConnection
from runtime.transport.grpc.direct.http2.streams import BufferBudget
from runtime.transport.grpc.direct.messages import RequestHeaders
from runtime.transport.grpc.direct.server_calls import ServerCalls
from tests.runtime.transport.grpc.direct.fuzz.fuzz_harness import MemoryTransport
from tests.runtime.transport.grpc.direct.support.echo_application import (
    MESSAGE_BYTES,
    PATIENCE_S,
    EchoApplication,
    limits,
)
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import frame_message
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    CLIENT_PREFACE,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    RawPeer,
    frame,
)
from tests.support.eventually import eventually

GRPC = ((b"content-type", b"application/grpc"), (b"grpc-encoding", b"gzip"))


class PausableTransport(MemoryTransport):
    """A transport that knows whether it is read."""

    is_read = True

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


def connect_in_memory(application: Any) -> tuple[ServerConnection[Any], PausableTransport, RawPeer]:
    """A server connection over no socket, and a peer that writes frames for it."""
    connection: ServerConnection[Any] = ServerConnection(application, limits(streams=1000))
    wire = PausableTransport()
    connection.connection_made(wire)
    connection.data_received(CLIENT_PREFACE)
    return connection, wire, RawPeer(None, None)  # type: ignore[arg-type]


async def count_turns(is_over: Callable[[], bool]) -> int:
    """Count the turns of the event loop until a condition is true."""
    turns = 0
    async with asyncio.timeout(PATIENCE_S):
        while not is_over():
            await asyncio.sleep(0)
            turns += 1
    return turns


async def test_small_frames_are_read_in_many_turns() -> None:
    """A quarter of a million of bytes is one read of a socket, and may be 25,000 frames."""
    application = EchoApplication()
    connection, wire, peer = connect_in_memory(application)
    body = bytes(range(256)) * 100
    connection.data_received(
        frame(HEADERS, END_HEADERS, 1, peer.encode())
        + b"".join(frame(DATA, 0, 1, body[at : at + 1]) for at in range(len(body)))
        + frame(DATA, END_STREAM, 1)
    )
    assert len(application.bodies[1]) < receiving._FRAMES_PER_TURN
    assert not wire.is_read
    turns = await count_turns(lambda: not connection._streams)
    assert turns >= len(body) // receiving._FRAMES_PER_TURN
    assert application.bodies[1] == body
    await eventually(lambda: wire.is_read)
    connection.connection_lost(None)


async def test_huffman_code_is_read_in_many_turns() -> None:
    """It is far more work for its bytes than other frames are."""
    application = EchoApplication()
    connection, wire, peer = connect_in_memory(application)
    numbers = range(1, 401, 2)
    blocks = [peer.encode(b"/wait", (b"x-%d" % number, b"x" * 1000)) for number in numbers]
    connection.data_received(
        b"".join(frame(HEADERS, END_HEADERS, *each) for each in zip(numbers, blocks, strict=True))
    )
    assert len(application.bodies) <= receiving._WORK_PER_TURN // len(blocks[0]) + 1
    assert not wire.is_read
    assert await count_turns(lambda: len(application.bodies) == len(numbers)) > 5
    connection.connection_lost(None)


async def test_messages_are_decompressed_in_many_turns() -> None:
    """A few bytes of them may be as many as a message may have."""
    begun: list[int] = []

    async def count(_headers: RequestHeaders, sent: bytes, _names: tuple[bytes, ...]) -> bytes:
        begun.append(len(sent))
        return b""

    calls = ServerCalls(
        {b"/a/count": count},
        {},
        lambda _: (),
        lambda *_: None,
        message_bytes=MESSAGE_BYTES,
        connections=1,
        max_buffered_bytes=2 * MESSAGE_BYTES,
        buffer_budget=BufferBudget(4 * MESSAGE_BYTES),
    )
    connection, wire, peer = connect_in_memory(calls)
    packed = frame_message(gzip.compress(bytes(MESSAGE_BYTES)), 1)
    numbers = range(1, 81, 2)
    connection.data_received(
        b"".join(
            frame(HEADERS, END_HEADERS, number, peer.encode(b"/a/count", *GRPC))
            + frame(DATA, END_STREAM, number, packed)
            for number in numbers
        )
    )
    assert len(calls.tasks) <= 3
    assert not wire.is_read
    assert await count_turns(lambda: len(begun) == len(numbers)) > 10
    connection.connection_lost(None)
    await eventually(lambda: not calls.tasks)


@pytest.mark.parametrize("order", ["reads before its turn", "reads after its turn"])
async def test_a_client_that_does_not_read_meanwhile_goes_on_when_it_does(order: str) -> None:
    """It is not listened to until both are over: its rest, and that it does not read."""
    application = EchoApplication()
    connection, wire, peer = connect_in_memory(application)
    connection.data_received(
        frame(HEADERS, END_HEADERS, 1, peer.encode())
        + frame(DATA, 0, 1, b"x") * 1000
        + frame(DATA, END_STREAM, 1)
    )
    heard = len(application.bodies[1])
    connection.pause_writing()
    if order == "reads before its turn":
        connection.resume_writing()
        assert len(application.bodies[1]) == heard
    else:
        for _ in range(5):
            await asyncio.sleep(0)
        assert (len(application.bodies[1]), wire.is_read) == (heard, False)
        connection.resume_writing()
    await eventually(lambda: not connection._streams and wire.is_read)
    assert len(application.bodies[1]) == 1000
    connection.connection_lost(None)


async def test_a_connection_that_ends_while_it_rests_reads_no_more() -> None:
    application = EchoApplication()
    connection, _, peer = connect_in_memory(application)
    connection.data_received(frame(HEADERS, END_HEADERS, 1, peer.encode()) + frame(DATA, 0, 1, b"x") * 1000)
    heard = len(application.bodies[1])
    connection.connection_lost(None)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(application.bodies[1]) == heard
    assert application.aborted_streams == [1]
