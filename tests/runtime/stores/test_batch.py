"""Calls that wait at the same moment share a statement, and none of them suffers for another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from runtime.stores.batch import Batch


class Recorder:
    """Doubles numbers, and remembers which came together. Nothing goes on while it is held."""

    def __init__(self) -> None:
        self.together: list[list[int]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, items: Sequence[int]) -> list[int | Exception]:
        self.together.append([*items])
        await self.go.wait()
        return [ValueError("odd") if each % 2 else each * 2 for each in items]


async def test_who_asks_in_the_same_moment_goes_together() -> None:
    run = Recorder()
    batch = Batch(run)
    assert [*await asyncio.gather(batch(2), batch(4), batch(6))] == [4, 8, 12]
    assert run.together == [[2, 4, 6]]


async def test_who_comes_while_a_statement_is_under_way_goes_with_the_next() -> None:
    run = Recorder()
    batch = Batch(run)
    run.go.clear()
    first = asyncio.create_task(batch(2))
    while not run.together:
        await asyncio.sleep(0)
    rest = [asyncio.create_task(batch(number)) for number in (4, 6, 8)]
    await asyncio.sleep(0)
    assert run.together == [[2]]
    run.go.set()
    assert await asyncio.gather(first, *rest) == [4, 8, 12, 16]
    assert run.together == [[2], [4, 6, 8]]


async def test_lanes_are_under_way_side_by_side_and_batches_are_bounded() -> None:
    run = Recorder()
    batch = Batch(run, concurrency=2, max_items=2)
    run.go.clear()
    asked = [asyncio.create_task(batch(2 * number)) for number in range(7)]
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(run.together) <= 2
    run.go.set()
    assert await asyncio.gather(*asked) == [4 * number for number in range(7)]
    assert max(map(len, run.together)) == 2


async def test_an_error_is_told_to_whom_it_concerns() -> None:
    batch = Batch(Recorder())
    fine, odd, also = await asyncio.gather(batch(2), batch(3), batch(4), return_exceptions=True)
    assert (fine, also) == (4, 8)
    assert isinstance(odd, ValueError)


async def test_a_statement_that_fails_is_told_to_all_and_the_next_goes_on() -> None:
    fails = True

    async def run(items: Sequence[int]) -> list[int]:
        if fails:
            raise OSError("gone")
        return [*items]

    batch = Batch(run)
    told = await asyncio.gather(batch(1), batch(2), return_exceptions=True)
    assert [type(each) for each in told] == [OSError, OSError]
    fails = False
    assert await batch(3) == 3


async def test_who_has_gone_before_the_statement_is_left_out() -> None:
    run = Recorder()
    batch = Batch(run)
    run.go.clear()
    first = asyncio.create_task(batch(2))
    while not run.together:
        await asyncio.sleep(0)
    gone, stays = asyncio.create_task(batch(4)), asyncio.create_task(batch(6))
    await asyncio.sleep(0)
    first.cancel()
    gone.cancel()
    await asyncio.gather(first, gone, return_exceptions=True)
    run.go.set()
    assert await stays == 12
    assert run.together == [[2], [6]]


async def test_an_error_nobody_waits_for_is_no_matter() -> None:
    run = Recorder()
    batch = Batch(run)
    run.go.clear()
    asking = asyncio.create_task(batch(3))
    while not run.together:
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    run.go.set()
    assert await batch(2) == 4
