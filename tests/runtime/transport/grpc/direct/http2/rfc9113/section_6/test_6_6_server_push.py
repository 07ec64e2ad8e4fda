"""RFC 9113, sections 6.6 and 8.4: PUSH_PROMISE, which no client may send."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    CLOSED,
    ECHO,
    HALF_CLOSED,
    OPEN,
    check_connection_error,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    END_HEADERS,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    frame,
)


@pytest.mark.parametrize("before", [b"", OPEN, HALF_CLOSED, CLOSED], ids=["idle", "open", "half", "closed"])
@pytest.mark.parametrize("stream", [0, 1])
async def test_a_push_promise_of_a_client_is_a_connection_error(before: bytes, stream: int) -> None:
    """8.4: PROTOCOL_ERROR, in all states of its stream."""
    promise = frame(PUSH_PROMISE, END_HEADERS, stream, b"\0\0\0\2" + ECHO)
    await check_connection_error(before + promise, PROTOCOL_ERROR)
