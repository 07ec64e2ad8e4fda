"""Everything here holds on the event loop that nodes run on, and on the one that Python has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops on which each test runs."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
