"""What differs between two values of JSON, by path: added, removed or changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One place where two values differ. What was not there before, or is not there after, is None."""

    path: str
    kind: str
    before: Any
    after: Any


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Every place where they differ, in the order in which the members stand."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(each for each in after if each not in before)]:
            place = f"{path}.{name}" if path else name
            yield from _inside(before, after, name, name in before, name in after, place)
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            there = place < len(before), place < len(after)
            yield from _inside(before, after, place, *there, f"{path}[{place}]")
    elif type(before) is not type(after) or before != after:
        yield Difference(path, "changed", before, after)


def _inside(before: Any, after: Any, at: Any, was: bool, remains: bool, path: str) -> Iterator[Difference]:
    if was and remains:
        yield from differences(before[at], after[at], path)
    elif was:
        yield Difference(path, "removed", before[at], None)
    else:
        yield Difference(path, "added", None, after[at])
