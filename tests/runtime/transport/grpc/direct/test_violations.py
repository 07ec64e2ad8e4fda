"""Violations of the protocol: each ends its own stream or connection, and no other."""

from __future__ import annotations

import struct

import pytest

from tests.runtime.transport.grpc.direct.echo_application import (
    EchoApplication,
    respond,
    serving,
)
from tests.runtime.transport.grpc.direct.grpc_fixtures import serving_methods
from tests.runtime.transport.grpc.direct.raw_peer import (
    ACK,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_CLOSED,
    WINDOW_UPDATE,
    WITH_PRIORITY,
    connected,
    frame,
    rst_stream,
    settings,
    window_update,
)

CALL = bytes.fromhex("838604") + b"\x05/wait"
"""A header block that leaves the table alone."""
OPEN = frame(HEADERS, END_HEADERS, 1, CALL)
ENDED = frame(HEADERS, END_BOTH, 1, CALL)
LONG = b"\x00\x01n\x7f\x81\x7f" + b"v" * (128 * 127)

VIOLATIONS = {
    "data of no stream": (frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
    "data of a stream that nobody opened": (frame(DATA, 0, 3, b"x"), PROTOCOL_ERROR),
    "data with more padding than data": (OPEN + frame(DATA, PADDED, 1, b"\x02x\x00"[:2]), PROTOCOL_ERROR),
    "data with nothing but padding, and more": (OPEN + frame(DATA, PADDED, 1, b"\x01"), PROTOCOL_ERROR),
    "padded data without a length": (OPEN + frame(DATA, PADDED, 1), PROTOCOL_ERROR),
    "headers of no stream": (frame(HEADERS, END_BOTH, 0, CALL), PROTOCOL_ERROR),
    "headers of a server's stream": (frame(HEADERS, END_BOTH, 2, CALL), PROTOCOL_ERROR),
    "headers with too much padding": (frame(HEADERS, END_BOTH | PADDED, 1, b"\xff" + CALL), PROTOCOL_ERROR),
    "headers with half a priority": (frame(HEADERS, END_BOTH | WITH_PRIORITY, 1, bytes(4)), FRAME_SIZE_ERROR),
    "headers within headers": (
        frame(HEADERS, 0, 1, CALL) + frame(HEADERS, END_BOTH, 3, CALL),
        PROTOCOL_ERROR,
    ),
    "a ping within headers": (frame(HEADERS, 0, 1, CALL) + frame(PING, payload=bytes(8)), PROTOCOL_ERROR),
    "an unknown frame within headers": (frame(HEADERS, 0, 1, CALL) + frame(0x55), PROTOCOL_ERROR),
    "headers that go on elsewhere": (
        frame(HEADERS, 0, 1, CALL) + frame(CONTINUATION, END_HEADERS, 3),
        PROTOCOL_ERROR,
    ),
    "headers that go on after their end": (ENDED + frame(CONTINUATION, END_HEADERS, 1), PROTOCOL_ERROR),
    "headers that nobody can read": (frame(HEADERS, END_BOTH, 1, b"\x80"), COMPRESSION_ERROR),
    "trailers that nobody can read": (OPEN + frame(HEADERS, END_BOTH, 1, b"\xff\xff"), COMPRESSION_ERROR),
    "headers of an old stream that nobody can read": (
        frame(HEADERS, END_BOTH, 3, CALL) + frame(HEADERS, END_BOTH, 1, b"\x80"),
        COMPRESSION_ERROR,
    ),
    "too many headers": (frame(HEADERS, END_BOTH, 1, CALL + LONG[:16_370]), COMPRESSION_ERROR),
    "headers in too many pieces": (
        frame(HEADERS, 0, 1, bytes(16_384))
        + frame(CONTINUATION, 0, 1, bytes(16_384)) * 3
        + frame(CONTINUATION, 0, 1, b"x"),
        ENHANCE_YOUR_CALM,
    ),
    "a priority of nothing": (frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL_ERROR),
    "a short priority": (frame(PRIORITY, 0, 1, bytes(4)), FRAME_SIZE_ERROR),
    "a reset of nothing": (rst_stream(0), PROTOCOL_ERROR),
    "a reset of a stream that nobody opened": (rst_stream(1), PROTOCOL_ERROR),
    "a short reset": (OPEN + frame(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR),
    "settings of a stream": (frame(SETTINGS, 0, 1), PROTOCOL_ERROR),
    "settings that are cut": (frame(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
    "settings that are taken and said": (frame(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR),
    "a push that is neither": (settings((2, 2)), PROTOCOL_ERROR),
    "a window that is too make_body": (settings((INITIAL_WINDOW_SIZE, 2**31)), FLOW_CONTROL_ERROR),
    "a window that is too make_body and mended": (
        settings((INITIAL_WINDOW_SIZE, 2**31), (INITIAL_WINDOW_SIZE, 1)),
        FLOW_CONTROL_ERROR,
    ),
    "frames that are too system_with": (settings((MAX_FRAME_SIZE, 16_383)), PROTOCOL_ERROR),
    "frames that are too make_body": (settings((MAX_FRAME_SIZE, 2**24)), PROTOCOL_ERROR),
    "a promise": (frame(PUSH_PROMISE, END_HEADERS, 1, bytes(4) + CALL), PROTOCOL_ERROR),
    "a ping of a stream": (frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "a short ping": (frame(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "a leave of a stream": (frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "a short leave": (frame(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "a window that grows by nothing": (window_update(0, 0), PROTOCOL_ERROR),
    "a short window": (frame(WINDOW_UPDATE, 0, 0, bytes(3)), FRAME_SIZE_ERROR),
    "a window of a stream that nobody opened": (window_update(1, 1), PROTOCOL_ERROR),
    "a window that grows too make_body": (window_update(0, 2**31 - 1), FLOW_CONTROL_ERROR),
    "a setting that makes a window too make_body": (
        OPEN + window_update(1, 2**31 - 1 - 65_535) + settings((INITIAL_WINDOW_SIZE, 65_536)),
        FLOW_CONTROL_ERROR,
    ),
    "a frame that is too make_body": (struct.pack(">LBL", 16_385 << 8, 0, 1), FRAME_SIZE_ERROR),
}


@pytest.mark.parametrize("said", VIOLATIONS)
async def test_a_violation_ends_its_connection_with_its_code(said: str) -> None:
    """The client is told which rule it was; calls of its own are lost, and those of others are not."""
    bytes_of_it, code = VIOLATIONS[said]
    application = EchoApplication()
    async with serving(application) as port, connected(port) as other, connected(port) as peer:
        other.send(other.request(1, b"/wait"))
        await other.ping()
        peer.send(bytes_of_it, frame(PING, payload=b"too late"))
        assert (await peer.read_goaway()).code == code
        await application.wait_until(lambda: len(application.connections) == 1)
        other.send(other.request(3, body=b"and me?"))
        assert (await other.read_response(3)).body == b"and me?"
        assert application.connections[0]._streams.keys() == {1}


STREAM_ERRORS = {
    "data after the end": (ENDED + frame(DATA, 0, 1, b"x"), STREAM_CLOSED),
    "data after trailers": (OPEN + frame(HEADERS, END_BOTH, 1, b"") + frame(DATA, 0, 1, b"x"), STREAM_CLOSED),
    "trailers after the end": (ENDED + frame(HEADERS, END_BOTH, 1, b""), STREAM_CLOSED),
    "trailers that do not end": (OPEN + frame(HEADERS, END_HEADERS, 1, b""), PROTOCOL_ERROR),
    "a window that grows by nothing": (OPEN + window_update(1, 1 << 31), PROTOCOL_ERROR),
    "a window that grows too make_body": (OPEN + window_update(1, 2**31 - 1), FLOW_CONTROL_ERROR),
    "trailers that are too make_body": (
        OPEN + frame(HEADERS, END_BOTH, 1, b"\x40\x01n" + b"\x7f\x80\x1e" + b"v" * 3967 + b"\xbe" * 5),
        ENHANCE_YOUR_CALM,
    ),
    "a short priority": (OPEN + frame(PRIORITY, 0, 1, bytes(4)), FRAME_SIZE_ERROR),
}


@pytest.mark.parametrize("said", STREAM_ERRORS)
async def test_a_stream_error_ends_its_stream_only(said: str) -> None:
    """A reset with its code; other calls of the connection, which may be anybody's, are answered."""
    bytes_of_it, code = STREAM_ERRORS[said]
    application = EchoApplication()
    async with serving(application) as port, connected(port) as peer:
        peer.send(bytes_of_it)
        assert (await peer.read_response(1)).reset == code
        assert application.aborted_streams in ([], [1])
        peer.send(peer.request(3, body=b"and me?"))
        assert (await peer.read_response(3)).body == b"and me?"
        assert application.connections[0]._streams == {}


M, S, P, A = (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/echo"), (b":authority", b"here")
MALFORMED = {
    "no method": [S, P, A],
    "no scheme": [M, P, A],
    "no path": [M, S, A],
    "an empty path": [M, S, (b":path", b"")],
    "no pseudo-header": [(b"te", b"trailers")],
    "two methods": [M, M, S, P],
    "two paths": [M, S, P, P],
    "two authorities": [M, S, P, A, A],
    "the pseudo-header of an answer": [M, S, P, (b":status", b"200")],
    "an unknown pseudo-header": [M, S, P, (b":protocol", b"websocket")],
    "a pseudo-header after a header": [M, S, (b"te", b"trailers"), P],
    "a late pseudo-header": [M, S, P, (b"x", b"y"), A],
    "no CONNECT": [M, A],
    "connection": [M, S, P, (b"connection", b"close")],
    "keep-alive": [M, S, P, (b"keep-alive", b"1")],
    "proxy-connection": [M, S, P, (b"proxy-connection", b"close")],
    "transfer-encoding": [M, S, P, (b"transfer-encoding", b"chunked")],
    "upgrade": [M, S, P, (b"upgrade", b"h2c")],
    "te": [M, S, P, (b"te", b"gzip")],
    "two te": [M, S, P, (b"te", b"trailers"), (b"te", b"trailers")],
    "capital letters": [M, S, P, (b"X-Id", b"1")],
    "a space in a name": [M, S, P, (b"x id", b"1")],
    "an empty name": [M, S, P, (b"", b"1")],
    "a colon in a name": [M, S, P, (b"x:id", b"1")],
    "a byte in a name that is no letter": [M, S, P, (b"caf\xe9", b"1")],
    "a zero in a name": [M, S, P, (b"x\0", b"1")],
    "a line feed in a value": [M, S, P, (b"x-id", b"1\n2")],
    "a space after a value": [M, S, P, (b"x-id", b"1 ")],
    "a line feed in the path": [M, S, (b":path", b"/a\nb")],
    "no content-length": [M, S, P, (b"content-length", b"+5")],
    "two content-lengths": [M, S, P, (b"content-length", b"5"), (b"content-length", b"5")],
    "a content-length without data": [M, S, P, (b"content-length", b"5")],
}


@pytest.mark.parametrize("said", MALFORMED)
async def test_a_malformed_request_ends_its_stream_only(said: str) -> None:
    """No application sees it, and the next call of the connection is answered."""
    application = EchoApplication()
    async with serving(application) as port, connected(port) as peer:
        peer.send(frame(HEADERS, END_BOTH, 1, peer.encoder.encode(MALFORMED[said])))
        assert (await peer.read_response(1)).reset == PROTOCOL_ERROR
        peer.send(peer.request(3, body=b"and me?"))
        assert (await peer.read_response(3)).body == b"and me?"
        assert set(application.request_headers) == {3}


async def test_a_malformed_request_that_comes_again_is_reset_again() -> None:
    """By then its headers are numbers of entries in the table."""
    async with serving(EchoApplication()) as port, connected(port) as peer:
        for number in (1, 3, 5):
            block = peer.encoder.encode(MALFORMED["connection"])
            peer.send(frame(HEADERS, END_BOTH, number, block))
            assert (await peer.read_response(number)).reset == PROTOCOL_ERROR
        assert len(block) == 4
        peer.send(frame(HEADERS, END_BOTH, 7, peer.encoder.encode([M, S, P, (b"te", b"Trailers")])))
        assert (await peer.read_response(7)).headers == {b":status": b"200"}


@pytest.mark.parametrize(
    "trailers", [[P], [(b":status", b"200")], [(b"connection", b"close")], [(b"A", b"b")]]
)
async def test_malformed_trailers_end_their_stream_only(trailers: list[tuple[bytes, bytes]]) -> None:
    async with serving(EchoApplication()) as port, connected(port) as peer:
        peer.send(frame(HEADERS, END_HEADERS, 1, peer.encode()), frame(DATA, 0, 1, b"x"))
        peer.send(frame(HEADERS, END_BOTH, 1, peer.encoder.encode(trailers)), peer.request(3))
        answers = await peer.read_responses(1, 3)
        assert (answers[1].reset, answers[3].reset) == (PROTOCOL_ERROR, None)


@pytest.mark.parametrize(
    ("sizes", "trailing", "is_right"),
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
    sizes: tuple[int, ...], trailing: bool, is_right: bool
) -> None:
    """Without padding; whether the data or trailers end the stream. Without it, nothing is counted."""
    application = EchoApplication()
    async with serving(application) as port, connected(port) as peer:
        peer.send(frame(HEADERS, END_HEADERS, 1, peer.encode(b"/echo", (b"content-length", b"5"))))
        for at, size in enumerate(sizes):
            ends = END_STREAM if at == len(sizes) - 1 and not trailing else 0
            peer.send(frame(DATA, PADDED | ends, 1, b"\x03" + b"x" * size + bytes(3)))
        if trailing:
            peer.send(frame(HEADERS, END_BOTH, 1, b""))
        peer.send(peer.request(3, body=b"next"))
        answers = await peer.read_responses(1, 3)
        assert answers[1].reset == (None if is_right else PROTOCOL_ERROR)
        assert application.aborted_streams == ([] if is_right else [1])
        assert answers[3].body == b"next"


async def test_a_tunnel_is_no_malformed_request() -> None:
    """CONNECT has neither a scheme nor a path; the application may say that it has no tunnels."""
    async with serving_methods({}) as (port, _), connected(port) as peer:
        peer.send(frame(HEADERS, END_BOTH, 1, peer.encoder.encode([(b":method", b"CONNECT"), A])))
        assert (await peer.read_response(1)).headers[b":status"] == b"405"


def blocks(number: int, block: bytes) -> bytes:
    """The frames of a header block of any size."""
    parts = [block[at : at + 16_384] for at in range(0, len(block), 16_384)]
    said = [frame(HEADERS, END_STREAM, number, parts[0])]
    said += [frame(CONTINUATION, 0, number, part) for part in parts[1:]]
    return b"".join((*said, frame(CONTINUATION, END_HEADERS, number)))


@pytest.mark.parametrize("size", [17_000, 60_000])
async def test_headers_that_are_too_large_end_their_stream_only(size: int) -> None:
    """The table stays in step: what the block has added to it is known to the blocks that follow."""
    application = EchoApplication()
    async with serving(application) as port, connected(port) as peer:
        peer.send(peer.request(1, b"/wait"))
        oversized = peer.encode(
            b"/echo", (b"x-before", b"1"), (b"x-large", b"x" * size), (b"x-after", b"2" * 99)
        )
        peer.send(blocks(3, oversized))
        assert (await peer.read_response(3)).headers == {b":status": b"431"}
        again = peer.encode(b"/echo", (b"x-after", b"2" * 99))
        assert len(again) < 99
        peer.send(frame(HEADERS, END_BOTH, 5, again))
        assert (await peer.read_response(5)).headers == {b":status": b"200"}
        assert application.request_headers[5][b"x-after"] == b"2" * 99
        assert application.aborted_streams == []
        respond(*application.waiting[1], b"still here")
        assert (await peer.read_response(1)).body == b"still here"


@pytest.mark.parametrize(
    "greeting",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        bytes(1000),
        PREFACE + frame(PING, payload=bytes(8)),
        PREFACE + frame(SETTINGS, ACK),
        PREFACE + ENDED,
    ],
    ids=["HTTP/1", "almost", "TLS", "zeros", "a ping first", "an acknowledgement first", "a call first"],
)
async def test_who_does_not_speak_the_protocol_is_told_so(greeting: bytes) -> None:
    """The first bytes tell whether both mean the same."""
    async with serving(EchoApplication()) as port, connected(port, greeting) as peer:
        assert (await peer.read_goaway()).code == PROTOCOL_ERROR
