"""Each test of the contract runs with every carrier on every side, on the event loop that nodes run on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

import grpc.aio
import pytest
import uvloop

from runtime.transport.grpc.carrier import CARRIERS
from tests.runtime.transport.grpc.contract.support.carriers import ALL_SIDES, Sides

# As the carrier does: when its last channel is gone the library may wait for its thread for ever.
grpc.aio.init_grpc_aio()


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop on which each test runs."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(params=ALL_SIDES, ids=str)
def sides(request: pytest.FixtureRequest) -> Sides:
    """A carrier of the server and one of the client, in all combinations."""
    chosen: Sides = request.param
    return chosen


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest) -> str:
    """A carrier of one side, where gRPC's own library is the other."""
    chosen: str = request.param
    return chosen


@pytest.fixture(autouse=True)
def is_quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No library writes of what callers do: the log of the node has it. No task fails unheard."""
    caplog.set_level(logging.WARNING)
    yield
    assert [record.getMessage() for record in caplog.records] == []
