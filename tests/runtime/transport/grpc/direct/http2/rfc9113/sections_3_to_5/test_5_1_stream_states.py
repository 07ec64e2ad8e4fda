"""RFC 9113, section 5.1: stream states."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    CLOSED,
    ECHO,
    HALF_CLOSED,
    OPEN,
    WAIT,
    check_connection_error,
    check_ignored,
    check_stream_error,
)
from tests.runtime.transport.grpc.direct.support.echo_application import (
    EchoApplication,
    respond,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    CONTINUATION,
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PRIORITY,
    PROTOCOL_ERROR,
    STREAM_CLOSED,
    connect,
    frame,
    rst_stream,
    window_update,
)

RESET = OPEN + rst_stream(1)
ENDED_BY_TRAILERS = OPEN + frame(HEADERS, END_BOTH, 1)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(DATA, 0, 1, b"x"), id="DATA"),
        pytest.param(frame(DATA, 0, 2, b"x"), id="DATA on a stream of the server"),
        pytest.param(rst_stream(1), id="RST_STREAM"),
        pytest.param(window_update(1, 100), id="WINDOW_UPDATE"),
        pytest.param(frame(CONTINUATION, END_HEADERS, 1, ECHO), id="CONTINUATION"),
    ],
)
async def test_frames_on_an_idle_stream_are_connection_errors(sent: bytes) -> None:
    """5.1 idle: all but HEADERS and PRIORITY are PROTOCOL_ERROR."""
    await check_connection_error(sent, PROTOCOL_ERROR)


async def test_priority_on_an_idle_stream_is_ignored() -> None:
    """5.1 idle."""
    await check_ignored(frame(PRIORITY, 0, 5, bytes(5)))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HALF_CLOSED + frame(DATA, 0, 1, b"x"), id="DATA"),
        pytest.param(HALF_CLOSED + frame(DATA, END_STREAM, 1), id="empty DATA"),
        pytest.param(HALF_CLOSED + frame(HEADERS, END_BOTH, 1), id="trailers"),
        pytest.param(HALF_CLOSED + frame(HEADERS, END_BOTH, 1, WAIT), id="HEADERS"),
        pytest.param(ENDED_BY_TRAILERS + frame(DATA, 0, 1, b"x"), id="DATA after trailers"),
    ],
)
async def test_frames_on_a_half_closed_stream_are_stream_errors(sent: bytes) -> None:
    """5.1 half-closed (remote): STREAM_CLOSED."""
    await check_stream_error(sent, STREAM_CLOSED)


async def test_continuation_on_a_half_closed_stream_is_a_connection_error() -> None:
    """5.1 and 6.10: without a header block before it, PROTOCOL_ERROR."""
    await check_connection_error(HALF_CLOSED + frame(CONTINUATION, END_HEADERS, 1, ECHO), PROTOCOL_ERROR)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(PRIORITY, 0, 1, bytes(5)), id="PRIORITY"),
        pytest.param(window_update(1, 100), id="WINDOW_UPDATE"),
    ],
)
async def test_a_half_closed_stream_is_still_answered(sent: bytes) -> None:
    """5.1 half-closed (remote): WINDOW_UPDATE and PRIORITY are accepted."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(HALF_CLOSED, sent)
        await peer.ping()
        respond(*application.waiting[1], b"done")
        assert (await peer.read_response(1)).body == b"done"


async def test_a_reset_of_a_half_closed_stream_closes_it() -> None:
    """5.1 half-closed (remote): RST_STREAM is accepted, and nothing more is sent on the stream."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(HALF_CLOSED, rst_stream(1))
        await application.wait_until(lambda: application.aborted_streams == [1])
        respond(*application.waiting[1], b"too late")
        peer.send(peer.request(3, body=b"next"))
        frames = [await peer.read_frame() for _ in range(6)]
        assert {each.stream for each in frames if each is not None} == {0, 3}


@pytest.mark.parametrize("closed", [CLOSED, RESET], ids=["by END_STREAM", "by RST_STREAM"])
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(DATA, 0, 1, b"x"), id="DATA"),
        pytest.param(frame(DATA, END_STREAM, 1), id="empty DATA"),
        pytest.param(frame(HEADERS, END_BOTH, 1, ECHO), id="HEADERS"),
        pytest.param(frame(HEADERS, 1, 1, ECHO) + frame(CONTINUATION, END_HEADERS, 1), id="two fragments"),
        pytest.param(window_update(1, 100), id="WINDOW_UPDATE"),
        pytest.param(window_update(1, 0), id="WINDOW_UPDATE of 0"),
        pytest.param(rst_stream(1), id="RST_STREAM"),
        pytest.param(frame(PRIORITY, 0, 1, bytes(5)), id="PRIORITY"),
    ],
)
async def test_frames_on_a_closed_stream_are_discarded(closed: bytes, sent: bytes) -> None:
    """5.1 closed: they may have been sent before the peer knew; minimal processing is allowed for all."""
    await check_ignored(closed + sent)


@pytest.mark.parametrize("closed", [CLOSED, RESET], ids=["by END_STREAM", "by RST_STREAM"])
async def test_continuation_on_a_closed_stream_is_a_connection_error(closed: bytes) -> None:
    """5.1 and 6.10: without a header block before it, PROTOCOL_ERROR."""
    await check_connection_error(closed + frame(CONTINUATION, END_HEADERS, 1, ECHO), PROTOCOL_ERROR)
