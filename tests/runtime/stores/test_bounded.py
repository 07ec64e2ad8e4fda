"""The map that forgets: oldest first, and never what was just put in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.stores.bounded import BoundedMap


@pytest.mark.req("TQ-110", "CH-23")
def test_the_oldest_goes_first() -> None:
    """Beyond the bound the entry that was added first is forgotten, and reading it does not save it."""
    held: BoundedMap[int] = BoundedMap(3)
    for number, key in enumerate("abc"):
        held.add(key, number)
    assert held.get("a") == 0
    held.add("d", 3)
    assert (len(held), held.get("a"), held.get("b")) == (3, None, 1)


@pytest.mark.req("CH-72")
def test_weight_counts_instead_of_number() -> None:
    """With weights, as many of the oldest go as it takes."""
    held: BoundedMap[bytes] = BoundedMap(10, weigh=len)
    for key, size in (("a", 4), ("b", 4), ("c", 9)):
        held.add(key, b"x" * size)
    assert (len(held), held.weight, held.get("c")) == (1, 9, b"x" * 9)


@pytest.mark.req("CH-72")
def test_an_entry_above_the_bound_is_kept_until_the_next_comes() -> None:
    """What is heavier than the bound is held all the same, alone."""
    held: BoundedMap[bytes] = BoundedMap(3, weigh=len)
    held.add("a", b"12345")
    assert held.get("a") == b"12345"
    held.add("b", b"1")
    assert (held.get("a"), held.weight) == (None, 1)


def test_a_bound_of_zero_keeps_everything() -> None:
    """Zero is no bound."""
    held: BoundedMap[int] = BoundedMap(0)
    for number in range(5_000):
        held.add(str(number), number)
    assert len(held) == 5_000


def test_a_key_is_added_once() -> None:
    """Adding a key that is held is a mistake of the caller."""
    held: BoundedMap[int] = BoundedMap(3)
    held.add("a", 1)
    with pytest.raises(KeyError, match="held already"):
        held.add("a", 2)


@pytest.mark.req("CH-15")
def test_a_key_that_was_removed_is_new_again() -> None:
    """A removed key may be added again, as the youngest."""
    held: BoundedMap[int] = BoundedMap(2)
    held.add("a", 1)
    held.add("b", 2)
    held.remove("a")
    held.remove("never there")
    held.add("a", 3)
    held.add("c", 4)
    assert (held.get("a"), held.get("b")) == (3, None)


@given(
    bound=st.integers(0, 30),
    sizes=st.lists(st.integers(0, 12), max_size=40),
    gone=st.sets(st.integers(0, 39)),
)
def test_weight_is_the_sum_of_what_is_held(bound: int, sizes: list[int], gone: set[int]) -> None:
    """Whatever is added and removed, the weight is that of the rest, and within the bound if it can be."""
    held: BoundedMap[bytes] = BoundedMap(bound, weigh=len)
    for number, size in enumerate(sizes):
        held.add(str(number), b"x" * size)
        if number in gone:
            held.remove(str(number - 1))
    rest = [value for number in range(len(sizes)) if (value := held.get(str(number))) is not None]
    assert held.weight == sum(map(len, rest))
    assert len(held) == len(rest)
    assert not bound or held.weight <= bound or len(held) == 1
