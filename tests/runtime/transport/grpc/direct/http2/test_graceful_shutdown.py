"""Graceful shutdown of a server connection: two GOAWAYs, and no lost request (RFC 9113, section 6.8)."""

from __future__ import annotations

import pytest

from runtime.transport.grpc.direct.http2 import keepalive
from runtime.transport.grpc.direct.http2 import server_connection as serving_side
from tests.runtime.transport.grpc.direct.support.echo_application import (
    EchoApplication,
    respond,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    NO_ERROR,
    PING,
    PREFACE,
    connect,
    frame,
    rst_stream,
    settings,
    window_update,
)


async def test_a_graceful_shutdown_drains_and_refuses_new_streams() -> None:
    """Streams after the GOAWAY are ignored, with all their frames; earlier ones are answered."""
    application = EchoApplication()
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 10_000)) + window_update(0, 2**20)
    async with start_server(application) as port, connect(port, greeting) as peer:
        peer.send(
            peer.request(1, b"/wait"),
            peer.request(3, b"/large/100000"),
            frame(HEADERS, END_HEADERS, 5, peer.encode()),
        )
        await peer.wait_for(DATA, 3)
        await peer.ping()
        gone = application.connections[0].shut_down_gracefully()
        assert (await peer.acknowledge_drain()).last_stream_id == 5
        late = frame(HEADERS, END_HEADERS, 7, peer.encode(b"/wait")) + frame(DATA, 0, 7, b"abc")
        peer.send(
            late, window_update(7, 5), frame(DATA, END_STREAM, 7, b"abc"), peer.request(9), rst_stream(9)
        )
        peer.send(frame(DATA, END_STREAM, 5, b"last words"))
        assert (await peer.read_response(5)).body == b"last words"
        respond(*application.waiting[1], b"done")
        assert (await peer.read_response(1)).body == b"done"
        assert not gone.done()
        peer.send(window_update(3, 90_000))
        assert len((await peer.read_response(3)).body) == 90_000
        assert await peer.read_to_end() == []
        await gone
        assert 7 not in application.bodies


async def test_streams_that_are_opened_before_the_client_has_heard_of_the_leave_are_served() -> None:
    """A proxy cannot retry a call that it has passed on; its calls are answered until it knows."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(peer.request(1, b"/wait"))
        await application.wait_until(lambda: application.waiting)
        gone = application.connections[0].shut_down_gracefully()
        assert application.connections[0].shut_down_gracefully() is gone
        assert (await peer.wait_for(GOAWAY)).last_stream_id == 2**31 - 1
        ping = await peer.wait_for(PING)
        peer.send(
            peer.request(3, body=b"not yet"), frame(PING, ACK, 0, b"another!"), peer.request(5, b"/wait")
        )
        assert (await peer.read_response(3)).body == b"not yet"
        peer.send(frame(PING, ACK, 0, ping.payload), peer.request(7, b"/wait"))
        last = await peer.wait_for(GOAWAY)
        assert (last.last_stream_id, last.code) == (5, NO_ERROR)
        for number in (1, 5):
            respond(*application.waiting[number], b"%d" % number)
        answers = await peer.read_responses(1, 5)
        assert [answers[each].body for each in (1, 5)] == [b"1", b"5"]
        assert await peer.read_to_end() == []
        await gone
        assert 7 not in application.bodies


async def test_a_peer_that_does_not_acknowledge_gets_the_last_goaway_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A silent client does not delay a stop; one that is aborted gets the last stream, too."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer, connect(port) as other:
        for each in (peer, other):
            each.send(each.request(1))
            await each.read_response()
        first, second = application.connections
        second.shut_down_gracefully()
        second.close()
        assert [each.last_stream_id for each in await other.read_to_end() if each.kind == GOAWAY] == [
            2**31 - 1,
            1,
        ]
        monkeypatch.setattr(serving_side, "_DRAIN_S", 0.0)
        await first.shut_down_gracefully()
        assert [each.last_stream_id for each in await peer.read_to_end() if each.kind == GOAWAY] == [
            2**31 - 1,
            1,
        ]


async def test_a_fault_after_the_leave_promises_nothing_more() -> None:
    """The last stream that was promised stays the last, also if a later one was seen."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(peer.request(1, b"/wait"))
        await application.wait_until(lambda: application.waiting)
        application.connections[0].shut_down_gracefully()
        await peer.acknowledge_drain()
        peer.send(peer.request(5), frame(DATA, 0, 0))
        assert (await peer.read_goaway()).last_stream_id == 1


async def test_the_last_answer_arrives_however_slowly_it_is_read() -> None:
    """A connection that leaves does not go before its last answer has."""
    application = EchoApplication()
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1)) + window_update(0, 2**31 - 1 - 65_535)
    size = 2 * 2**20
    async with start_server(application) as port, connect(port, greeting, buffer=16_384) as peer:
        peer.send(peer.request(1, b"/large/%d" % size))
        await application.wait_until(
            lambda: application.connections and application.connections[0]._frame_writer.is_paused
        )
        application.connections[0].shut_down_gracefully()
        assert len((await peer.read_response()).body) == size


async def test_a_client_that_does_not_read_the_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing waits until the rest is read, but not for ever."""
    monkeypatch.setattr(keepalive, "_GRACE_S", 0.05)
    monkeypatch.setattr(serving_side, "_DRAIN_S", 0.05)
    application = EchoApplication()
    greeting = PREFACE + settings((INITIAL_WINDOW_SIZE, 2**31 - 1)) + window_update(0, 2**31 - 1 - 65_535)
    async with start_server(application) as port, connect(port, greeting, buffer=16_384) as peer:
        peer.send(peer.request(1, b"/large/2000000"))
        await application.wait_until(
            lambda: application.connections and application.connections[0]._frame_writer.is_paused
        )
        await application.connections[0].shut_down_gracefully()
