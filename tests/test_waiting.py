"""Waiting in tests: polling for a condition with a timeout, and never for a fixed time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.eventually import eventually, wait_until

TESTS = Path(__file__).parent
ABOUT_TIME = {
    "test_a_process_that_was_suspended_blames_no_function": "nothing runs for a while, which is the subject",
    "test_a_worker_survives_an_outage": "how often and how much it works is measured over the outage",
    "test_waiting": "a wait goes on until something happens; in virtual time where the engine can",
    "test_waiting_ends_with_work": "the same",
}
"""Tests that sleep because they are about a duration."""


def find_fixed_sleeps(node: ast.AST, *, repeated: bool = False) -> Iterator[ast.Call]:
    """Find the calls of a test that sleep, except for turns of the loop and pauses between polls."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="asyncio" | "time"), attr="sleep"), args=[length]
            ):
                if not repeated and not (isinstance(length, ast.Constant) and length.value == 0):
                    yield child
        yield from find_fixed_sleeps(child, repeated=repeated or isinstance(child, ast.For | ast.While))


def list_tests_in_real_time(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """List the tests of a module that may sleep at all, except those in virtual time."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body if ".sleep(" in text else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            decorated = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
            if "in_virtual_time" not in decorated:
                yield node


def test_no_test_sleeps_for_a_fixed_time() -> None:
    """On a busy machine no fixed time is long enough, so tests poll for the condition."""
    sleepers = {
        test.name: f"{path.relative_to(TESTS)}:{call.lineno}"
        for path in TESTS.rglob("test_*.py")
        for test in list_tests_in_real_time(path)
        for call in find_fixed_sleeps(test)
    }
    assert {name: where for name, where in sleepers.items() if name not in ABOUT_TIME} == {}
    assert sleepers.keys() >= ABOUT_TIME.keys()


async def test_the_awaited_value_is_returned() -> None:
    """With a plain function, with a coroutine function, and without an event loop."""
    plain, awaited, blocking = (iter(range(10)) for _ in range(3))

    async def look() -> int:
        return next(awaited)

    assert await eventually(lambda: next(plain), wanted=lambda seen: seen == 3) == 3
    assert await eventually(look, wanted=lambda seen: seen == 4) == 4
    assert wait_until(lambda: next(blocking), wanted=lambda seen: seen == 5) == 5


async def test_a_timeout_has_the_last_value() -> None:
    """There is one poll at least, however short the timeout."""
    with pytest.raises(AssertionError, match=r"^waited in vain: it is there; last seen: \[\]$"):
        await eventually(list, "it is there", patience=0)
    with pytest.raises(AssertionError, match=r"^waited in vain: it is there; last seen: \[\]$"):
        wait_until(list, "it is there", patience=0)
