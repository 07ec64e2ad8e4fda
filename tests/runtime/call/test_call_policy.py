"""Calls out: the time an attempt has, and when it is made again. All of it is by the spec's policy."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from generated.studio.errors import FilmNotAccepted, FilmUnknown, OrderReused
from generated.studio.messages import WAITING, WITHDRAWN, HandInRequest, ReadFilmRequest
from generated.studio.policy import CALLS, COMPENSATION, RESCUE, STANDARD
from generated.studio.system import SYSTEM
from runtime.call.call_policy import apply_call_policy, backoff_seconds
from runtime.call.conditions import CallFailed, Failure
from runtime.model.system import CallMode, Method
from tests.runtime.hand_world import HandWorld, Lines, make_call

METHODS = {method.name: method for service in SYSTEM.services.values() for method in service.methods}
CODES = [code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK]
RETRYABLE = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"}


class Callee:
    """Fails a number of times, then answers. Each attempt takes some of the world's time."""

    def __init__(self, failure: Failure, failures: int = 99, takes: float = 0.0) -> None:
        self.world = HandWorld()
        self.patience: list[float] = []
        self._failure = failure
        self._failures = failures
        self._takes = takes

    async def attempt(self, _request: Any, _call: Any, patience: float) -> str:
        self.patience.append(round(patience, 6))
        self.world.seconds += min(self._takes, patience)
        if len(self.patience) <= self._failures:
            raise self._failure
        return "answered"

    async def call(
        self,
        method: Method,
        *,
        request: Any = None,
        seconds: float | None = None,
        mode: CallMode | None = None,
        fixed_mode: CallMode | None = None,
        lines: Lines | None = None,
    ) -> str:
        deadline = None if seconds is None else self.world.seconds + seconds
        call = make_call(self.world, deadline=deadline, lines=lines)
        invoke = apply_call_policy(method, self.attempt, "desk", fixed_mode)
        answer: str = await invoke(request or method.request(), call.under(mode) if mode else call)
        return answer


def down(code: str = "UNAVAILABLE") -> CallFailed:
    return CallFailed(code, "set to fail", "Test")


@pytest.mark.req("TQ-156", "TQ-157")
@pytest.mark.parametrize("code", CODES)
async def test_only_retryable_codes_are_tried_again(code: str) -> None:
    """Of all sixteen codes three are tried four times, and the others once."""
    callee = Callee(down(code))
    with pytest.raises(CallFailed) as failed:
        await callee.call(METHODS["ReadFilm"])
    assert failed.value.grpc == code
    assert len(callee.patience) == (4 if code in RETRYABLE else 1)


@pytest.mark.req("TQ-157")
@pytest.mark.parametrize(
    ("condition", "attempts"),
    [
        (FilmUnknown(film_id="x"), 1),
        (OrderReused(order_number="x"), 1),
        (FilmNotAccepted(), 4),
    ],
)
async def test_a_condition_is_tried_again_by_its_code(condition: Failure, attempts: int) -> None:
    """A condition that the callee answered counts like any failure with its code."""
    callee = Callee(condition)
    with pytest.raises(type(condition)):
        await callee.call(METHODS["ReadFilm"])
    assert len(callee.patience) == attempts


@pytest.mark.req("TQ-158")
async def test_pauses_are_drawn_from_zero_to_a_bound_that_doubles() -> None:
    """Three pauses with full jitter: uniform between 0 and 100, 200 and 400 ms."""
    callee = Callee(down())
    with pytest.raises(CallFailed):
        await callee.call(METHODS["ReadFilm"])
    assert callee.world.drawn == [(0.0, 0.1), (0.0, 0.2), (0.0, 0.4)]
    assert callee.world.slept == [0.1, 0.2, 0.4]


@pytest.mark.req("CH-76", "TQ-158")
def test_the_bound_stops_growing_at_its_cap() -> None:
    """With more attempts than the profile has, the bound would stop at 1000 ms."""
    world = HandWorld()
    for tried in range(1, 9):
        backoff_seconds(STANDARD, tried, world)
    assert [high for _, high in world.drawn] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0]


def test_a_profile_without_jitter_waits_for_the_bound() -> None:
    """Jitter is the profile's choice, not the engine's."""
    world = HandWorld()
    assert backoff_seconds(replace(STANDARD, full_jitter=False), 2, world) == 0.2
    assert world.drawn == []


@pytest.mark.req("TQ-159")
@pytest.mark.parametrize(("key", "attempts"), [("key", 4), ("", 1), (" ", 4)])
async def test_a_submit_is_repeated_only_under_a_key(key: str, attempts: int) -> None:
    """With a key there are four attempts, blanks being a key too; without one there is exactly one."""
    callee = Callee(down())
    with pytest.raises(CallFailed):
        await callee.call(METHODS["HandIn"], request=HandInRequest(order_number=key))
    assert len(callee.patience) == attempts


