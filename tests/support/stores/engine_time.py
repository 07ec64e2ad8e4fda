"""The time of an engine: virtual where it has neither sockets nor threads, and real, but short, elsewhere."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

from tests.runtime.virtual_time import in_virtual_time
from tests.support.stores.engines import close_opened

_VIRTUAL = frozenset({"memory", "json"})


def tick_s(engine: str) -> float:
    """A while that is long for an engine, and not for whoever runs the test."""
    return 1.0 if engine in _VIRTUAL else 0.2


async def _run_connected(test: Callable[..., Coroutine[Any, Any, None]], given: dict[str, Any]) -> None:
    try:
        await test(**given)
    finally:
        await close_opened()


def in_time_of_engine(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that has the name of its engine as `engine`."""
    virtual = in_virtual_time(test)

    @functools.wraps(test)
    def run(**given: Any) -> None:
        if given["engine"] in _VIRTUAL:
            virtual(**given)
        else:
            asyncio.run(_run_connected(test, given))

    return run
