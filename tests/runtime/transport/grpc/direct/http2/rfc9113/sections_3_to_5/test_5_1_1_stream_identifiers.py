"""RFC 9113, sections 5.1.1 and 5.1.2: stream identifiers and concurrency."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    ECHO,
    WAIT,
    check_connection_error,
    exchange,
)
from tests.runtime.transport.grpc.direct.support.echo_application import (
    EchoApplication,
    limits,
    respond,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    END_BOTH,
    HEADERS,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    RST_STREAM,
    connect,
    frame,
)


@pytest.mark.parametrize("stream", [2, 4, 2**31 - 2])
async def test_an_even_identifier_is_a_connection_error(stream: int) -> None:
    """5.1.1: streams of a client are odd, others PROTOCOL_ERROR."""
    await check_connection_error(frame(HEADERS, END_BOTH, stream, WAIT), PROTOCOL_ERROR)


@pytest.mark.parametrize("path", [WAIT, ECHO], ids=["open", "closed"])
@pytest.mark.parametrize(("first", "second"), [(3, 1), (5, 3), (101, 99), (2**31 - 1, 7)])
async def test_an_identifier_that_was_skipped_is_a_connection_error(
    first: int, second: int, path: bytes
) -> None:
    """5.1.1: a new stream has a larger identifier than all before it, else PROTOCOL_ERROR."""
    sent = frame(HEADERS, END_BOTH, first, path) + frame(HEADERS, END_BOTH, second, WAIT)
    await check_connection_error(sent, PROTOCOL_ERROR)


async def test_malformed_headers_on_a_skipped_identifier_are_a_connection_error() -> None:
    """5.1.1 comes before 8.1.1: there is no stream that could be reset."""
    sent = frame(HEADERS, END_BOTH, 5, b"") + frame(HEADERS, END_BOTH, 1, b"\x00\x01A\x01b")
    await check_connection_error(sent, PROTOCOL_ERROR)


async def test_identifiers_may_be_skipped() -> None:
    """5.1.1: a new stream closes the idle ones before it."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        for stream in (3, 9, 11, 1001, 2**31 - 1):
            peer.send(peer.request(stream, body=b"%d" % stream))
            assert (await peer.read_response(stream)).body == b"%d" % stream


async def test_the_largest_identifier_is_served() -> None:
    """5.1.1."""
    response = await exchange(frame(HEADERS, END_BOTH, 2**31 - 1, ECHO), stream=2**31 - 1)
    assert response.headers == {b":status": b"200"}


async def test_streams_beyond_the_limit_are_stream_errors() -> None:
    """5.1.2: REFUSED_STREAM, which may be retried; one that has ended makes room."""
    application = EchoApplication()
    async with start_server(application, limits(streams=3)) as port, connect(port) as peer:
        peer.send(*(peer.request(number, b"/wait") for number in (1, 3, 5, 7)))
        assert (await peer.wait_for(RST_STREAM, 7)).code == REFUSED_STREAM
        respond(*application.waiting[3], b"")
        peer.send(peer.request(9), peer.request(11, b"/wait"), peer.request(13))
        responses = await peer.read_responses(3, 9, 13)
        assert [responses[each].reset for each in (3, 9, 13)] == [None, None, REFUSED_STREAM]
