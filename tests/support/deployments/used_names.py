"""The names that a test uses, which tell the deployments that it can be run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def iter_used_names(function: Callable[..., Any]) -> Iterator[str]:
    """Iterate over the names that a test uses, also in the functions of its module that it calls."""
    examples = getattr(function, "hypothesis", None)
    return _iter_names(function if examples is None else examples.inner_test, set())


def _iter_names(function: Callable[..., Any], seen: set[str]) -> Iterator[str]:
    pending: list[CodeType] = [function.__code__]
    while pending:
        code = pending.pop()
        yield from code.co_names
        pending += [each for each in code.co_consts if isinstance(each, CodeType)]
        for name in {*code.co_names} - seen:
            seen.add(name)
            called = function.__globals__.get(name)
            if isinstance(called, FunctionType) and called.__module__ == function.__module__:
                yield from _iter_names(called, seen)
