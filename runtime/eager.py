"""Coroutines that are begun at once, so that a task and a timer are made only for those that have to wait.

Most calls within a process are answered without waiting for anything; a task would cost more than the call.
"""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")


class Carried:
    """Stands for the task that a coroutine gets when it waits; a timeout may ask for it before that."""

    task: asyncio.Task[Any] | None = None

    def cancel(self, msg: object = None) -> bool:
        return self.task is not None and self.task.cancel(msg)

    def done(self) -> bool:
        return self.task is not None and self.task.done()

    def cancelling(self) -> int:
        return self.task.cancelling() if self.task is not None else 0

    def uncancel(self) -> int:
        return self.task.uncancel() if self.task is not None else 0


def detached(work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result] | Result:
    """Runs a coroutine apart from the current task: its result, or its task if it has to wait."""
    loop, carried = asyncio.get_running_loop(), Carried()
    outer = _swapped(loop, carried)
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    finally:
        _swapped(loop, outer)
    carried.task = loop.create_task(_Begun(work, waits_for))
    return carried.task


async def limited(work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    """Awaits a coroutine for so long at most; the clock is set only if it has to wait.

    Raises `TimedOut` where the time was over, and whatever the coroutine raises, be it a TimeoutError.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    return await within(resumed(work, waits_for), seconds)


async def within(waiting: Awaitable[Result], seconds: float) -> Result:
    """Awaits something for so long at most, like `asyncio.timeout` in a fifth of its calls.

    Raises `TimedOut` where the time was over, and whatever it is that it awaits raises, be it a TimeoutError.
    """
    loop = asyncio.get_running_loop()
    task: Any = asyncio.current_task(loop)
    canceled_before = task.cancelling()
    expiry = _Expiry(task)
    timer = loop.call_later(seconds, expiry)
    try:
        return await waiting
    except asyncio.CancelledError:
        if expiry.over and task.cancelling() <= canceled_before + 1:
            raise TimedOut from None
        raise
    finally:
        timer.cancel()
        if expiry.over:
            task.uncancel()


class _Expiry:
    """Cancels a task when its time is over."""

    __slots__ = ("over", "task")

    def __init__(self, task: Any) -> None:
        self.task = task
        self.over = False

    def __call__(self) -> None:
        self.over = True
        self.task.cancel()


class TimedOut(Exception):
    """Something took longer than it may."""


@types.coroutine
def resumed(begun: Coroutine[Any, Any, Result], waits_for: Any) -> Generator[Any, Any, Result]:
    """Goes on with a coroutine that has already run until it had to wait for something."""
    while True:
        try:
            yield waits_for
        except BaseException as thrown:
            step = partial(begun.throw, thrown)
        else:
            # Not the coroutine itself, which nobody may await once it has begun.
            return (yield from begun.__await__())
        try:
            waits_for = step()
        except StopIteration as done:
            result: Result = done.value
            return result


class _Begun(Coroutine[Any, Any, Result]):
    """A coroutine that has already run until it had to wait for something, for a task to go on with.

    A task may be cancelled before its first step. What has not begun would never hear of that.
    """

    __slots__ = ("_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, Result], waits_for: Any) -> None:
        self._work = work
        self._waits_for = [waits_for]

    def send(self, value: Any) -> Any:
        return self._waits_for.pop() if self._waits_for else self._work.send(value)

    def throw(self, *thrown: Any) -> Any:
        self._waits_for.clear()
        return self._work.throw(*thrown)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Result]:
        return (yield from resumed(self._work, self._waits_for.pop()))


if sys.version_info >= (3, 12):
    _swapped: Callable[[asyncio.AbstractEventLoop, Any], Any] = asyncio.tasks._swap_current_task
else:
    _current: dict[asyncio.AbstractEventLoop, Any] = asyncio.tasks._current_tasks  # type: ignore[attr-defined]

    def _swapped(loop: asyncio.AbstractEventLoop, enters: Any) -> Any:
        """Changes which task is the current one, as whoever has a timeout asks for it; the one before."""
        leaves = _current.get(loop)
        if enters is None:
            del _current[loop]
        else:
            _current[loop] = enters
        return leaves
