"""The differences between two JSON values by path: added, removed or changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One path at which two values differ. A value that does not exist before or after is None."""

    path: str
    kind: str
    before: Any
    after: Any


def find_differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Find every path at which two values differ, in the order of their members."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(each for each in after if each not in before)]:
            member = f"{path}.{name}" if path else name
            yield from _compare_member(before, after, name, name in before, name in after, member)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            is_in = index < len(before), index < len(after)
            yield from _compare_member(before, after, index, *is_in, f"{path}[{index}]")
    elif type(before) is not type(after) or before != after:
        yield Difference(path, "changed", before, after)


def _compare_member(
    before: Any, after: Any, key: Any, is_in_before: bool, is_in_after: bool, path: str
) -> Iterator[Difference]:
    if is_in_before and is_in_after:
        yield from find_differences(before[key], after[key], path)
    elif is_in_before:
        yield Difference(path, "removed", before[key], None)
    else:
        yield Difference(path, "added", None, after[key])
