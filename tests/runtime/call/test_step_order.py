"""The order of steps: a transition is asked for after the calls that the spec puts before it, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from generated.studio.clients import (
    ArchiveServiceClient,
    LedgerServiceClient,
    RackServiceClient,
)
from generated.studio.messages import (
    DEVELOPED,
    DEVELOPING,
    WAITING,
    WITHDRAWN,
    FilmState,
    MoveFilmRequest,
    ReadFilmRequest,
    RemoveFilmRequest,
    StorePrintRequest,
    TakeFilmRequest,
    TakeFilmResponse,
)
from generated.studio.policy import COMPENSATION
from generated.studio.system import SYSTEM
from runtime.call import Answering, Call, Invoke, Request, Response
from runtime.call.conditions import CallFailed, Failure
from runtime.call.step_order import keep_step_order
from runtime.model.system import Method
from tests.runtime.hand_world import HandWorld, Lines, make_call


class Recorder:
    """A channel that writes down what reaches it; a method can be made to fail."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.failing: set[str] = set()

    def bind(
        self, method: Method, _request: type[Request], response: type[Response], /
    ) -> Invoke[Request, Response]:
        def invoke(_message: Request, _call: Call) -> Answering[Response]:
            return self._answer(method, response)

        return invoke

    async def _answer(self, method: Method, response: type[Any]) -> Any:
        if method.name in self.failing:
            raise CallFailed("UNAVAILABLE", "set to fail", "Test")
        self.reached.append(method.name)
        return response(found=True, film_id="j") if response is TakeFilmResponse else response()


class Actor:
    """A component with clients whose channels keep the order, and one call that it has in hand."""

    def __init__(self, component: str) -> None:
        self.recorder, self.lines = Recorder(), Lines()
        self.call = make_call(HandWorld(), lines=self.lines)
        channel = keep_step_order(SYSTEM, component, self.recorder)
        self._ledger = LedgerServiceClient(channel)
        self._rack = RackServiceClient(channel)
        self._archive = ArchiveServiceClient(channel)

    async def remove(self, film_id: str = "j") -> None:
        await self._rack.remove_film(RemoveFilmRequest(film_id=film_id), self.call)

    async def take(self) -> None:
        await self._rack.take_film(TakeFilmRequest(printer_id="w"), self.call)

    async def read(self) -> None:
        await self._ledger.read_film(ReadFilmRequest(film_id="j"), self.call)

    async def store(self, film_id: str = "j") -> None:
        await self._archive.store_print(StorePrintRequest(film_id=film_id), self.call)

    async def transition(
        self, source: FilmState.ValueType, target: FilmState.ValueType, call: Call | None = None
    ) -> None:
        request = MoveFilmRequest(film_id="j", expected_state=source, next_state=target)
        await self._ledger.move_film(request, call or self.call)

    async def expect_refusal(self, source: FilmState.ValueType, target: FilmState.ValueType) -> str:
        """The message with which a transition is refused, before it is sent."""
        reached = len(self.recorder.reached)
        with pytest.raises(Failure) as caught:
            await self.transition(source, target)
        assert caught.value.grpc == "PERMISSION_DENIED"
        assert len(self.recorder.reached) == reached
        return caught.value.message


async def test_a_transition_without_its_steps_is_refused() -> None:
    """None of them, or not all: the missing step is named and logged, and the callee gets no call."""
    desk = Actor("desk")
    assert "'withdraw' comes after RackService.RemoveFilm" in await desk.expect_refusal(WAITING, WITHDRAWN)
    await desk.remove()
    assert "'withdraw' comes after ArchiveService.StorePrint" in await desk.expect_refusal(WAITING, WITHDRAWN)
    denied = desk.lines.read_back("call_denied")
    assert [line["method"] for line in denied] == ["LedgerService.MoveFilm"] * 2
    await desk.store()
    await desk.transition(WAITING, WITHDRAWN)
    assert desk.recorder.reached == ["RemoveFilm", "StorePrint", "MoveFilm"]


async def test_the_order_counts() -> None:
    """The same steps in another order are refused."""
    desk = Actor("desk")
    await desk.store()
    await desk.remove()
    assert "StorePrint" in await desk.expect_refusal(WAITING, WITHDRAWN)


async def test_the_steps_of_another_entity_do_not_count() -> None:
    desk = Actor("desk")
    await desk.remove("other")
    await desk.store("other")
    assert "RemoveFilm" in await desk.expect_refusal(WAITING, WITHDRAWN)


async def test_the_steps_of_another_call_do_not_count() -> None:
    foreman = Actor("foreman")
    await foreman.store()
    foreman.call = make_call(HandWorld(), lines=foreman.lines)
    assert "StorePrint" in await foreman.expect_refusal(DEVELOPING, DEVELOPED)


async def test_a_step_that_failed_is_not_completed() -> None:
    foreman = Actor("foreman")
    foreman.recorder.failing.add("StorePrint")
    with pytest.raises(CallFailed):
        await foreman.store()
    assert "StorePrint" in await foreman.expect_refusal(DEVELOPING, DEVELOPED)


async def test_a_step_may_have_its_entity_from_the_answer() -> None:
    """A take names no film; the one in its answer is the one that may be begun."""
    foreman = Actor("foreman")
    await foreman.take()
    await foreman.read()
    await foreman.transition(WAITING, DEVELOPING)
    assert foreman.recorder.reached[-1] == "MoveFilm"


async def test_a_call_under_other_rules_is_the_same_call() -> None:
    """A compensation goes on where the call was that it belongs to."""
    foreman = Actor("foreman")
    under = foreman.call.under(COMPENSATION)
    await foreman.store()
    await foreman.transition(DEVELOPING, DEVELOPED, under)


async def test_a_transition_uses_its_steps_up() -> None:
    """The next one needs its own, and a call that goes on for ever remembers no more than it has to."""
    foreman = Actor("foreman")
    await foreman.store()
    await foreman.transition(DEVELOPING, DEVELOPED)
    assert foreman.call.steps == {}
    assert "StorePrint" in await foreman.expect_refusal(DEVELOPING, DEVELOPED)


async def test_an_attempt_that_failed_uses_nothing_up() -> None:
    """The same transition may be asked for again."""
    foreman = Actor("foreman")
    await foreman.store()
    foreman.recorder.failing.add("MoveFilm")
    with pytest.raises(CallFailed):
        await foreman.transition(DEVELOPING, DEVELOPED)
    foreman.recorder.failing.clear()
    await foreman.transition(DEVELOPING, DEVELOPED)


def test_a_component_without_an_order_has_its_channel_as_it_is() -> None:
    recorder = Recorder()
    assert keep_step_order(SYSTEM, "printer", recorder) is recorder