@pytest.mark.req("CH-75")
@pytest.mark.parametrize("name", ["TakeFilm", "RemoveFilm", "FetchFilm", "MoveFilm"])
async def test_an_unsafe_call_is_not_repeated(name: str) -> None:
    """Pops, removals, fetches and swaps are tried once, whatever happens to them."""
    callee = Callee(down())
    with pytest.raises(CallFailed):
        await callee.call(METHODS[name])
    assert len(callee.patience) == 1


@pytest.mark.req("TQ-156")
async def test_an_answer_ends_the_attempts() -> None:
    """The first attempt that is answered is the last, and each that was not is in the log."""
    callee, lines = Callee(down(), failures=2), Lines()
    assert await callee.call(METHODS["ReadFilm"], lines=lines) == "answered"
    assert len(callee.patience) == 3
    assert [line["attempt"] for line in lines.read_back("call_retried")] == [1, 2]


@pytest.mark.req("TQ-163")
async def test_a_line_of_a_repeated_call_says_which_and_about_what() -> None:
    """It names the method that is called again and the entity, also where background work calls."""
    callee, lines = Callee(down(), failures=1), Lines()
    await callee.call(METHODS["ReadFilm"], request=ReadFilmRequest(film_id="j-1"), lines=lines)
    (line,) = lines.read_back("call_retried")
    assert (line["method"], line["film_id"]) == ("LedgerService.ReadFilm", "j-1")
    assert "printer_id" not in line


@pytest.mark.req("TQ-160", "TQ-161", "CH-74")
@pytest.mark.parametrize("name", METHODS)
async def test_every_attempt_has_the_deadline_of_its_method(name: str) -> None:
    """Without a deadline of the caller, each attempt has the whole deadline of its method."""
    callee = Callee(down("INTERNAL"))
    with pytest.raises(CallFailed):
        await callee.call(METHODS[name])
    assert callee.patience == [CALLS[str(METHODS[name])].deadline_ms / 1000]


@pytest.mark.req("CH-73", "CH-74")
async def test_an_attempt_has_no_more_than_the_remaining_time() -> None:
    """An attempt has the smaller of its deadline and the rest of the caller's."""
    callee = Callee(down(), takes=0.9)
    with pytest.raises(CallFailed):
        await callee.call(METHODS["ReadFilm"], seconds=2.5)
    assert callee.patience == [1.0, 1.0, 0.4]


@pytest.mark.req("CH-73")
async def test_no_attempt_is_made_when_no_time_is_left() -> None:
    """A call that comes too late fails by itself, with the code of a deadline."""
    callee = Callee(down())
    with pytest.raises(CallFailed, match="no time is left") as failed:
        await callee.call(METHODS["ReadFilm"], seconds=0.0)
    assert (failed.value.grpc, callee.patience) == ("DEADLINE_EXCEEDED", [])


async def test_no_pause_outlasts_the_time_that_is_left() -> None:
    """When the pause would use up the rest, the call fails at once."""
    callee = Callee(down())
    with pytest.raises(CallFailed, match="set to fail"):
        await callee.call(METHODS["ReadFilm"], seconds=0.25)
    assert callee.world.slept == [0.1]


@pytest.mark.req("CH-73")
async def test_a_compensation_has_time_of_its_own() -> None:
    """In a mode with a fresh deadline a call has its whole deadline, over all its attempts, and no more."""
    callee = Callee(down(), takes=0.4)
    with pytest.raises(CallFailed):
        await callee.call(METHODS["StrikeFilm"], seconds=-5.0, mode=COMPENSATION)
    assert callee.patience == [1.0, 0.5]


@pytest.mark.req("CH-27", "CH-73", "TQ-076")
async def test_a_rescue_is_one_attempt_with_time_of_its_own() -> None:
    """The mode of a permission wins over another mode."""
    for mode in (None, COMPENSATION):
        callee = Callee(down())
        with pytest.raises(CallFailed):
            await callee.call(METHODS["HangFilm"], seconds=-1.0, mode=mode, fixed_mode=RESCUE)
        assert callee.patience == [1.0]


@pytest.mark.req("TQ-060", "CH-65")
async def test_the_caller_is_named_by_the_engine() -> None:
    """A request that names its caller is filled in with whom the channel speaks for."""
    method = METHODS["MoveFilm"]
    request = method.request(film_id="x", expected_state=WAITING, next_state=WITHDRAWN, actor="foreman")
    callee = Callee(down("INTERNAL"))
    with pytest.raises(CallFailed):
        await callee.call(method, request=request)
    assert request.actor == "desk"
