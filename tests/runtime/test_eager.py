"""Coroutines that are begun at once: what they are to their caller, to their timeouts and to a cancel."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable

import pytest

from runtime.eager import TimedOut, detached, limited, resumed, within


async def test_work_that_does_not_wait_needs_no_task() -> None:
    """Its result is there at once, and the current task is what it was."""

    async def work() -> int:
        return 7

    before = asyncio.current_task()
    assert detached(work()) == 7
    assert asyncio.current_task() is before


async def test_work_that_fails_at_once_fails_here() -> None:
    """An error before the first wait is raised where the work was begun."""

    async def work() -> None:
        raise ValueError("no")

    before = asyncio.current_task()
    with pytest.raises(ValueError, match="no"):
        detached(work())
    assert asyncio.current_task() is before


async def test_a_timeout_that_was_set_before_the_first_wait_cancels_the_work_and_not_its_caller() -> None:
    """The timeout began while no task was there yet; it ends the task that there is now."""

    async def work() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "waited"

    task = detached(work())
    assert isinstance(task, asyncio.Task)
    assert await task == "timed out"


async def test_work_that_is_cancelled_before_its_task_has_run_hears_of_it() -> None:
    """It tidies up like any other: a busy machine may be so late that a deadline is over by then."""
    told = list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append("cancelled")

    task = detached(work())
    assert isinstance(task, asyncio.Task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == ["cancelled"]


async def test_work_goes_on_when_whoever_began_it_is_canceled() -> None:
    """It has a task of its own as soon as it waits."""
    go, done = asyncio.Event(), list[str]()

    async def work() -> None:
        await go.wait()
        done.append("done")

    async def caller() -> None:
        task = detached(work())
        assert isinstance(task, asyncio.Task)
        await asyncio.shield(task)

    calling = asyncio.create_task(caller())
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    go.set()
    await asyncio.sleep(0.01)
    assert done == ["done"]


async def test_groups_of_tasks_work_within() -> None:
    """A group asks for its parent task before there is one; a failing child still ends the group."""

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("child")

    async def work() -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                group.create_task(asyncio.Event().wait())
        except* ValueError:
            pass
        return "ended"

    task = detached(work())
    assert isinstance(task, asyncio.Task)
    assert await task == "ended"


async def test_a_resumed_coroutine_gets_what_is_thrown_at_it() -> None:
    """A cancel arrives in the coroutine that waits, which may clean up."""
    seen = list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cleaned up")

    begun = work()
    waits_for = begun.send(None)

    async def wait() -> None:
        await resumed(begun, waits_for)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cleaned up"]


async def test_a_limit_is_set_only_for_work_that_waits() -> None:
    """What ends at once needs no clock; what waits is ended by it, within a task of its own too."""

    async def work(seconds: float) -> str:
        if seconds:
            await asyncio.sleep(seconds)
        return "done"

    assert await limited(work(0), 0) == "done"
    assert await limited(work(0.001), 30) == "done"
    with pytest.raises(TimedOut):
        await limited(work(30), 0.01)
    begun = detached(limited(work(30), 0.01))
    assert isinstance(begun, asyncio.Task)
    with pytest.raises(TimedOut):
        await begun


async def test_a_timeout_of_the_work_itself_is_not_the_limit() -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(30)

    async def gives_up() -> None:
        raise TimeoutError

    for work in (impatient, gives_up):
        with pytest.raises(TimeoutError):
            await limited(work(), 30)


async def test_a_cancel_passes_through_a_limit() -> None:
    task = asyncio.create_task(limited(asyncio.Event().wait(), 30))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_task_that_ran_into_a_limit_is_not_left_canceled() -> None:
    """Whoever asks later whether the task is being stopped is told the truth, and it can wait again."""
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(TimedOut):
        await within(asyncio.sleep(30), 0)
    assert task.cancelling() == 0
    assert await within(asyncio.sleep(0, "done"), 30) == "done"


async def test_a_cancel_that_came_before_a_limit_is_a_cancel() -> None:
    """A task that is stopped in the same moment in which its time is over is told that it is stopped."""
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(within(work(), 0))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_work_that_takes_no_notice_of_its_limit_is_heard_out() -> None:
    """What was made after the time was over is an answer all the same."""

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"
        return "never"

    task = asyncio.current_task()
    assert task is not None
    assert await within(stubborn(), 0) == "done"
    assert task.cancelling() == 0


async def test_resumed_work_waits_as_often_as_it_likes() -> None:
    """Also after something was thrown at it that it took no notice of."""
    seen: list[str] = []

    async def work() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        for each in ("second", "third"):
            await asyncio.sleep(0)
            seen.append(each)
        return "done"

    begun = work()
    waits_for = begun.send(None)
    task: asyncio.Task[str] = asyncio.create_task(_waiting(resumed(begun, waits_for)))
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "done"
    assert seen == ["second", "third"]


async def _waiting(resuming: Awaitable[str]) -> str:
    return await resuming
