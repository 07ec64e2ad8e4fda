"""RFC 9113, section 6.4: RST_STREAM."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    OPEN,
    check_connection_error,
    check_ignored,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    FRAME_SIZE_ERROR,
    NO_ERROR,
    PROTOCOL_ERROR,
    RST_STREAM,
    frame,
    rst_stream,
)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(rst_stream(0), PROTOCOL_ERROR, id="stream 0"),
        pytest.param(OPEN + frame(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR, id="3 bytes"),
        pytest.param(OPEN + frame(RST_STREAM, 0, 1, bytes(5)), FRAME_SIZE_ERROR, id="5 bytes"),
        pytest.param(OPEN + frame(RST_STREAM, 0, 1), FRAME_SIZE_ERROR, id="no bytes"),
    ],
)
async def test_a_malformed_reset_is_a_connection_error(sent: bytes, code: int) -> None:
    await check_connection_error(sent, code)


@pytest.mark.parametrize("code", range(NO_ERROR, 14))
async def test_a_reset_ends_its_stream_only(code: int) -> None:
    """6.4: with any code."""
    await check_ignored(OPEN + rst_stream(1, code))
