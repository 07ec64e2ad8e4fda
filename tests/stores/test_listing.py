"""The ordered index against the obvious way to do it: sort everything, then cut."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sortedcontainers import SortedList

from runtime.stores.memory.listing import MemoryListing
from runtime.stores.steps.table import ListingSpan

STATES = (1, 2, 3, 4)
ENTRIES = st.lists(
    st.tuples(st.sampled_from(STATES), st.integers(0, 4) | st.integers(), st.text("abc", min_size=1)),
    max_size=40,
    unique_by=lambda entry: entry[2],
)


def listing_of(entries: list[tuple[int, int, str]]) -> MemoryListing:
    listing = MemoryListing()
    for state, at, key in entries:
        listing.add(state, at, key)
    return listing


def page_of(
    listing: MemoryListing, states: Collection[int], offset: int, size: int, *, newest_first: bool
) -> tuple[list[str], bool]:
    """The keys of a page, and whether there is more after it."""
    entries = islice(listing.iterate(states, offset, newest_first=newest_first), size + 1)
    keys = [key for _, key in entries]
    return keys[:size], len(keys) > size


def naive(entries: list[tuple[int, int, str]], states: set[int], *, newest_first: bool) -> list[str]:
    wanted = [(at, key) for state, at, key in entries if not states or state in states]
    return [
        key for at, key in sorted(wanted, key=lambda each: (-each[0] if newest_first else each[0], each[1]))
    ]


@pytest.mark.req("TQ-125", "TQ-127", "TQ-128", "TQ-130")
@given(
    entries=ENTRIES,
    states=st.sets(st.sampled_from((*STATES, 9))),
    offset=st.integers(0, 50),
    size=st.integers(1, 45),
    newest_first=st.booleans(),
)
def test_a_page_is_what_sorting_would_give(
    entries: list[tuple[int, int, str]], states: set[int], offset: int, size: int, newest_first: bool
) -> None:
    """Any filter, direction, offset and size gives that part of the sorted whole, ties by key ascending."""
    whole = naive(entries, states, newest_first=newest_first)
    keys, more = page_of(listing_of(entries), states, offset, size, newest_first=newest_first)
    assert keys == whole[offset : offset + size]
    assert more == (len(whole) > offset + size)


@given(
    entries=ENTRIES,
    newest_first=st.booleans(),
    since=st.none() | st.integers(0, 5),
    until=st.none() | st.integers(0, 5),
    after=st.none() | st.tuples(st.integers(-1, 5), st.text("abc", max_size=2)),
)
def test_a_span_is_what_filtering_would_give(
    entries: list[tuple[int, int, str]],
    newest_first: bool,
    since: int | None,
    until: int | None,
    after: tuple[int, str] | None,
) -> None:
    """Any range of times and any cursor, in both directions, gives that part of the sorted whole."""
    span = ListingSpan(since, until, after)
    found = [*listing_of(entries).iterate((), 0, newest_first=newest_first, span=span)]
    sign = -1 if newest_first else 1
    wanted = sorted((sign * at, key) for _, at, key in entries)
    assert [(sign * at, key) for at, key in found] == [
        (at, key)
        for at, key in wanted
        if (since is None or sign * at >= since)
        and (until is None or sign * at < until)
        and (after is None or (at, key) > (sign * after[0], after[1]))
    ]


@pytest.mark.req("TQ-125")
@given(
    entries=ENTRIES,
    steps=st.lists(st.tuples(st.integers(0, 99), st.sampled_from((*STATES, 0)))),
    noted=st.sampled_from((1, 3, 512)),
)
def test_an_index_that_was_changed_is_that_of_what_is_left(
    entries: list[tuple[int, int, str]], steps: list[tuple[int, int]], noted: int
) -> None:
    """Moving and removing entries leaves the index as if only the rest had ever been added.

    That holds however many changes are noted before they are put in their places.
    """
    with patch("runtime.stores.memory.listing._MOST_NOTED", noted):
        listing, left = changed(listing_of(entries), list(entries), steps)
    for state in STATES:
        times = [at for held, at, _ in left if held == state]
        assert listing.count(state) == len(times)
        assert listing.oldest(state) == min(times, default=None)
    keys, more = page_of(listing, (), 0, 100, newest_first=True)
    assert (keys, more) == (naive(left, set(), newest_first=True), False)


def changed(
    listing: MemoryListing, left: list[tuple[int, int, str]], steps: list[tuple[int, int]]
) -> tuple[MemoryListing, list[tuple[int, int, str]]]:
    """Moves and removes entries step by step, in the listing and in the list of what it holds."""
    for place, target in steps:
        if left:
            state, at, key = left.pop(place % len(left))
            if target:
                later = at + place % 3
                listing.move(state, at, target, later, key)
                left.append((target, later, key))
            else:
                listing.remove(state, at, key)
    return listing, left


def test_an_offset_far_past_the_end_is_an_empty_page() -> None:
    """The largest offset that a token can say costs nothing and finds nothing."""
    assert page_of(listing_of([(1, 1, "a")]), (), 2**63 - 1, 200, newest_first=True) == ([], False)


class CountedList(SortedList[Any]):
    """A list that counts how often it is looked into."""

    looks = 0

    def __getitem__(self, position: Any) -> Any:
        CountedList.looks += 1
        return super().__getitem__(position)


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_page_deep_inside_looks_at_little_more_than_itself(
    newest_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work of a page grows with the page, not with what is held before or behind it."""
    monkeypatch.setattr("runtime.stores.memory.listing.SortedList", CountedList)
    looks = {}
    for held in (1_000, 30_000):
        listing = listing_of([(number % 3, number // 5, f"{number:06d}") for number in range(held)])
        CountedList.looks = 0
        keys, more = page_of(listing, (), held // 2, 50, newest_first=newest_first)
        assert len(keys) == 50 and more
        looks[held] = CountedList.looks
    assert looks[30_000] < 2 * looks[1_000] < 2_000
