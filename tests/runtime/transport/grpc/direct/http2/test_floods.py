"""Flood protection of a server connection, and bounds of its buffers for a client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from runtime.transport.grpc.direct.http2 import flood_guard, streams
from tests.runtime.transport.grpc.direct.support.echo_application import (
    EchoApplication,
    limits,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    CONTINUATION,
    DATA,
    END_BOTH,
    END_HEADERS,
    ENHANCE_YOUR_CALM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PADDED,
    PING,
    PRIORITY,
    SETTINGS,
    connect,
    frame,
    rst_stream,
    settings,
    window_update,
)

CALL = bytes.fromhex("838604") + b"\x05/wait"
"""A header block that leaves the table alone."""
ANSWERED = frame(HEADERS, END_BOTH, 1, bytes.fromhex("838604") + b"\x05/echo")


def floods() -> Iterator[tuple[str, bytes, bytes]]:
    """The frames that come once, and those that are repeated."""
    waiting = frame(HEADERS, END_HEADERS, 1, CALL)
    yield "settings", b"", settings()
    yield "acknowledged settings", b"", frame(SETTINGS, ACK)
    yield "pings", b"", frame(PING, payload=bytes(8))
    yield "acknowledged pings", b"", frame(PING, ACK, payload=bytes(8))
    yield "priorities", b"", frame(PRIORITY, 0, 1, bytes(5))
    yield "unknown frames", b"", frame(0x55)
    yield "leaves", b"", frame(GOAWAY, 0, 0, bytes(8))
    yield "empty data", waiting, frame(DATA, 0, 1)
    yield "padding", waiting, frame(DATA, PADDED, 1, b"\x03" + bytes(3))
    yield "data of an old stream", ANSWERED, frame(DATA, 0, 1, b"x")
    yield "headers of an old stream", ANSWERED, frame(HEADERS, END_BOTH, 1, CALL)
    yield "resets of an old stream", ANSWERED, rst_stream(1)
    yield "windows", b"", window_update(0, 1)
    yield "windows of a stream", waiting, window_update(1, 1)
    yield (
        "malformed requests",
        b"",
        b"".join(frame(HEADERS, END_BOTH, each, b"") for each in range(1, 401, 2)),
    )
    yield "pieces of a header", frame(HEADERS, 0, 1), frame(CONTINUATION, 0, 1)


@pytest.mark.parametrize("flood", [name for name, *_ in floods()])
async def test_a_flood_of_useless_frames_is_stopped(flood: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of such frames is allowed, and thousands of them a second are not."""
    monkeypatch.setattr(flood_guard, "_SUSPICIOUS_FRAMES_PER_SECOND", 100)
    async with (
        start_server(EchoApplication()) as port,
        connect(port) as other,
        connect(port) as peer,
    ):
        begin, again = next((begin, again) for name, begin, again in floods() if name == flood)
        peer.send(begin, again * 400)
        assert (await peer.read_goaway()).code == ENHANCE_YOUR_CALM
        other.send(other.request(1, body=b"calm"))
        assert (await other.read_response()).body == b"calm"


async def test_calls_that_are_reset_at_once_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs the server more than the client."""
    monkeypatch.setattr(flood_guard, "_SUSPICIOUS_FRAMES_PER_SECOND", 100)
    made = flood_guard.FloodGuard.__init__

    def stand_still(self: flood_guard.FloodGuard, *given: Any) -> None:
        """All come within the same second, however long the machine takes to send them."""
        made(self, *given)
        self._now = lambda: self._counted_since

    monkeypatch.setattr(flood_guard.FloodGuard, "__init__", stand_still)
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(*(peer.request(number, b"/wait") + rst_stream(number) for number in range(1, 801, 2)))
        assert (await peer.read_goaway()).code == ENHANCE_YOUR_CALM
        assert len(application.aborted_streams) <= 101


async def test_settings_weigh_as_much_as_the_streams_that_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them is for all streams; with many, fewer are taken."""
    monkeypatch.setattr(flood_guard, "_SUSPICIOUS_FRAMES_PER_SECOND", 100)
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(*(frame(HEADERS, END_BOTH, number, CALL) for number in range(1, 129, 2)))
        peer.send(*(settings((INITIAL_WINDOW_SIZE, 1000 + at % 2)) for at in range(30)))
        assert (await peer.read_goaway()).code == ENHANCE_YOUR_CALM


