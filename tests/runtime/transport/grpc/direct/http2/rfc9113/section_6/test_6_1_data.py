"""RFC 9113, section 6.1: DATA."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    ECHO,
    OPEN,
    check_connection_error,
    exchange,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    PROTOCOL_ERROR,
    frame,
)

BEGIN = frame(HEADERS, END_HEADERS, 1, ECHO)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param([frame(DATA, END_STREAM, 1, b"test")], id="one"),
        pytest.param([frame(DATA, 0, 1, b"te"), frame(DATA, END_STREAM, 1, b"st")], id="two"),
        pytest.param([frame(DATA, 0, 1, b"test"), frame(DATA, END_STREAM, 1)], id="an empty one ends"),
        pytest.param([frame(DATA, 0, 1), frame(DATA, END_STREAM, 1, b"test")], id="an empty one begins"),
        pytest.param([frame(DATA, PADDED | END_STREAM, 1, b"\x06test" + bytes(6))], id="padded"),
        pytest.param([frame(DATA, PADDED | END_STREAM, 1, b"\0test")], id="padded by 0"),
        pytest.param([frame(DATA, PADDED | END_STREAM, 1, b"\xfftest" + bytes(255))], id="padded by 255"),
        pytest.param(
            [frame(DATA, PADDED, 1, b"\x03" + bytes(3)), frame(DATA, END_STREAM, 1, b"test")],
            id="padding alone",
        ),
        pytest.param([frame(DATA, PADDED | END_STREAM, 1, b"\x02test" + b"\xff" * 2)], id="padding not 0"),
    ],
)
async def test_data_is_the_content(data: list[bytes]) -> None:
    """6.1: in any frames, without their padding."""
    assert (await exchange(BEGIN, *data)).body == b"test"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(DATA, END_STREAM, 0, b"x"), id="stream 0"),
        pytest.param(OPEN + frame(DATA, PADDED, 1), id="no pad length"),
        pytest.param(OPEN + frame(DATA, PADDED, 1, b"\x01"), id="pad length without padding"),
        pytest.param(OPEN + frame(DATA, PADDED, 1, b"\x02x"), id="pad length of the payload"),
        pytest.param(OPEN + frame(DATA, PADDED | END_STREAM, 1, b"\xfftest"), id="pad length beyond"),
    ],
)
async def test_malformed_data_is_a_connection_error(sent: bytes) -> None:
    """6.1: PROTOCOL_ERROR."""
    await check_connection_error(sent, PROTOCOL_ERROR)
