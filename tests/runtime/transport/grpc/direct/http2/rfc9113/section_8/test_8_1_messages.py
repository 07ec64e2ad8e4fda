"""RFC 9113, sections 8.1 and 8.5: HTTP message framing, malformed messages and CONNECT."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    ECHO,
    OPEN,
    check_stream_error,
    exchange,
    literal,
    request_block,
)
from tests.runtime.transport.grpc.direct.support.echo_application import EchoApplication, start_server
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import serve_methods
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    HEADERS,
    PADDED,
    PROTOCOL_ERROR,
    connect,
    frame,
)

BEGIN = frame(HEADERS, END_HEADERS, 1, ECHO)
TRAILERS = frame(HEADERS, END_BOTH, 1, literal(b"x-sum", b"1"))


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"POST", b"PUT", b"OPTIONS", b"X-OWN"])
async def test_a_request_without_content_is_answered(method: bytes) -> None:
    """8.1: whatever its method is."""
    block = literal(b":method", method) + b"\x86\x04\x05/echo"
    assert (await exchange(frame(HEADERS, END_BOTH, 1, block))).headers == {b":status": b"200"}


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        pytest.param([BEGIN, frame(DATA, END_STREAM, 1, b"test")], b"test", id="content"),
        pytest.param([BEGIN, frame(DATA, 0, 1, b"test"), TRAILERS], b"test", id="content and trailers"),
        pytest.param([BEGIN, TRAILERS], b"", id="trailers alone"),
        pytest.param([BEGIN, frame(HEADERS, END_BOTH, 1)], b"", id="empty trailers"),
    ],
)
async def test_a_request_is_headers_content_and_trailers(sent: list[bytes], body: bytes) -> None:
    """8.1."""
    assert (await exchange(*sent)).body == body


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(HEADERS, END_HEADERS, 1), id="empty"),
        pytest.param(frame(HEADERS, END_HEADERS, 1, literal(b"x", b"y")), id="fields"),
        pytest.param(frame(HEADERS, END_HEADERS, 1, ECHO), id="request"),
        pytest.param(frame(DATA, 0, 1, b"x") + frame(HEADERS, END_HEADERS, 1), id="after DATA"),
    ],
)
async def test_a_second_headers_without_end_stream_is_a_stream_error(sent: bytes) -> None:
    """8.1: PROTOCOL_ERROR."""
    await check_stream_error(OPEN + sent, PROTOCOL_ERROR)


async def test_trailers_that_are_too_large_are_a_stream_error() -> None:
    """10.5.1."""
    block = b"\x40\x01n" + b"\x7f\x80\x1e" + b"v" * 3967 + b"\xbe" * 5
    await check_stream_error(OPEN + frame(HEADERS, END_BOTH, 1, block), ENHANCE_YOUR_CALM)


@pytest.mark.parametrize(
    ("sizes", "has_trailers", "is_right"),
    [
        ((5,), False, True),
        ((2, 3), False, True),
        ((2, 3), True, True),
        ((5, 0), False, True),
        ((4,), False, False),
        ((2, 2), True, False),
        ((6,), False, False),
        ((3, 3), True, False),
        ((), True, False),
    ],
)
async def test_a_content_length_is_the_length_of_the_data(
    sizes: tuple[int, ...], has_trailers: bool, is_right: bool
) -> None:
    """8.1.1: without padding, whether the data or trailers end the stream; else PROTOCOL_ERROR."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(frame(HEADERS, END_HEADERS, 1, request_block(b"/echo", (b"content-length", b"5"))))
        for at, size in enumerate(sizes):
            ends = END_STREAM if at == len(sizes) - 1 and not has_trailers else 0
            peer.send(frame(DATA, PADDED | ends, 1, b"\x03" + b"x" * size + bytes(3)))
        if has_trailers:
            peer.send(frame(HEADERS, END_BOTH, 1, b""))
        peer.send(peer.request(3, body=b"next"))
        responses = await peer.read_responses(1, 3)
        assert responses[1].reset == (None if is_right else PROTOCOL_ERROR)
        assert application.aborted_streams == ([] if is_right else [1])
        assert responses[3].body == b"next"


async def test_a_connect_request_is_not_malformed() -> None:
    """8.5: it has neither a scheme nor a path; a gRPC server responds that it has no tunnels."""
    async with serve_methods({}) as (port, _), connect(port) as peer:
        block = literal(b":method", b"CONNECT") + literal(b":authority", b"here")
        peer.send(frame(HEADERS, END_BOTH, 1, block))
        assert (await peer.read_response(1)).headers[b":status"] == b"405"