async def test_a_busy_client_is_not_mistaken_for_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    """It thanks for each answer with a larger window, asks along with each, and sends much of what it then
    hears is not wanted."""
    monkeypatch.setattr(flood_guard, "_SUSPICIOUS_FRAMES_PER_SECOND", 100)
    async with (
        start_server(EchoApplication(), limits(shortest_ping_s=3600)) as port,
        connect(port) as peer,
    ):
        for number in range(1, 801, 2):
            peer.send(peer.request(number, body=b"a message"), window_update(0, 9))
            assert (await peer.read_response(number)).body == b"a message"
            peer.send(frame(PING, payload=bytes(8)))
        peer.send(frame(HEADERS, END_HEADERS, 801, peer.encode(b"/early")))
        peer.send(frame(DATA, 0, 801, bytes(16_384)) * 400)
        peer.send(peer.request(803, body=b"still here"))
        answers = await peer.read_responses(801, 803)
        assert answers[803].body == b"still here"


async def test_small_windows_for_a_long_answer_are_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as each lets a sensible part of it through."""
    monkeypatch.setattr(flood_guard, "_SUSPICIOUS_FRAMES_PER_SECOND", 100)
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(settings((INITIAL_WINDOW_SIZE, 2000)), peer.request(1, b"/large/600000"))
        peer.send((window_update(1, 2000) + window_update(0, 2000)) * 300)
        assert len((await peer.read_response()).body) == 600_000


async def test_an_answer_that_is_taken_byte_by_byte_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame for a byte is more work than it is worth."""
    monkeypatch.setattr(flood_guard, "_SUSPICIOUS_FRAMES_PER_SECOND", 100)
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(
            settings((INITIAL_WINDOW_SIZE, 0)),
            peer.request(1, b"/large/600000"),
            window_update(1, 1) * 400,
        )
        assert (await peer.read_goaway()).code == ENHANCE_YOUR_CALM


async def test_pings_that_come_too_soon_are_stopped_in_words_that_clients_know() -> None:
    """The first is always answered, two more are forgiven, and an answer starts the count anew."""
    async with (
        start_server(EchoApplication(), limits(shortest_ping_s=3600)) as port,
        connect(port) as peer,
    ):
        for number in (1, 3):
            for _ in range(3):
                await peer.ping()
            peer.send(peer.request(number))
            await peer.read_response(number)
        for _ in range(3):
            await peer.ping()
        peer.send(frame(PING, payload=bytes(8)))
        end = await peer.read_goaway()
        assert (end.code, end.payload[8:]) == (ENHANCE_YOUR_CALM, b"too_many_pings")


async def test_unread_responses_are_bounded_for_all_connections() -> None:
    """A client beside those that do not read is answered when some of it is read."""
    application = EchoApplication()
    application.buffer_budget.limit = 150_000
    async with start_server(application) as port, connect(port) as one, connect(port) as another:
        for peer in (one, another):
            peer.send(settings((INITIAL_WINDOW_SIZE, 0)), peer.request(1, b"/large/100000"))
            if peer is one:
                await peer.ping()
        assert (await another.read_response(1)).reset == ENHANCE_YOUR_CALM
        one.send(window_update(1, 100_000), window_update(0, 100_000))
        assert len((await one.read_response(1)).body) == 100_000
        another.send(
            another.request(3, b"/large/100000"), window_update(3, 100_000), window_update(0, 100_000)
        )
        assert len((await another.read_response(3)).body) == 100_000


async def test_who_does_not_read_his_answers_gets_no_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a client is bounded for all its calls together; others of its calls go on."""
    application = EchoApplication()
    monkeypatch.setattr(streams, "_MAX_BUFFERED_BYTES", 300_000)
    async with start_server(application, limits(message_bytes=1000)) as port, connect(port) as peer:
        peer.send(settings((INITIAL_WINDOW_SIZE, 0)))
        peer.send(*(peer.request(number, b"/large/100000") for number in (1, 3, 5, 7)))
        assert (await peer.read_response(7)).reset == ENHANCE_YOUR_CALM
        peer.send(peer.request(9), rst_stream(1), rst_stream(3), rst_stream(5))
        assert (await peer.read_response(9)).reset is None
