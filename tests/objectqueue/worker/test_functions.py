"""Job functions: how they are loaded by name, and plain ones in processes that can be stopped."""

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
from handlers.jobs.executor import FailureReasons, RunResult, run
from handlers.jobs.loader import HandlersUnusable, load
from handlers.jobs.processes import ProcessPool
from handlers.jobs.registry import RegisteredFunction
from runtime.world import RealWorld
from tests.support.eventually import eventually
from tests.support.jobs.pids import wait_until_gone

MODULE = "tests.support.objectqueue.functions"
FUNCTIONS = load(MODULE)
REASONS = FailureReasons("TIMED_OUT", "RESULT_NOT_JSON")
WORLD = RealWorld()


@pytest.fixture
async def processes() -> AsyncIterator[ProcessPool]:
    async with ProcessPool(MODULE) as pool:
        yield pool


def make_job(job_type: str, payload: Any = None, **more: Any) -> Job:
    return Job("an id", job_type, WORLD, payload=payload, token="a token", **more)


async def run_function(
    processes: ProcessPool, job_type: str, payload: Any = None, seconds: float = 120, **more: Any
) -> RunResult:
    async def execute(function: RegisteredFunction, job: Job) -> Output:
        return await (function(job) if function.is_async else processes(function, job))

    return await run(FUNCTIONS[job_type], make_job(job_type, payload, **more), seconds, REASONS, execute)


