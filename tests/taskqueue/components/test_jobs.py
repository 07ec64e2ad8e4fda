"""Job functions: how they are registered and found, and that none of them can harm its worker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from generated.taskqueue.messages import DONE, FAILED
from handlers.jobs import Job, JobFailed, JobFatal, Output, find, find_or_any, job
from handlers.jobs.registry import _FUNCTIONS
from runtime.world import RealWorld
from tests.support.taskqueue.stack import Stack, play

WORLD = RealWorld()
JOB = Job("id", "any", WORLD, payload_size_bytes=3, max_output_bytes=99)


@pytest.fixture
def job_types() -> Iterator[None]:
    """Job functions that a test registers are removed after it."""
    before = dict(_FUNCTIONS)
    yield
    _FUNCTIONS.clear()
    _FUNCTIONS.update(before)


@pytest.mark.req("TQ-143", "CH-22")
def test_user_functions_are_run_and_reported(job_types: None) -> None:
    """A registered function runs for its type, whatever comes of it; other types run the built-in."""

    @job("greet")
    async def greet(job_: Job) -> Output:
        await job_.world.sleep(0.1)
        return Output(f"hello {job_.labels['name']}".encode(), "greeted")

    @job("refuse")
    async def refuse(_job: Job) -> Output:
        raise JobFailed("NOT_TODAY", "come back tomorrow")

    @job("break")
    async def broken(_job: Job) -> Output:
        raise KeyError("lost")

    @job("exit")
    async def raise_system_exit(_job: Job) -> Output:
        raise SystemExit(3)

    @job("give up")
    async def give_up(_job: Job) -> Output:
        raise asyncio.CancelledError

    @job("garble")
    async def garble(_job: Job) -> Output:
        raise ValueError("\ud800" + "x" * 5_000_000)

    @job("mistyped")
    async def mistyped(_job: Job) -> Any:
        return b"bytes"

    @job("flood")
    async def flood(_job: Job) -> Output:
        return Output(b"x" * 5_000_000, "y" * 5_000)

    async def scenario(stack: Stack) -> None:
        assert await stack.run_to_end("greet", labels={"name": "you"}) == (DONE, "", "greeted")
        assert (await stack.run_to_end("of no registered type"))[0] == DONE
        assert await stack.run_to_end("refuse") == (FAILED, "NOT_TODAY", "come back tomorrow")
        assert (await stack.run_to_end("break"))[:2] == (FAILED, "JOB_ERROR: KeyError: 'lost'")
        assert (await stack.run_to_end("exit"))[:2] == (FAILED, "JOB_ERROR: SystemExit: 3")
        assert (await stack.run_to_end("give up"))[:2] == (FAILED, "JOB_ERROR: CancelledError: ")
        status, reason, _ = await stack.run_to_end("garble")
        assert (status, len(reason), reason[:23]) == (FAILED, 1024, "JOB_ERROR: ValueError: ")
        assert "must return an Output" in (await stack.run_to_end("mistyped"))[1]
        assert (await stack.run_to_end("flood"))[:2] == (FAILED, "OUTPUT_TOO_LARGE")
        assert stack.anomalies() == []

    play(scenario, WORKER_SLOTS="1")


def register(function: Callable[[Job], Any]) -> Callable[[Job], Any]:
    job("mine")(function)
    return find_or_any("mine")


@pytest.mark.parametrize("returned", [b"bytes", {1, 2}, float("nan"), Output("text")])  # type: ignore[arg-type]
@pytest.mark.parametrize("plain", [True, False])
async def test_a_function_that_returns_neither_bytes_nor_json_fails(
    job_types: None, returned: Any, plain: bool
) -> None:
    """Any other value is a mistake of the function, and the error names it."""

    def give(_job: Job) -> Any:
        return returned

    async def give_later(_job: Job) -> Any:
        return returned

    with pytest.raises(TypeError, match="the function of 'mine' must return an Output of bytes"):
        await register(give if plain else give_later)(JOB)


def test_a_type_has_one_function(job_types: None) -> None:
    """A second function for a type is refused, with the first one's name."""
    with pytest.raises(ValueError, match="'fail' is registered already, by <function fail"):
        job("fail")(lambda job_: Output())


@pytest.mark.req("CH-37")
async def test_the_built_in_work_is_repeatable_and_different_for_each_job() -> None:
    """The bytes depend on the job's id and on nothing else."""
    other = Job("another", "any", WORLD, payload_size_bytes=3, max_output_bytes=99)
    first, again, second = [(await find_or_any("any")(each)).content for each in (JOB, JOB, other)]
    assert first == again != second


@pytest.mark.parametrize("value", [None, "text", 7, [1, {"deep": True}]])
async def test_a_json_value_is_an_output(job_types: None, value: Any) -> None:
    """A function may return a value without encoding it: the value is stored, and the content is its JSON."""

    async def give(_job: Job) -> Any:
        return value

    output = await register(give)(JOB)
    assert output.value == value
    assert json.loads(output.content) == value


async def test_the_demonstration_functions_do_as_documented() -> None:
    """Echo returns its payload, sleep says how long it slept, fail may be repeated and fatal may not."""
    job_ = replace(JOB, payload={"seconds": 0, "x": [1]})
    assert (await find_or_any("echo")(job_)).value == {"seconds": 0, "x": [1]}
    assert (await find_or_any("sleep")(job_)).value == {"slept": 0}
    with pytest.raises(JobFatal, match="BAD_PAYLOAD"):
        await find_or_any("sleep")(replace(JOB, payload={"seconds": "long"}))
    with pytest.raises(JobFailed) as failed:
        await find_or_any("fail")(job_)
    assert not isinstance(failed.value, JobFatal)
    with pytest.raises(JobFatal):
        await find_or_any("fatal")(job_)


def test_a_type_without_a_function_can_be_distinguished() -> None:
    """A system that runs only the types it knows can ask whether a type has a function."""
    assert find("nothing like it") is None
    assert find("*") is None
    assert find("echo") is not None
