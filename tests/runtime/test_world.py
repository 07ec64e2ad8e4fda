"""Sleep and ids of the world as it is."""

from __future__ import annotations

import asyncio
import time
import uuid

import uvloop

from runtime.model.text import is_uuid, is_uuid4
from runtime.world import RealWorld, ordered_uuids
from tests.support.eventually import wait_until

WORLD = RealWorld()


async def _shortest_sleep(seconds: float) -> float:
    shortest = seconds * 1000
    for _ in range(50):
        began = time.monotonic()
        await WORLD.sleep(seconds)
        shortest = min(shortest, time.monotonic() - began)
    return shortest


def test_no_sleep_is_shorter_than_asked_for() -> None:
    """Also on an event loop whose timers count in whole milliseconds."""
    for loop_factory in (asyncio.new_event_loop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            assert runner.run(_shortest_sleep(0.0034)) >= 0.0034 - 1e-9


def test_ids_are_random_and_keys_begin_with_the_time() -> None:
    """Both are UUIDs as lowercase text, and no two are the same."""
    ids, keys = [WORLD.new_id() for _ in range(1000)], WORLD.new_keys(1000)
    assert all(map(is_uuid4, ids))
    assert all(is_uuid(each) and not is_uuid4(each) for each in keys)
    assert len({*ids, *keys}) == 2000
    found = uuid.UUID(keys[0])
    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    assert abs((found.int >> 80) - time.time_ns() // 1_000_000) < 60_000


def test_later_keys_are_greater() -> None:
    """Within a call and from call to call, as far as the clock advances."""
    keys = [*WORLD.new_keys(16_384)]
    assert keys == sorted(keys)
    made_ms = time.time_ns() // 1_000_000
    wait_until(lambda: time.time_ns() // 1_000_000 > made_ms)
    assert WORLD.new_keys(1)[0] > keys[-1]
    assert WORLD.new_keys(0) == []


def test_a_key_is_made_of_time_number_and_chance() -> None:
    drawn = "0123456789abfedcba987654"
    assert ordered_uuids(0x0123_4567_89AB * 1_000_000 + 999_999, drawn) == [
        "01234567-89ab-7fff-8000-0123456789ab",
        "01234567-89ab-7fff-8001-fedcba987654",
    ]


def test_is_uuid() -> None:
    """Any version in lowercase, and nothing else."""
    assert is_uuid("01234567-89ab-7fff-8000-0123456789ab")
    for text in ("", "01234567-89AB-7fff-8000-0123456789ab", "0123456789ab7fff80000123456789ab", "x" * 36):
        assert not is_uuid(text)
