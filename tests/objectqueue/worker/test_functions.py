"""Job functions: how they are loaded by name, and that plain ones run in processes that can be stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from handlers.jobs import Job, JobFailed, JobFatal, Output, find
from handlers.jobs.loader import HandlersUnusable, load
from handlers.jobs.processes import ProcessPool
from handlers.jobs.registry import RegisteredFunction
from handlers.jobs.runner import FailureReasons, RunResult, run
from runtime.world import RealWorld
from tests.support.eventually import eventually

MODULE = "tests.support.objectqueue.functions"
FUNCTIONS = load(MODULE)
REASONS = FailureReasons("TIMED_OUT", "RESULT_NOT_JSON")
WORLD = RealWorld()


@pytest.fixture
async def processes() -> AsyncIterator[ProcessPool]:
    async with ProcessPool(MODULE) as made:
        yield made


def given(job_type: str, payload: Any = None, **more: Any) -> Job:
    return Job("an id", job_type, WORLD, payload=payload, token="a token", **more)


async def ran(
    processes: ProcessPool, job_type: str, payload: Any = None, seconds: float = 120, **more: Any
) -> RunResult:
    async def execute(function: RegisteredFunction, job: Job) -> Output:
        return await (function(job) if function.is_async else processes(function, job))

    return await run(FUNCTIONS[job_type], given(job_type, payload, **more), seconds, REASONS, execute)


def is_running(pid: int) -> bool:
    """Whether a process is there and no mere entry that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until_gone(*pids: int) -> None:
    await eventually(lambda: not any(map(is_running, pids)))


@pytest.mark.req("OQ-237")
def test_functions_come_from_the_module_that_is_named() -> None:
    """All that it registers and nothing else, also where its types are those of the built-in ones."""
    assert {"add", "stuck", "echo"} <= set(FUNCTIONS)
    assert "fatal" not in FUNCTIONS
    assert FUNCTIONS["echo"].function.__module__ == MODULE
    assert find("fatal") is not None
    assert "fatal" in load(None)
    assert set(load(f"{MODULE}:MORE")) == {"double"}
    assert {"double", "add"} <= set(load(f"{MODULE}:MORE, {MODULE}"))


