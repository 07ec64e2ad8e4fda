"""RFC 9113, sections 4.1 and 4.2: frame format and frame size."""

from __future__ import annotations

import struct

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    ECHO,
    OPEN,
    check_connection_error,
    check_ignored,
    exchange,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    DATA,
    END_BOTH,
    END_HEADERS,
    END_STREAM,
    FRAME_SIZE_ERROR,
    HEADERS,
    PING,
    PRIORITY,
    SETTINGS,
    frame,
)

LARGEST = 2**14


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(0x0A, 0xFF, 7, b"x" * 100), id="4.1 unknown type"),
        pytest.param(frame(0xFF), id="4.1 last type"),
        pytest.param(frame(0x16, 0, 0, bytes(LARGEST)), id="4.2 unknown type of 2^14 bytes"),
        pytest.param(frame(PING, 0xFE, 0, bytes(8)), id="4.1 undefined flags of PING"),
        pytest.param(frame(SETTINGS, 0xFE, 0), id="4.1 undefined flags of SETTINGS"),
        pytest.param(frame(PING, 0, 1 << 31, bytes(8)), id="4.1 reserved bit of PING"),
        pytest.param(
            frame(PRIORITY, 0xFF, 9 | 1 << 31, bytes(5)), id="4.1 flags and reserved bit of PRIORITY"
        ),
    ],
)
async def test_undefined_flags_are_ignored(sent: bytes) -> None:
    await check_ignored(sent)


async def test_undefined_flags_and_the_reserved_bit_of_a_request_are_ignored() -> None:
    """4.1."""
    response = await exchange(frame(HEADERS, END_BOTH | 0x42, 1 | 1 << 31, ECHO))
    assert response.headers == {b":status": b"200"}


@pytest.mark.parametrize("size", [0, 1, LARGEST - 1, LARGEST])
async def test_a_data_frame_may_have_16384_bytes(size: int) -> None:
    """4.2."""
    sent = frame(HEADERS, END_HEADERS, 1, ECHO) + frame(DATA, END_STREAM, 1, b"x" * size)
    assert len((await exchange(sent)).body) == size


@pytest.mark.parametrize("kind", [DATA, HEADERS, SETTINGS, 0x16])
async def test_a_larger_frame_is_a_connection_error(kind: int) -> None:
    """4.2: FRAME_SIZE_ERROR, by its header alone."""
    header = struct.pack(">LBL", (LARGEST + 1) << 8 | kind, 0, 0 if kind == SETTINGS else 1)
    await check_connection_error(OPEN + header, FRAME_SIZE_ERROR)
