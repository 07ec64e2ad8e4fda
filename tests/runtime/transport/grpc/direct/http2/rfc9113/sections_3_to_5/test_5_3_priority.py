"""RFC 9113, sections 5.3 and 6.3: priority signals, which are deprecated and have no effect."""

from __future__ import annotations

import struct

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    CLOSED,
    ECHO,
    HALF_CLOSED,
    OPEN,
    check_connection_error,
    check_ignored,
    check_stream_error,
    exchange,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    END_BOTH,
    FRAME_SIZE_ERROR,
    HEADERS,
    PADDED,
    PRIORITY,
    PROTOCOL_ERROR,
    WITH_PRIORITY,
    frame,
)


def priority(dependency: int, weight: int = 15) -> bytes:
    return struct.pack(">LB", dependency, weight)


SIGNALS = {
    "default": priority(0),
    "weight 256": priority(0, 255),
    "dependency": priority(7),
    "exclusive": priority(7 | 1 << 31),
    "itself": priority(1),
}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("state", ["idle", "open", "half-closed", "closed"])
async def test_priority_frames_are_ignored_in_all_states(state: str, signal: str) -> None:
    """5.3.2 and 6.3: also a dependency on itself, which only RFC 7540 forbids."""
    begun = {"idle": b"", "open": OPEN, "half-closed": HALF_CLOSED, "closed": CLOSED}[state]
    await check_ignored(begun + frame(PRIORITY, 0, 1, SIGNALS[signal]))


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("padding", [None, 0, 5])
async def test_the_priority_of_headers_is_ignored(signal: str, padding: int | None) -> None:
    """5.3.2 and 6.2: with and without padding."""
    if padding is None:
        sent = frame(HEADERS, END_BOTH | WITH_PRIORITY, 1, SIGNALS[signal] + ECHO)
    else:
        payload = bytes((padding,)) + SIGNALS[signal] + ECHO + bytes(padding)
        sent = frame(HEADERS, END_BOTH | WITH_PRIORITY | PADDED, 1, payload)
    assert (await exchange(sent)).headers == {b":status": b"200"}


async def test_priority_of_the_connection_is_a_connection_error() -> None:
    """6.3: PROTOCOL_ERROR."""
    await check_connection_error(frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL_ERROR)


@pytest.mark.parametrize("size", [0, 4, 6])
async def test_a_priority_frame_of_another_length_is_a_stream_error(size: int) -> None:
    """6.3: FRAME_SIZE_ERROR."""
    await check_stream_error(OPEN + frame(PRIORITY, 0, 1, bytes(size)), FRAME_SIZE_ERROR)


async def test_a_priority_frame_of_another_length_on_an_idle_stream_is_a_connection_error() -> None:
    """5.4.1 and 6.4: an idle stream cannot be reset, and a stream error may be one of the connection."""
    await check_connection_error(frame(PRIORITY, 0, 1, bytes(4)), FRAME_SIZE_ERROR)
