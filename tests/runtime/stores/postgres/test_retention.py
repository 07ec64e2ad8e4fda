"""When a store looks for what has ended: not at every access, and never too late."""

from __future__ import annotations

from runtime.stores.postgres.retention import Retention


def test_nothing_is_looked_for_without_a_bound() -> None:
    retention = Retention(None, 0)
    assert [retention.is_due(now) for now in (0, 10**12)] == [False, False]


def test_it_looks_again_when_the_next_is_due() -> None:
    """The next one is the first that was there, or one that ended right after the look."""
    retention = Retention(10.0, 0)
    assert retention.is_due(1000)
    retention.note_sweep(1000, 4.0)
    assert [retention.is_due(now) for now in (1001, 4999, 5000)] == [False, False, True]
    for left_s in (None, 60.0):
        retention.note_sweep(5000, left_s)
        assert [retention.is_due(now) for now in (14_999, 15_000)] == [False, True]


def test_it_looks_at_once_when_the_clock_was_put_back() -> None:
    retention = Retention(10.0, 0)
    retention.note_sweep(9000, None)
    assert [retention.is_due(now) for now in (9000, 8999)] == [False, True]


def test_a_number_is_passed_by_no_more_than_a_hundredth() -> None:
    """A small one is never passed by: each access looks."""
    few, many = Retention(None, 3), Retention(None, 1000)
    for retention in (few, many):
        retention.note_sweep(0, None)
    assert [few.is_due(0) for _ in range(2)] == [True, True]
    assert [many.is_due(0) for _ in range(11)] == [*[False] * 10, True]
