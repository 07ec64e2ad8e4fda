"""Coroutines without an event loop."""

from __future__ import annotations

import asyncio

import pytest

from runtime.call.blocking import NeedsLoop, run_on_new_loop, run_without_loop


async def _gives(value: int) -> int:
    return value


async def _fails() -> int:
    raise LookupError("no")


def test_what_does_not_wait_is_finished_at_once() -> None:
    assert run_without_loop(_gives(3)) == 3
    with pytest.raises(LookupError, match="no"):
        run_without_loop(_fails())


def test_what_waits_is_ended_and_said_to_need_a_loop() -> None:
    """It can tidy up, and is named."""
    seen = []

    async def waits() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            seen.append("ended")

    with pytest.raises(NeedsLoop, match="waits"):
        run_without_loop(waits())
    assert seen == ["ended"]


async def test_what_waits_can_be_given_a_loop() -> None:
    """Also where another one runs, which stands still meanwhile."""

    async def waits() -> int:
        await asyncio.sleep(0)
        return await _gives(4)

    assert run_on_new_loop(waits) == 4
    with pytest.raises(LookupError, match="no"):
        run_on_new_loop(_fails)
