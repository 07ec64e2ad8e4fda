"""Differences between two versions of a task."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from handlers.objectqueue.differences import Difference, find_differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def test_each_difference_has_its_path_and_both_values() -> None:
    """Members and elements are compared one by one, and a number is not a truth value."""
    before = {"a": 1, "gone": [1], "in": {"list": [1, 2]}, "same": {"x": None}, "kind": 1}
    after = {"a": 2, "in": {"list": [1, 3, 4]}, "same": {"x": None}, "new": None, "kind": True}
    assert list(find_differences(before, after)) == [
        Difference("a", "changed", 1, 2),
        Difference("gone", "removed", [1], None),
        Difference("in.list[1]", "changed", 2, 3),
        Difference("in.list[2]", "added", None, 4),
        Difference("kind", "changed", 1, True),
        Difference("new", "added", None, None),
    ]


@given(JSON, JSON)
def test_there_is_a_difference_exactly_where_values_differ(one: object, other: object) -> None:
    """Whatever the values are."""
    assert not list(find_differences(one, one))
    alike = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert bool(list(find_differences(one, other))) != alike
