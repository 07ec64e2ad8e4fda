"""What a test asks for: the names that it uses, so that it runs on every engine that has them."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any


def find_asked_names(function: Callable[..., Any]) -> set[str]:
    """Find the names that a test uses, also in the functions of its module that it calls."""
    examples = getattr(function, "hypothesis", None)  # It wraps a test that is run for many examples.
    return _find(function if examples is None else examples.inner_test, set())


def _find(function: Callable[..., Any], seen: set[str]) -> set[str]:
    found: set[str] = set()
    pending: list[CodeType] = [function.__code__]
    while pending:
        code = pending.pop()
        found |= {*code.co_names}
        pending += [each for each in code.co_consts if isinstance(each, CodeType)]
        for name in {*code.co_names} - seen:
            seen.add(name)
            called = function.__globals__.get(name)
            if isinstance(called, FunctionType) and called.__module__ == function.__module__:
                found |= _find(called, seen)
    return found
