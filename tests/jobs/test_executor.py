"""Executor of job functions: plain ones run in processes that end with their run, async ones on a loop."""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handlers.jobs import Job, find
from handlers.jobs import job_loop as module
from handlers.jobs.executor import Executor, FailureReasons, RunResult, run
from handlers.jobs.loader import load
from handlers.jobs.registry import JobRaised, RegisteredFunction
from runtime.call import Call
from runtime.observe.log import Log
from runtime.world import RealWorld
from tests.runtime.hand_world import HandWorld, Lines
from tests.support.eventually import eventually
from tests.support.jobs.pids import is_running

MODULE = "tests.support.jobs.functions"
FUNCTIONS = load(MODULE)
FREE: threading.Event = importlib.import_module(MODULE).FREE
REASONS = FailureReasons("TIMED_OUT", "RESULT_NOT_JSON")
WORLD = RealWorld()


class ExecutorBench:
    """An executor, and the lines of its log."""

    def __init__(self, execute: Executor, lines: Lines) -> None:
        self.execute = execute
        self.lines = lines

    def start(self, job_type: str, payload: Any = None, **more: Any) -> asyncio.Task[Any]:
        """Start a function; return its result."""
        return asyncio.create_task(self._value(job_type, payload, more))

    async def _value(self, job_type: str, payload: Any, more: Mapping[str, Any]) -> Any:
        output = await self.execute(FUNCTIONS[job_type], create_job(job_type, payload, **more))
        return output.value

    def read_events(self, event: str) -> list[str]:
        return [line["message"] for line in self.lines.read_back(event)]


def create_job(job_type: str, payload: Any = None, **more: Any) -> Job:
    return Job("an id", job_type, WORLD, payload=payload, **more)


@pytest.fixture
async def scene() -> AsyncIterator[ExecutorBench]:
    lines = Lines()
    call = Call(world=WORLD, log=Log("test", "INFO", WORLD, lines), caller="worker")
    async with Executor(MODULE, call, asyncio.Event()) as execute:
        yield ExecutorBench(execute, lines)


@pytest.fixture(autouse=True)
def _freed() -> Iterator[None]:
    """What blocks or waits in this process ends with the test."""
    FREE.clear()
    yield
    FREE.set()


async def test_a_plain_function_has_ended_when_its_run_has(scene: ExecutorBench, tmp_path: Path) -> None:
    """However it is stopped: nothing of it goes on that the next run could meet."""
    mark = tmp_path / "pid"
    running = scene.start("tried stuck", str(mark))
    pid = int(await eventually(lambda: mark.exists() and mark.read_text()))
    assert is_running(pid)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_running(pid)


async def test_a_plain_function_is_ended_at_its_limit(scene: ExecutorBench, tmp_path: Path) -> None:
    """The process is gone by the time that the attempt can be settled."""
    mark, seconds = tmp_path / "pid", 0.25
    while not mark.exists():  # A busy machine may not have begun it by then.
        seconds *= 2
        ran = await run(
            FUNCTIONS["tried stuck"], create_job("tried stuck", str(mark)), seconds, REASONS, scene.execute
        )
        assert ran == RunResult(error=f"TIMED_OUT: it took longer than {seconds:g} s")
    if text := mark.read_text():
        assert not is_running(int(text))


async def test_a_plain_function_returns_or_raises(scene: ExecutorBench) -> None:
    """Its process is used again, no bytes are no bytes, and an error arrives by its name."""
    assert await scene.start("tried pid") == await scene.start("tried pid")
    output = await scene.execute(FUNCTIONS["tried bytes"], create_job("tried bytes"))
    assert (output.content, output.summary) == (b"", "nothing")
    with pytest.raises(JobRaised, match="KeyError: 'lost'"):
        await scene.start("tried wrong")


async def test_async_functions_run_apart_from_the_worker(scene: ExecutorBench) -> None:
    """All on one loop, which is not that of the caller; their reports arrive here."""
    heard = list[int]()

    async def report(progress: Mapping[str, Any]) -> None:
        heard.extend([progress["from"], threading.get_ident()])

    ident = await scene.start("tried ident")
    assert await scene.start("tried report", report=report) == "told"
    assert heard == [ident, threading.get_ident()] and ident != threading.get_ident()


async def test_built_in_functions_stay_with_the_worker(scene: ExecutorBench) -> None:
    """It never blocks; where time is simulated nothing else runs apart either."""
    echo = find("echo")
    assert echo is not None and echo.is_built_in
    started = {*threading.enumerate()}
    assert (await scene.execute(echo, create_job("echo", [1]))).value == [1]
    # Threads of earlier tests may end meanwhile.
    assert {*threading.enumerate()} <= started
    world = HandWorld()
    call = Call(world=world, log=Log("test", "INFO", world, Lines()), caller="worker")
    async with Executor(MODULE, call, asyncio.Event()) as execute:
        output = await execute(FUNCTIONS["tried ident"], Job("an id", "tried ident", world))
    assert output.value == threading.get_ident()


