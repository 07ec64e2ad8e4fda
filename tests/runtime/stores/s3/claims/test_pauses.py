"""How long a worker that found nothing waits before it looks again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.runtime.stores.s3.conftest import Make


@pytest.mark.req("OQ-098", "OQ-099")
async def test_pauses_grow_until_something_is_found(process: Make) -> None:
    one = process()
    one.world.slept.clear()
    for _ in range(9):
        assert await one.take() == []
        assert await one.tasks.wait(60)
    assert one.world.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    await one.submit()
    assert len(await one.take()) == 1
    one.world.slept.clear()
    assert await one.tasks.wait(60)
    assert one.world.slept == []
    assert await one.take() == []
    assert await one.tasks.wait(60)
    assert one.world.slept == [0.1]


async def test_a_pause_ends_when_something_is_due(process: Make) -> None:
    """Whether it is due within the minute, or in a later one that was seen in the index."""
    one = process(QO_INDEX_MODE="index-only")
    one.world.stands_at_ms = one.world.now_ms()
    one.world.ahead_ms = 60_000 - one.world.now_ms() % 60_000
    await one.submit(available_at=one.tasks._context.now() + timedelta(seconds=63))
    for _ in range(7):
        assert await one.take() == []
        await one.tasks.wait(60)
    one.world.ahead_ms += 58_500
    assert await one.take() == []
    one.world.slept.clear()
    await one.tasks.wait(60)
    assert 0 < one.world.slept[0] <= 1.5
    one.world.ahead_ms += 3_000
    assert await one.take() == []
    one.world.slept.clear()
    await one.tasks.wait(60)
    assert 0 < one.world.slept[0] <= 1.5
