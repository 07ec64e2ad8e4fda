"""RFC 9113, sections 6.2 and 6.10: HEADERS and CONTINUATION."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    ECHO,
    HALF_CLOSED,
    OPEN,
    WAIT,
    check_connection_error,
    exchange,
    request_block,
    split_block,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    CONTINUATION,
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    FRAME_SIZE_ERROR,
    HEADERS,
    PADDED,
    PROTOCOL_ERROR,
    WITH_PRIORITY,
    frame,
)

LONG = request_block(b"/echo", (b"x-a", b"y" * 100), (b"x-b", b"z" * 100))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(HEADERS, END_BOTH, 1, ECHO), id="plain"),
        pytest.param(frame(HEADERS, END_BOTH | PADDED, 1, b"\0" + ECHO), id="padded by 0"),
        pytest.param(frame(HEADERS, END_BOTH | PADDED, 1, b"\x08" + ECHO + bytes(8)), id="padded"),
        pytest.param(frame(HEADERS, END_BOTH | WITH_PRIORITY, 1, bytes(5) + ECHO), id="priority"),
        pytest.param(split_block(1, LONG), id="6.10 one CONTINUATION"),
        pytest.param(split_block(1, LONG, 50), id="6.10 several CONTINUATIONs"),
        pytest.param(split_block(1, LONG, 1), id="6.10 CONTINUATIONs of a byte"),
        pytest.param(
            frame(HEADERS, PADDED | WITH_PRIORITY | END_STREAM, 1, b"\x03" + bytes(5) + ECHO[:4] + bytes(3))
            + frame(CONTINUATION, END_HEADERS, 1, ECHO[4:]),
            id="6.10 padding and priority before CONTINUATION",
        ),
        pytest.param(
            frame(HEADERS, END_STREAM, 1, ECHO) + frame(CONTINUATION, END_HEADERS | 0x38, 1),
            id="6.10 undefined flags of CONTINUATION",
        ),
    ],
)
async def test_headers_open_a_stream(sent: bytes) -> None:
    """6.2 and 6.10: whatever surrounds the field block fragments."""
    assert (await exchange(sent)).headers == {b":status": b"200"}


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(frame(HEADERS, END_BOTH, 0, WAIT), PROTOCOL_ERROR, id="6.2 stream 0"),
        pytest.param(frame(HEADERS, END_BOTH | PADDED, 1), PROTOCOL_ERROR, id="6.2 no pad length"),
        pytest.param(
            frame(HEADERS, END_BOTH | PADDED, 1, bytes((len(WAIT) + 1,)) + WAIT),
            PROTOCOL_ERROR,
            id="6.2 pad length of the payload",
        ),
        pytest.param(
            frame(HEADERS, END_BOTH | PADDED, 1, b"\xff" + WAIT), PROTOCOL_ERROR, id="6.2 pad length beyond"
        ),
        pytest.param(
            frame(HEADERS, END_BOTH | WITH_PRIORITY, 1, bytes(4)), FRAME_SIZE_ERROR, id="6.2 half a priority"
        ),
        pytest.param(
            frame(HEADERS, END_BOTH | WITH_PRIORITY | PADDED, 1, b"\x08" + bytes(10)),
            FRAME_SIZE_ERROR,
            id="6.2 padding within the priority",
        ),
        pytest.param(frame(CONTINUATION, END_HEADERS, 0), PROTOCOL_ERROR, id="6.10 stream 0"),
        pytest.param(
            frame(HEADERS, 0, 1, WAIT) + frame(CONTINUATION, END_HEADERS, 0),
            PROTOCOL_ERROR,
            id="6.10 stream 0 after HEADERS",
        ),
        pytest.param(
            frame(HEADERS, 0, 1, WAIT) + frame(CONTINUATION, END_HEADERS, 3),
            PROTOCOL_ERROR,
            id="6.10 another stream",
        ),
        pytest.param(
            frame(HEADERS, 0, 1, WAIT) + frame(CONTINUATION, 0, 1) + frame(DATA, 0, 1, b"x"),
            PROTOCOL_ERROR,
            id="6.10 DATA after CONTINUATION",
        ),
        pytest.param(
            HALF_CLOSED + frame(CONTINUATION, END_HEADERS, 1), PROTOCOL_ERROR, id="6.10 after END_HEADERS"
        ),
        pytest.param(
            frame(HEADERS, 0, 1, WAIT) + frame(CONTINUATION, END_HEADERS, 1) * 2,
            PROTOCOL_ERROR,
            id="6.10 after CONTINUATION with END_HEADERS",
        ),
        pytest.param(
            OPEN + frame(DATA, 0, 1, b"x") + frame(CONTINUATION, END_HEADERS, 1),
            PROTOCOL_ERROR,
            id="6.10 after DATA",
        ),
    ],
)
async def test_malformed_headers_are_connection_errors(sent: bytes, code: int) -> None:
    await check_connection_error(sent, code)