@pytest.mark.req("OQ-237")
def test_functions_come_from_the_named_module() -> None:
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
    """One sentence with the error in the name."""
    (tmp_path / "broken_functions.py").write_text("raise RuntimeError('no luck')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(HandlersUnusable, match=why.replace("(", r"\(")):
        load(name.replace("tests.objectqueue.broken", "broken"))


@pytest.mark.req("OQ-130", "OQ-115")
async def test_a_plain_function_gets_its_job_in_a_process_of_its_own(processes: ProcessPool) -> None:
    """It gets id, attempt and token; the next run is in the same process."""
    first = (await processes(FUNCTIONS["describe"], make_job("describe", attempt=3))).value
    assert {**first, "pid": 0} == {
        "id": "an id",
        "type": "describe",
        "attempt": 3,
        "token": "a token",
        "stopping": False,
        "pid": 0,
    }
    second = (await processes(FUNCTIONS["describe"], make_job("describe"))).value
    assert second["pid"] == first["pid"]
    concurrent = await asyncio.gather(
        *(processes(FUNCTIONS["describe"], make_job("describe")) for _ in range(3))
    )
    assert len({each.value["pid"] for each in concurrent}) == 3


@pytest.mark.req("OQ-115", "OQ-123", "OQ-241")
async def test_a_plain_function_is_killed_at_its_time_limit(processes: ProcessPool, tmp_path: Path) -> None:
    """It is killed with its own children, the run failed with a timeout, and the next run works."""
    await run_function(processes, "describe")
    pid_file = tmp_path / "pids"
    for seconds in (0.6, 6, 60):
        ended = await run_function(processes, "stuck", str(pid_file), seconds=seconds)
        assert (ended.error, ended.is_final) == (f"TIMED_OUT: it took longer than {seconds} s", False)
        # A machine that is busy may not let it come to the beginning in a short time.
        if pid_file.exists() and pid_file.read_text():
            break
    await wait_until_gone(*map(int, pid_file.read_text().split()))
    assert (await run_function(processes, "add", {"left": 1, "right": 2})).result == "3"


@pytest.mark.req("OQ-115")
async def test_a_cancelled_run_has_no_process_left(processes: ProcessPool, tmp_path: Path) -> None:
    """A cancelled run does not continue in the background."""
    pid_file = tmp_path / "pids"
    task = asyncio.create_task(run_function(processes, "stuck", str(pid_file)))
    await eventually(lambda: pid_file.exists() and pid_file.read_text())
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await wait_until_gone(*map(int, pid_file.read_text().split()))


@pytest.mark.req("OQ-130")
async def test_a_plain_function_is_notified_that_its_worker_stops(processes: ProcessPool) -> None:
    """Before its run begins or while it runs; its progress arrives."""
    reported: list[Mapping[str, Any]] = []

    async def report(progress: Mapping[str, Any]) -> None:
        reported.append(progress)
        processes.notify_stopping()

    assert (await run_function(processes, "until stopping", report=report)).result == '"told to stop"'
    assert reported == [{"phase": "waiting"}]
    assert '"stopping": false' in (await run_function(processes, "describe")).result
    assert (
        await run_function(processes, "until stopping", is_stopping=lambda: True)
    ).result == '"told to stop"'


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
    """Only the permanent one is final; an unknown one is retried."""
    assert await run_function(processes, "raise", payload) == ended


@pytest.mark.req("OQ-248")
async def test_a_result_without_a_json_form_is_an_error(processes: ProcessPool) -> None:
    """It names the function."""
    assert "must return an Output of bytes or a value that JSON" in str(
        (await run_function(processes, "raise", "not json")).error
    )


@pytest.mark.req("OQ-243")
@pytest.mark.parametrize("payload", [None, [], {"left": 1}, {"left": 1, "right": "2"}, {"other": 1}])
async def test_an_input_that_cannot_be_decoded_is_permanent(processes: ProcessPool, payload: Any) -> None:
    """Another run would get the same input; the text says what is wrong with it."""
    ended = await run_function(processes, "add", payload)
    assert ended.is_final
    assert str(ended.error).startswith("BAD_INPUT: TypeError: ")


@pytest.mark.req("OQ-248", "OQ-249")
@pytest.mark.parametrize(
    ("how", "why"),
    [("signal", "was ended by SIGSEGV"), (7, "ended by itself, with exit code 7")],
)
async def test_a_crash_of_the_process_is_a_failed_run(processes: ProcessPool, how: Any, why: str) -> None:
    """Only that run fails, it is retried, and the text says how the process ended."""
    ended = await run_function(processes, "crash", how)
    assert (ended.error, ended.is_final) == (f"CRASHED: the process of the function {why}", False)
    assert (await run_function(processes, "add", {"left": 2, "right": 2})).result == "4"


async def test_an_idle_child_that_died_is_replaced(processes: ProcessPool) -> None:
    """No run fails for that."""
    pid = (await processes(FUNCTIONS["describe"], make_job("describe"))).value["pid"]
    os.kill(pid, signal.SIGKILL)
    await wait_until_gone(pid)
    assert (await processes(FUNCTIONS["describe"], make_job("describe"))).value["pid"] != pid


async def test_a_process_without_the_function_reports_it() -> None:
    """As when a module is another one in the child."""
    async with ProcessPool(f"{MODULE}:MORE") as processes:
        with pytest.raises(JobFailed, match="HANDLERS_UNUSABLE") as unknown:
            await processes(FUNCTIONS["describe"], make_job("describe"))
        assert not isinstance(unknown.value, JobFatal)
    async with ProcessPool("no.such_module") as processes:
        with pytest.raises(JobFailed, match="HANDLERS_UNUSABLE"):
            await processes(FUNCTIONS["describe"], make_job("describe"))


@pytest.mark.req("OQ-166")
async def test_children_die_with_their_worker(tmp_path: Path) -> None:
    """When a worker is killed its children die, too, whatever they are doing."""
    pid_file = tmp_path / "pids"
    program = (
        "import asyncio\n"
        "from tests.objectqueue.worker.test_functions import FUNCTIONS, MODULE, make_job\n"
        "from handlers.jobs.processes import ProcessPool\n"
        f"asyncio.run(ProcessPool(MODULE)(FUNCTIONS['stuck'], make_job('stuck', {str(pid_file)!r})))"
    )
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    await eventually(lambda: pid_file.exists() and pid_file.read_text())
    worker.kill()
    await worker.wait()
    child, grandchild = map(int, pid_file.read_text().split())
    await wait_until_gone(child)
    with suppress(ProcessLookupError):
        os.kill(grandchild, 9)