@pytest.mark.req("OQ-237")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no.such_module", "there is no module no.such_module"),
        (f"{MODULE}:NONE", "the module has no NONE"),
        (f"{MODULE}:NO_MAPPING", "must be a dictionary of functions by job type, not 3"),
        (f"{MODULE}:BROKEN", "'double' has no function but 2"),
        ("tests.objectqueue.broken_functions", "cannot be imported: RuntimeError: no luck"),
        ("..", "not the name of a module"),
    ],
)
def test_functions_that_cannot_be_loaded_are_explained(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence that says what is wrong with the name."""
    (tmp_path / "broken_functions.py").write_text("raise RuntimeError('no luck')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(HandlersUnusable, match=why.replace("(", r"\(")):
        load(name.replace("tests.objectqueue.broken", "broken"))


@pytest.mark.req("OQ-130", "OQ-115")
async def test_a_plain_function_knows_its_job_in_a_process_of_its_own(processes: ProcessPool) -> None:
    """It is told id, attempt and token; the next run is in the same process."""
    first = (await processes(FUNCTIONS["told"], given("told", attempt=3))).value
    assert {**first, "pid": 0} == {
        "id": "an id",
        "type": "told",
        "attempt": 3,
        "token": "a token",
        "stopping": False,
        "pid": 0,
    }
    second = (await processes(FUNCTIONS["told"], given("told"))).value
    assert second["pid"] == first["pid"]
    together = await asyncio.gather(*(processes(FUNCTIONS["told"], given("told")) for _ in range(3)))
    assert len({each.value["pid"] for each in together}) == 3


@pytest.mark.req("OQ-115", "OQ-123", "OQ-241")
async def test_a_plain_function_is_stopped_at_its_limit(processes: ProcessPool, tmp_path: Path) -> None:
    """It is killed with what it started, the run failed with a time-out, and the next run is not harmed."""
    await ran(processes, "told")
    mark = tmp_path / "pids"
    for seconds in (0.6, 6, 60):
        ended = await ran(processes, "stuck", str(mark), seconds=seconds)
        assert (ended.error, ended.is_final) == (f"TIMED_OUT: it took longer than {seconds} s", False)
        # A machine that is busy may not let it come to the beginning in a short time.
        if mark.exists() and mark.read_text():
            break
    await until_gone(*map(int, mark.read_text().split()))
    assert (await ran(processes, "add", {"left": 1, "right": 2})).result == "3"


@pytest.mark.req("OQ-115")
async def test_a_run_that_is_cancelled_leaves_no_process(processes: ProcessPool, tmp_path: Path) -> None:
    """Whoever gives a run up has nothing of it going on behind their back."""
    mark = tmp_path / "pids"
    task = asyncio.create_task(ran(processes, "stuck", str(mark)))
    await eventually(lambda: mark.exists() and mark.read_text())
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await until_gone(*map(int, mark.read_text().split()))


@pytest.mark.req("OQ-130")
async def test_a_plain_function_learns_that_its_worker_stops(processes: ProcessPool) -> None:
    """Before its run begins or while it goes on; what it reports arrives."""
    heard: list[Mapping[str, Any]] = []

    async def report(progress: Mapping[str, Any]) -> None:
        heard.append(progress)
        processes.notify_stopping()

    assert (await ran(processes, "until stopping", report=report)).result == '"told to stop"'
    assert heard == [{"phase": "waiting"}]
    assert '"stopping": false' in (await ran(processes, "told")).result
    assert (await ran(processes, "until stopping", is_stopping=lambda: True)).result == '"told to stop"'


@pytest.mark.req("OQ-248", "OQ-249")
@pytest.mark.parametrize(
    ("payload", "ended"),
    [
        ("failed", RunResult(error="the other side is busy")),
        ("fatal", RunResult(error="this will never work", is_final=True)),
        ("other", RunResult(error="KeyError: 'lost'")),
        ("exit", RunResult(error="SystemExit: 3")),
    ],
)
async def test_the_kinds_of_errors(processes: ProcessPool, payload: str, ended: RunResult) -> None:
    """Only the permanent one is final; one that nobody knows may be tried again."""
    assert await ran(processes, "raise", payload) == ended


@pytest.mark.req("OQ-248")
async def test_a_result_that_json_cannot_hold_is_an_error(processes: ProcessPool) -> None:
    """It says whose result it was."""
    assert "must return an Output of bytes or a value that JSON" in str(
        (await ran(processes, "raise", "not json")).error
    )


@pytest.mark.req("OQ-243")
@pytest.mark.parametrize("payload", [None, [], {"left": 1}, {"left": 1, "right": "2"}, {"other": 1}])
async def test_an_input_that_cannot_be_decoded_is_the_end(processes: ProcessPool, payload: Any) -> None:
    """Another run would get the same input; the text says what is wrong with it."""
    ended = await ran(processes, "add", payload)
    assert ended.is_final
    assert str(ended.error).startswith("BAD_INPUT: TypeError: ")


@pytest.mark.req("OQ-248", "OQ-249")
@pytest.mark.parametrize(
    ("how", "why"),
    [("signal", "was ended by SIGSEGV"), (7, "ended by itself, with exit code 7")],
)
async def test_a_crash_of_the_process_is_a_failed_run(processes: ProcessPool, how: Any, why: str) -> None:
    """Only that run fails, it may be tried again, and the text says how the process ended."""
    ended = await ran(processes, "crash", how)
    assert (ended.error, ended.is_final) == (f"CRASHED: the process of the function {why}", False)
    assert (await ran(processes, "add", {"left": 2, "right": 2})).result == "4"


async def test_a_child_that_died_while_it_was_idle_is_replaced(processes: ProcessPool) -> None:
    """Nobody's run fails for that."""
    pid = (await processes(FUNCTIONS["told"], given("told"))).value["pid"]
    os.kill(pid, signal.SIGKILL)
    await until_gone(pid)
    assert (await processes(FUNCTIONS["told"], given("told"))).value["pid"] != pid


async def test_a_process_that_has_not_the_function_says_so() -> None:
    """As when a module is another one in the child."""
    async with ProcessPool(f"{MODULE}:MORE") as processes:
        with pytest.raises(JobFailed, match="HANDLERS_UNUSABLE") as unknown:
            await processes(FUNCTIONS["told"], given("told"))
        assert not isinstance(unknown.value, JobFatal)
    async with ProcessPool("no.such_module") as processes:
        with pytest.raises(JobFailed, match="HANDLERS_UNUSABLE"):
            await processes(FUNCTIONS["told"], given("told"))


@pytest.mark.req("OQ-166")
async def test_children_end_with_their_worker(tmp_path: Path) -> None:
    """A worker that is killed takes its children along, whatever they are doing."""
    mark = tmp_path / "pids"
    program = (
        "import asyncio\n"
        "from tests.objectqueue.worker.test_functions import FUNCTIONS, MODULE, given\n"
        "from handlers.jobs.processes import ProcessPool\n"
        f"asyncio.run(ProcessPool(MODULE)(FUNCTIONS['stuck'], given('stuck', {str(mark)!r})))"
    )
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    await eventually(lambda: mark.exists() and mark.read_text())
    worker.kill()
    await worker.wait()
    child, grandchild = map(int, mark.read_text().split())
    await until_gone(child)
    with suppress(ProcessLookupError):
        os.kill(grandchild, 9)
