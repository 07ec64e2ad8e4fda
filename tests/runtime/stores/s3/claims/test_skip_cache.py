"""What a process remembers of the lines that it need not look at again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runtime.stores.s3.claims.skip_cache import SkipCache
from runtime.stores.s3.client.objects import ListedObject

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def line(key: str, etag: str = "1") -> ListedObject:
    return ListedObject(key, etag, 1, NOW)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_one_is_passed_by_while_its_etag_and_its_time_last() -> None:
    passed = SkipCache()
    passed.add(line("a"))
    passed.add(line("b"), after(5))
    assert passed.has(line("a"), after(100)) and passed.has(line("b"), after(4))
    assert not passed.has(line("a", "2"), NOW)
    assert not passed.has(line("b"), after(5))
    assert not passed.has(line("c"), NOW)


def test_the_first_time_that_is_to_come_is_known() -> None:
    """Those that are over, that have moved, or whose line waits no more do not count."""
    passed = SkipCache()
    assert passed.next_after(NOW) is None
    for key, seconds in (("a", 30), ("b", 10), ("c", 20), ("d", 40)):
        passed.add(line(key), after(seconds))
    assert passed.next_after(NOW) == after(10)
    passed.add(line("b", "2"), after(35))
    assert passed.next_after(NOW) == after(20)
    passed.add(line("c", "2"))
    assert passed.next_after(NOW) == after(30)
    assert passed.next_after(after(30)) == after(35)
    assert passed.next_after(after(40)) is None


def test_times_that_move_again_and_again_take_no_room() -> None:
    passed = SkipCache()
    for number in range(10_000):
        passed.add(line("a", str(number)), after(number + 1))
        passed.add(line("b"), after(20_000))
    assert passed.next_after(NOW) == after(10_000)
    assert len(passed._times) < 100


def test_what_was_remembered_first_is_forgotten_first() -> None:
    passed = SkipCache()
    for number in range(100_001):
        passed.note(str(number), "1", after(number + 1))
    assert not passed.has(line("0"), NOW) and passed.has(line("1"), NOW)
    assert passed.next_after(NOW) == after(2)
