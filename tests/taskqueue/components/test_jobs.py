"""Job functions: how they are registered and found, and that none of them can harm its worker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from generated.taskqueue.messages import DONE, FAILED, JobSpec
from handlers.jobs import Job, JobFailed, JobFatal, Output, find, find_or_any, job
from handlers.jobs.registry import _FUNCTIONS
from runtime.world import RealWorld
from tests.support.taskqueue.stack import Stack, play

WORLD = RealWorld()
GIVEN = Job("id", "any", WORLD, payload_size_bytes=3, max_output_bytes=99)


@pytest.fixture
def job_types() -> Iterator[None]:
    """Job functions that a test registers are gone after it."""
    before = dict(_FUNCTIONS)
    yield
    _FUNCTIONS.clear()
    _FUNCTIONS.update(before)


async def outcome_of(stack: Stack, job_type: str, **spec: Any) -> tuple[int, str, str]:
    job_id = await stack.submitted(JobSpec(job_type=job_type, **spec))
    await stack.ended(job_id)
    return await stack.ending(job_id)


@pytest.mark.req("TQ-143", "CH-22")
def test_user_functions_are_run_and_reported(job_types: None) -> None:
    """A registered function runs for its type, whatever comes of it; other types run the built-in."""

    @job("greet")
    async def greet(given: Job) -> Output:
        await given.world.sleep(0.1)
        return Output(f"hello {given.labels['name']}".encode(), "greeted")

    @job("refuse")
    async def refuse(_given: Job) -> Output:
        raise JobFailed("NOT_TODAY", "come back tomorrow")

    @job("break")
    async def broken(_given: Job) -> Output:
        raise KeyError("lost")

    @job("exit")
    async def leave(_given: Job) -> Output:
        raise SystemExit(3)

    @job("give up")
    async def give_up(_given: Job) -> Output:
        raise asyncio.CancelledError

    @job("garble")
    async def garble(_given: Job) -> Output:
        raise ValueError("\ud800" + "x" * 5_000_000)

    @job("mistyped")
    async def mistyped(_given: Job) -> Any:
        return b"bytes"

    @job("flood")
    async def flood(_given: Job) -> Output:
        return Output(b"x" * 5_000_000, "y" * 5_000)

    async def scenario(stack: Stack) -> None:
        assert await outcome_of(stack, "greet", labels={"name": "you"}) == (DONE, "", "greeted")
        assert (await outcome_of(stack, "of no registered type"))[0] == DONE
        assert await outcome_of(stack, "refuse") == (FAILED, "NOT_TODAY", "come back tomorrow")
        assert (await outcome_of(stack, "break"))[:2] == (FAILED, "JOB_ERROR: KeyError: 'lost'")
        assert (await outcome_of(stack, "exit"))[:2] == (FAILED, "JOB_ERROR: SystemExit: 3")
        assert (await outcome_of(stack, "give up"))[:2] == (FAILED, "JOB_ERROR: CancelledError: ")
        status, reason, _ = await outcome_of(stack, "garble")
        assert (status, len(reason), reason[:23]) == (FAILED, 1024, "JOB_ERROR: ValueError: ")
        assert "must return an Output" in (await outcome_of(stack, "mistyped"))[1]
        assert (await outcome_of(stack, "flood"))[:2] == (FAILED, "OUTPUT_TOO_LARGE")
        assert stack.anomalies() == []

    play(scenario, WORKER_SLOTS="1")


def registered(function: Callable[[Job], Any]) -> Callable[[Job], Any]:
    job("mine")(function)
    return find_or_any("mine")


@pytest.mark.parametrize("made", [b"bytes", {1, 2}, float("nan"), Output("text")])  # type: ignore[arg-type]
@pytest.mark.parametrize("plain", [True, False])
async def test_a_function_returns_bytes_or_what_json_can_hold(
    job_types: None, made: Any, plain: bool
) -> None:
    """Anything else is a mistake of the function, and said so."""

    def give(_given: Job) -> Any:
        return made

    async def give_later(_given: Job) -> Any:
        return made

    with pytest.raises(TypeError, match="the function of 'mine' must return an Output of bytes"):
        await registered(give if plain else give_later)(GIVEN)


def test_a_type_has_one_function(job_types: None) -> None:
    """A second function for a type is refused, with the first one's name."""
    with pytest.raises(ValueError, match="'fail' is registered already, by <function fail"):
        job("fail")(lambda given: Output())


@pytest.mark.req("CH-37")
async def test_the_built_in_work_is_repeatable_and_different_for_each_job() -> None:
    """The bytes depend on the job's id and on nothing else."""
    other = Job("another", "any", WORLD, payload_size_bytes=3, max_output_bytes=99)
    first, again, second = [(await find_or_any("any")(each)).content for each in (GIVEN, GIVEN, other)]
    assert first == again != second


@pytest.mark.parametrize("value", [None, "text", 7, [1, {"deep": True}]])
async def test_a_value_that_json_can_hold_is_an_output(job_types: None, value: Any) -> None:
    """A function need not know of bytes: its value is kept, and stands in the content as JSON."""

    async def give(_given: Job) -> Any:
        return value

    made = await registered(give)(GIVEN)
    assert made.value == value
    assert json.loads(made.content) == value


async def test_the_demonstrations_do_what_they_say() -> None:
    """Echo returns its payload, sleep says how long it slept, fail may be repeated and fatal may not."""
    given = replace(GIVEN, payload={"seconds": 0, "x": [1]})
    assert (await find_or_any("echo")(given)).value == {"seconds": 0, "x": [1]}
    assert (await find_or_any("sleep")(given)).value == {"slept": 0}
    with pytest.raises(JobFatal, match="BAD_PAYLOAD"):
        await find_or_any("sleep")(replace(GIVEN, payload={"seconds": "long"}))
    with pytest.raises(JobFailed) as failed:
        await find_or_any("fail")(given)
    assert not isinstance(failed.value, JobFatal)
    with pytest.raises(JobFatal):
        await find_or_any("fatal")(given)


def test_a_type_without_a_function_is_told_from_one_that_has_one() -> None:
    """A system that runs only what it knows can ask."""
    assert find("nothing like it") is None
    assert find("*") is None
    assert find("echo") is not None
