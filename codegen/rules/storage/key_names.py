"""Names of keys as sets of texts: whether two kinds of keys could ever share one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

Symbol = frozenset[str] | None
"""One character out of some; None stands for any text, also an empty one."""
Name = tuple[Symbol, ...]

_HEX = frozenset("0123456789abcdef")
ANY_TEXT: Name = (None,)
UUID: Name = tuple(frozenset("-") if place in (8, 13, 18, 23) else _HEX for place in range(36))


def literal(text: str) -> Name:
    """The one name that a text is."""
    return tuple(frozenset(character) for character in text)


def may_be_equal(one: Sequence[Symbol], other: Sequence[Symbol]) -> bool:
    """Whether some text has both names."""
    for first, second in zip(one, other, strict=False):
        if first is None or second is None:
            break
        if first.isdisjoint(second):
            # Most names differ in their first letters, before anything has to be tried.
            return False

    @cache
    def meet(here: int, there: int) -> bool:
        first = one[here] if here < len(one) else frozenset[str]()
        second = other[there] if there < len(other) else frozenset[str]()
        if first is None:
            return meet(here + 1, there) or (there < len(other) and meet(here, there + 1))
        if second is None:
            return meet(here, there + 1) or (here < len(one) and meet(here + 1, there))
        if here == len(one) or there == len(other):
            return here == len(one) and there == len(other)
        return not first.isdisjoint(second) and meet(here + 1, there + 1)

    return meet(0, 0)