async def test_a_function_that_blocks_is_named_and_blocks_no_worker(scene: ExecutorBench) -> None:
    """The loop of the worker goes on, and the log names the function that blocks and when it ends."""
    blocked, neighbour = scene.start("tried block"), scene.start("tried ident")
    name = "tried block (tests.support.jobs.functions.block, job an id)"
    await eventually(
        lambda: [
            message
            for message in scene.read_events("job_loop_blocked")
            if message.startswith(f"{name} blocks")
        ]
    )
    assert not blocked.done() and not neighbour.done()
    FREE.set()
    assert await blocked == "freed" and await neighbour
    await eventually(
        lambda: [message for message in scene.read_events("job_loop_free") if message.endswith(f"by {name}")]
    )


async def test_a_process_that_was_suspended_blames_no_function(scene: ExecutorBench, tmp_path: Path) -> None:
    """Its threads have all stood still; the one that wakes first does not take the other for blocked."""
    mark, asked = tmp_path / "mark", list[int]()
    running = scene.start("tried stubborn", str(mark))
    await eventually(mark.exists)
    (loop,) = scene.execute._loops._all
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "_answer_probe", asked.append)
        await eventually(lambda: asked)
        time.sleep(2 * module._BLOCKED_AFTER_S)
        await eventually(lambda: loop.blocked_s)
        assert scene.read_events("job_loop_blocked") == [] and loop.blocked_s < module._BLOCKED_AFTER_S
    loop._probes_answered = loop._probes_sent
    FREE.set()
    assert await running == "done all the same"


async def test_a_run_that_is_cancelled_before_it_begins_never_does(
    scene: ExecutorBench, tmp_path: Path
) -> None:
    """Its loop was blocked until then; for its caller it is cancelled like any other."""
    blocked, mark = scene.start("tried block"), tmp_path / "mark"
    await eventually(lambda: scene.read_events("job_loop_blocked"))
    late = scene.start("tried stubborn", str(mark))
    await asyncio.sleep(0)
    late.cancel()
    await asyncio.sleep(0)
    FREE.set()
    with pytest.raises(asyncio.CancelledError):
        await late
    assert await blocked == "freed" and not mark.exists()


async def test_a_loop_that_stays_blocked_is_left(
    scene: ExecutorBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that should have ended and still blocks is not waited for without end; others have a new loop."""
    monkeypatch.setattr(module, "_CANCEL_WAIT_S", 0.1)
    blocked = scene.start("tried block")
    await eventually(lambda: scene.read_events("job_loop_blocked"))
    blocked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await blocked
    assert await scene.start("tried ident")
    assert not FREE.is_set()


async def test_a_run_is_over_when_its_function_is(scene: ExecutorBench, tmp_path: Path) -> None:
    """One that does not let itself be cancelled comes to its end, and what it returns counts."""
    mark = tmp_path / "mark"
    running = scene.start("tried stubborn", str(mark))
    await eventually(mark.exists)
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
    assert not running.done()
    FREE.set()
    assert await running == "done all the same"


async def test_a_run_that_ends_at_the_moment_of_its_cancel_is_over(scene: ExecutorBench) -> None:
    """The worker's loop learns of both in one turn, the end first; it must not wait for a second end."""
    begun, reported = threading.Event(), threading.Event()

    async def finish(_given: Job) -> str:
        begun.set()
        await asyncio.to_thread(FREE.wait)
        # The next turn reports the end of this run to the worker's loop; this is set in the turn after it.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, reported.set)
        return "done"

    finishing = RegisteredFunction("finish", finish, is_async=True)
    running = asyncio.create_task(scene.execute(finishing, create_job("finish")))
    await eventually(begun.is_set)
    FREE.set()
    assert reported.wait(60), "this blocks the worker's loop, so that the report waits there"
    running.cancel()
    await asyncio.wait({running}, timeout=30)
    assert running.done() and running.result().value == "done"


@pytest.mark.parametrize(
    "error", [SystemExit(3), asyncio.CancelledError(), KeyboardInterrupt(), StopAsyncIteration()]
)
async def test_whatever_an_async_function_raises_is_of_its_own_run(
    scene: ExecutorBench, error: BaseException
) -> None:
    """It ends neither the loop nor the worker."""

    async def fail(_given: Job) -> None:
        raise error

    ran = await run(
        RegisteredFunction("fail", fail, is_async=True), create_job("fail"), 60, REASONS, scene.execute
    )
    assert ran.error is not None and ran.error.startswith(type(error).__name__)
    assert await scene.start("tried ident")
