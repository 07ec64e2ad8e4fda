"""Run tests on uvloop, which nodes use, and on the event loop of asyncio; make timeouts long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from runtime.transport import tls_listener
from runtime.transport.grpc.direct.http2 import keepalive, server_connection
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S

PROTOCOL = {"fuzz", "hpack", "rfc9113"}
"""Folders with tests of what is read and written, whatever loop does it."""


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops on which each test runs: both, but those of the protocol alone on uvloop, unless `--deep`."""
    of_nodes: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"uvloop": uvloop.new_event_loop}
    if not config.getoption("--deep") and not PROTOCOL.isdisjoint(item.path.parts):
        return of_nodes
    return {"asyncio": asyncio.new_event_loop, **of_nodes}


@pytest.fixture(autouse=True)
def long_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that a busy machine delays is not aborted; a test that wants that sets the timeout itself."""
    monkeypatch.setattr(keepalive, "_GRACE_S", PATIENCE_S)
    monkeypatch.setattr(server_connection, "_DRAIN_S", PATIENCE_S)
    monkeypatch.setattr(tls_listener, "_HANDSHAKE_SECONDS", PATIENCE_S)
