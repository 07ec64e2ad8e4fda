"""Run every test on uvloop, which nodes use, and on the event loop of asyncio; make timeouts long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from runtime.transport import tls_listener
from runtime.transport.grpc.direct.http2 import keepalive, server_connection
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops on which each test runs."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that a busy machine delays is not aborted; a test that wants that sets the timeout itself."""
    monkeypatch.setattr(keepalive, "_GRACE_S", PATIENCE_S)
    monkeypatch.setattr(server_connection, "_DRAIN_S", PATIENCE_S)
    monkeypatch.setattr(tls_listener, "_HANDSHAKE_SECONDS", PATIENCE_S)
