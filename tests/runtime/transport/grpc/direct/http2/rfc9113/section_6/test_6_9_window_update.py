"""RFC 9113, section 6.9: WINDOW_UPDATE; blocking by windows is in test_flow_control.py."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    CLOSED,
    OPEN,
    check_connection_error,
    check_ignored,
    check_stream_error,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    INITIAL_WINDOW_SIZE,
    PROTOCOL_ERROR,
    WINDOW_UPDATE,
    frame,
    settings,
    window_update,
)

LARGEST = 2**31 - 1
DEFAULT = 65_535


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(window_update(0, 0), PROTOCOL_ERROR, id="6.9 increment 0"),
        pytest.param(window_update(0, 1 << 31), PROTOCOL_ERROR, id="6.9 reserved bit and increment 0"),
        pytest.param(frame(WINDOW_UPDATE, 0, 0, bytes(3)), FRAME_SIZE_ERROR, id="6.9 3 bytes"),
        pytest.param(frame(WINDOW_UPDATE, 0, 0, bytes(5)), FRAME_SIZE_ERROR, id="6.9 5 bytes"),
        pytest.param(OPEN + frame(WINDOW_UPDATE, 0, 1, bytes(3)), FRAME_SIZE_ERROR, id="6.9 3 on a stream"),
        pytest.param(window_update(0, LARGEST), FLOW_CONTROL_ERROR, id="6.9.1 connection above 2^31-1"),
        pytest.param(
            window_update(0, LARGEST - DEFAULT) + window_update(0, 1),
            FLOW_CONTROL_ERROR,
            id="6.9.1 connection above 2^31-1 in two",
        ),
        pytest.param(
            OPEN + window_update(1, LARGEST - DEFAULT) + settings((INITIAL_WINDOW_SIZE, DEFAULT + 1)),
            FLOW_CONTROL_ERROR,
            id="6.9.2 stream above 2^31-1 by SETTINGS",
        ),
    ],
)
async def test_a_malformed_window_update_is_a_connection_error(sent: bytes, code: int) -> None:
    await check_connection_error(sent, code)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(window_update(1, 0), PROTOCOL_ERROR, id="6.9 increment 0"),
        pytest.param(window_update(1, 1 << 31), PROTOCOL_ERROR, id="6.9 reserved bit and increment 0"),
        pytest.param(window_update(1, LARGEST), FLOW_CONTROL_ERROR, id="6.9.1 above 2^31-1"),
        pytest.param(
            window_update(1, LARGEST - DEFAULT) + window_update(1, 1),
            FLOW_CONTROL_ERROR,
            id="6.9.1 above 2^31-1 in two",
        ),
    ],
)
async def test_a_malformed_window_update_of_a_stream_is_a_stream_error(sent: bytes, code: int) -> None:
    await check_stream_error(OPEN + sent, code)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(window_update(0, 1), id="connection"),
        pytest.param(window_update(0, LARGEST - DEFAULT), id="connection up to 2^31-1"),
        pytest.param(window_update(0, 1 | 1 << 31), id="reserved bit"),
        pytest.param(OPEN + window_update(1, LARGEST - DEFAULT), id="stream up to 2^31-1"),
        pytest.param(CLOSED + window_update(1, LARGEST), id="closed stream"),
    ],
)
async def test_a_valid_window_update_is_accepted(sent: bytes) -> None:
    """6.9 and 6.9.1."""
    await check_ignored(sent)
