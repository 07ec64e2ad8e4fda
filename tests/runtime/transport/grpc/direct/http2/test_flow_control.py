"""Flow control of a server connection (RFC 9113, 5.2 and 6.9), and clients that do not read."""

from __future__ import annotations

import struct

import pytest

from tests.runtime.transport.grpc.direct.support.echo_application import (
    EchoApplication,
    limits,
    make_body,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PADDED,
    PREFACE,
    SETTINGS,
    connect,
    frame,
    settings,
    window_update,
)


async def test_consumed_bytes_are_credited_again() -> None:
    """Windows grow as they are used, with padding, and with data of closed streams."""
    async with (
        start_server(EchoApplication(), limits(message_bytes=100)) as port,
        connect(port) as peer,
    ):
        await peer.wait_for(SETTINGS, flags=ACK)
        peer.send(frame(HEADERS, END_HEADERS, 1, peer.encode()))
        padded = bytes((255,)) + b"x" * 1000 + bytes(255)
        for _ in range(27):
            peer.send(frame(DATA, PADDED, 1, padded))
        assert struct.unpack(">L", (await peer.wait_for(8, 1)).payload) == (27 * len(padded),)
        peer.send(frame(DATA, END_STREAM, 1))
        assert (await peer.read_response()).body == b"x" * 27_000
        for _ in range(1024):
            peer.send(frame(DATA, 0, 1, b"x" * 9000))
        assert struct.unpack(">L", (await peer.wait_for(8, 0)).payload)[0] >= 8 * 2**20


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
async def test_a_stream_sends_no_more_than_its_window(size: int) -> None:
    """An answer waits for a small window, and goes on by as much as it grows."""
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, size))
    async with start_server(EchoApplication()) as port, connect(port, greeting) as peer:
        peer.send(peer.request(1, b"/large/2000"))
        await peer.wait_for(HEADERS, 1)
        got = (await peer.wait_for(DATA, 1)).payload if size else b""
        assert len(got) == size
        while len(got) < 2000:
            step = min(333, 2000 - len(got))
            peer.send(window_update(1, step))
            part = (await peer.wait_for(DATA, 1)).payload
            assert len(part) == step
            got += part
        assert (await peer.wait_for(HEADERS, 1)).flags & END_STREAM
        assert got == make_body(2000)


async def test_all_streams_send_no_more_than_the_window_of_the_connection() -> None:
    """Responses that are larger than all windows share one, and small ones do not starve."""
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1))
    async with start_server(EchoApplication()) as port, connect(port, greeting) as peer:
        peer.send(peer.request(1, b"/large/100000"), peer.request(3, b"/large/100000"))
        first = 0
        while first < 65_535:
            first += len((await peer.wait_for(DATA, 1)).payload)
        assert first == 65_535
        await peer.ping()
        peer.send(window_update(0, 100_000), window_update(0, 34_465))
        answers = await peer.read_responses(1, 3)
        assert len(answers[1].body) == 100_000 - 65_535
        assert answers[3].body == make_body(100_000)


async def test_a_window_may_shrink_below_nothing() -> None:
    """Settings in the middle of a response make its window negative; it goes on when that is positive."""
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 1000))
    async with start_server(EchoApplication()) as port, connect(port, greeting) as peer:
        peer.send(peer.request(1, b"/large/3000"))
        got = (await peer.wait_for(DATA, 1)).payload
        peer.send(settings((INITIAL_WINDOW_SIZE, 0)), window_update(1, 1000))
        await peer.wait_for(SETTINGS, flags=ACK)
        await peer.ping()
        peer.send(window_update(1, 1))
        part = await peer.wait_for(DATA, 1)
        assert len(part.payload) == 1
        peer.send(settings((INITIAL_WINDOW_SIZE, 50_000)))
        got += part.payload + (await peer.read_response()).body
        assert got == make_body(3000)


async def test_frames_are_as_large_as_the_client_takes_them() -> None:
    """16 KiB unless it says more; a setting counts from the moment that it is read."""
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**20)) + window_update(0, 2**20)
    async with start_server(EchoApplication()) as port, connect(port, greeting) as peer:
        peer.send(peer.request(1, b"/large/40000"))
        assert (await peer.read_response()).sizes == (16_384, 16_384, 40_000 - 2 * 16_384)
        peer.send(settings((MAX_FRAME_SIZE, 20_000)), peer.request(3, b"/large/40000"))
        assert (await peer.read_response(3)).sizes == (20_000, 20_000)


async def test_a_client_that_stops_reading_goes_on_where_it_stopped() -> None:
    """Unread responses wait, and neither more data nor more calls are accepted meanwhile."""
    application = EchoApplication()
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1)) + window_update(0, 2**31 - 1 - 65_535)
    size, calls = 20_000, 200
    async with start_server(application) as port, connect(port, greeting, buffer=16_384) as peer:
        numbers = range(1, 2 * calls, 2)
        peer.send(*(peer.request(number, b"/large/%d" % size) for number in numbers))
        await application.wait_until(
            lambda: application.connections and application.connections[0]._frame_writer.is_paused
        )
        connection = application.connections[0]
        assert connection.transport.get_write_buffer_size() < size * calls // 2
        answers = await peer.read_responses(*numbers)
        assert {each.body for each in answers.values()} == {make_body(size)}


async def test_a_client_that_never_reads_does_not_fill_the_memory() -> None:
    """Even responses without data, which no window blocks, stop while they are not read."""
    application = EchoApplication()
    calls = 1000
    async with (
        start_server(application) as port,
        connect(port, buffer=16_384) as peer,
        connect(port) as other,
    ):
        numbers = range(1, 2 * calls, 2)
        peer.send(*(peer.request(number, b"/bare") for number in numbers))
        await application.wait_until(
            lambda: any(each._frame_writer.is_paused for each in application.connections)
        )
        connection = next(each for each in application.connections if each._frame_writer.is_paused)
        peer.send(frame(0x55, payload=bytes(16_000)) * 200)
        for _ in range(50):
            # The server has had the time to take in whatever it wants to.
            await other.ping()
        assert len(application.bodies) < calls
        assert len(connection._frame_reader._unread) < 2**20
        assert connection.transport.get_write_buffer_size() < 2 * 2**20
        answers = await peer.read_responses(*numbers)
        assert all(each.headers[b"x-long"] for each in answers.values())
        assert len(application.bodies) == calls
