"""Endpoints: the answer to the caller, the lines of the log, and the metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from generated.studio import messages as m
from generated.studio.errors import FilmUnknown, PrintLost
from generated.studio.lifecycle import LIFECYCLES
from generated.studio.system import SYSTEM
from runtime.call import Call
from runtime.call.conditions import CallFailed, Condition, Failure
from runtime.call.endpoint import Endpoint, make_endpoints
from runtime.call.identity import AuthenticationError
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.store import GuardBreach
from tests.runtime.hand_world import HandWorld, Lines
from tests.support.taskqueue.log_check import find_problems

METHODS = {method.name: method for service in SYSTEM.services.values() for method in service.methods}
PASSED_ON = {"INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"}
CODES = [code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK]

Handle = Callable[[Any, Call], Awaitable[Any]]


class Served:
    """One method with a handler of the test's own."""

    def __init__(self, handle: Handle, name: str = "GetPrint", *, detached: bool = False) -> None:
        self.world = HandWorld()
        self.lines = Lines()
        self.metrics = Metrics()
        self.method = replace(METHODS[name], detached=detached)
        handler = SimpleNamespace(**{self.method.attribute: handle})
        log = Log("test", "INFO", self.world, self.lines)
        self.endpoint = Endpoint(SYSTEM, self.method, handler, self.world, log, self.metrics)

    async def ask(
        self, caller: str | AuthenticationError = "desk", request: Any = None, seconds: float | None = None
    ) -> Any:
        deadline = None if seconds is None else self.world.seconds + seconds
        request = request if request is not None else m.GetPrintRequest(film_id="x")
        return await self.endpoint.answer(caller, request, deadline, "id-1")

    async def expect_refusal(self, **asked: Any) -> Failure:
        with pytest.raises(Failure) as refused:
            await self.ask(**asked)
        assert find_problems(self.lines.getvalue().splitlines(), LIFECYCLES) == []
        return refused.value

    def count_calls(self, code: str, caller: str = "desk") -> float | None:
        labels = {"method": str(self.method), "code": code, "caller": caller}
        return self.metrics.registry.get_sample_value("charter_calls_total", labels)


def make_failing_handler(error: BaseException) -> Handle:
    async def handle(_request: Any, _call: Call) -> Any:
        raise error

    return handle


async def find_print(_request: Any, _call: Call) -> m.GetPrintResponse:
    return m.GetPrintResponse(found=True)


async def test_a_call_is_answered_and_counted() -> None:
    """A well-formed call of a permitted caller reaches the handler, and its answer the caller."""
    served = Served(find_print)
    assert (await served.ask()).found
    assert served.count_calls("OK") == 1
    assert served.lines.read_back() == []


@pytest.mark.req("CH-65", "TQ-165")
async def test_an_unproven_caller_gets_no_further() -> None:
    """Identity comes first: a bad proof is answered, logged and counted before any other check."""
    served = Served(find_print)
    refused = await served.expect_refusal(
        caller=AuthenticationError("the token is not known"), request=m.GetPrintRequest()
    )
    assert refused.grpc == "UNAUTHENTICATED"
    assert "the token is not known" in refused.message
    assert [line["event"] for line in served.lines.read_back()] == ["call_denied", "rpc_error"]
    assert served.count_calls("UNAUTHENTICATED", caller="") == 1


@pytest.mark.req("CH-65", "TQ-165")
async def test_a_denial_is_logged_and_counted() -> None:
    """A proven caller outside the matrix is denied before the handler, with its name in the log."""
    served = Served(find_print)
    assert (await served.expect_refusal(caller="printer")).grpc == "PERMISSION_DENIED"
    denied, error = served.lines.read_back()
    assert (denied["event"], denied["caller"], denied["film_id"]) == ("call_denied", "printer", "x")
    assert (error["event"], error["grpc_code"]) == ("rpc_error", "PERMISSION_DENIED")
    assert served.count_calls("PERMISSION_DENIED", caller="printer") == 1


@pytest.mark.req("TQ-061", "TQ-167", "CH-64")
async def test_an_illegal_transition_has_an_event_of_its_own() -> None:
    """A pair of states that is no edge is invalid; the log line has the film."""
    served = Served(find_print, "MoveFilm")
    request = m.MoveFilmRequest(
        film_id="x", expected_state=m.DEVELOPED, next_state=m.DEVELOPING, actor="foreman"
    )
    refused = await served.expect_refusal(caller="foreman", request=request)
    assert refused.message == "no film goes from DEVELOPED to DEVELOPING"
    (invalid,) = served.lines.read_back("invalid_transition")
    assert invalid["film_id"] == "x"


@pytest.mark.req("TQ-163", "TQ-165")
async def test_a_refusal_is_one_line_with_all_that_is_known() -> None:
    """Each answer that is not OK leaves one rpc_error with method, code, message, film and caller."""
    served = Served(make_failing_handler(PrintLost(film_id="x", state="DEVELOPED")))
    await served.expect_refusal()
    (line,) = served.lines.read_back()
    assert line == {
        "ts_ms": 1_000_000,
        "level": "WARNING",
        "service": "test",
        "method": "ArchiveService.GetPrint",
        "event": "rpc_error",
        "message": "x is DEVELOPED but its print is lost",
        "request_id": "id-1",
        "caller": "desk",
        "film_id": "x",
        "grpc_code": "UNAVAILABLE",
        "condition": "print_lost",
    }


@pytest.mark.req("TQ-154")
@pytest.mark.parametrize(
    "error", [KeyError("secret"), RuntimeError("secret"), GuardBreach("secret"), TimeoutError("secret")]
)
async def test_the_unexpected_leaks_nothing(error: Exception) -> None:
    """The caller gets a correlation id and no details; the log has the traceback under it."""
    served = Served(make_failing_handler(error))
    refused = await served.expect_refusal(seconds=5.0)
    assert (refused.grpc, refused.message) == ("INTERNAL", "call the owner and say id-1")
    (fault,) = served.lines.read_back("rpc_fault")
    assert (fault["correlation_id"], fault["film_id"]) == ("id-1", "x")
    assert "secret" in fault["message"] and "Traceback" in fault["detail"]
    assert served.count_calls("INTERNAL") == 1


@pytest.mark.req("CH-77", "TQ-151", "TQ-154")
@pytest.mark.parametrize("code", CODES)
async def test_a_failed_call_downstream_is_converted(code: str) -> None:
    """Three codes pass through, two mean that something is unavailable, and the rest is our own fault."""
    served = Served(make_failing_handler(CallFailed(code, "the text of another", "LedgerService")))
    refused = await served.expect_refusal(seconds=5.0)
    if code in PASSED_ON:
        assert (refused.grpc, refused.message) == (code, "the text of another")
    elif code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        assert (refused.grpc, refused.message) == ("UNAVAILABLE", "LedgerService does not answer")
    else:
        assert refused.grpc == "INTERNAL"
        assert "the text of another" not in refused.message


@pytest.mark.req("CH-77", "TQ-153")
@pytest.mark.parametrize("error", [CallFailed("UNAVAILABLE", "x", "Y"), TimeoutError()])
async def test_an_expired_deadline_is_reported_as_such(error: Exception) -> None:
    """When the caller's own deadline has expired, that is its answer."""
    served = Served(make_failing_handler(error))
    refused = await served.expect_refusal(seconds=0.0)
    assert (refused.grpc, refused.message) == (
        "DEADLINE_EXCEEDED",
        "ArchiveService.GetPrint took too long",
    )


@pytest.mark.req("CH-77")
async def test_a_condition_of_another_component_passes_with_its_words() -> None:
    """A received condition whose code passes through keeps its name and message, even late."""
    served = Served(make_failing_handler(FilmUnknown.from_remote("no film x", "LedgerService")))
    refused = await served.expect_refusal(seconds=0.0)
    assert isinstance(refused, Condition)
    assert (refused.code, refused.message) == ("film_unknown", "no film x")


@pytest.mark.req("TQ-153", "TQ-165")
@pytest.mark.parametrize(("seconds", "code"), [(1.0, "CANCELLED"), (0.0, "DEADLINE_EXCEEDED")])
async def test_a_caller_that_stops_waiting_is_counted(seconds: float, code: str) -> None:
    """A caller that leaves before the answer is logged, by deadline or by cancellation."""

    async def wait(_request: Any, _call: Call) -> None:
        await asyncio.Event().wait()

    served = Served(wait)
    asking = asyncio.create_task(served.ask(seconds=seconds))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    (line,) = served.lines.read_back("rpc_error")
    assert line["grpc_code"] == code
    assert served.count_calls(code) == 1


class Slow:
    """A handler with a step after which it can be seen that it went on."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go_on = asyncio.Event()
        self.call: Call | None = None
        self.ended = False
        self._error = error

    async def __call__(self, _request: Any, call: Call) -> m.GetPrintResponse:
        self.call = call
        await self.go_on.wait()
        self.ended = True
        if self._error is not None:
            raise self._error
        return m.GetPrintResponse()


@pytest.mark.parametrize("detached", [False, True])
async def test_a_detached_handler_ends_after_its_caller_is_gone(detached: bool) -> None:
    """A method with steps to carry through goes on when its caller leaves, and can be waited for."""
    slow = Slow()
    served = Served(slow, detached=detached)
    asking = asyncio.create_task(served.ask())
    for _ in range(3):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    slow.go_on.set()
    await served.endpoint.drain()
    assert slow.ended == detached
    assert slow.call is not None and slow.call.gone == detached


@pytest.mark.req("TQ-154")
async def test_a_fault_after_the_caller_is_gone_is_logged() -> None:
    """A fault in a call whose caller is gone still leaves its traceback."""
    slow = Slow(KeyError("late"))
    served = Served(slow, detached=True)
    asking = asyncio.create_task(served.ask())
    for _ in range(3):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    slow.go_on.set()
    await served.endpoint.drain()
    await asyncio.sleep(0)
    assert [line["event"] for line in served.lines.read_back()] == ["rpc_error", "rpc_fault"]


@pytest.mark.req("TQ-154")
@pytest.mark.parametrize("turns", range(6))
async def test_a_fault_in_the_moment_in_which_the_caller_goes_is_logged_once(turns: int) -> None:
    """Whichever of the two comes first, the traceback is there and is there once."""
    slow = Slow(KeyError("late"))
    served = Served(slow, detached=True)
    asking = asyncio.create_task(served.ask())
    for _ in range(3):
        await asyncio.sleep(0)
    slow.go_on.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises((asyncio.CancelledError, Failure)):
        await asking
    await served.endpoint.drain()
    for _ in range(3):
        await asyncio.sleep(0)
    assert [line["event"] for line in served.lines.read_back()].count("rpc_fault") == 1


def test_every_method_of_a_service_has_its_endpoint() -> None:
    """The endpoints of a handler are those of its service's table, by path, under its component's name."""
    service = SYSTEM.services["ArchiveService"]
    handler = SimpleNamespace(store_print=find_print, get_print=find_print)
    world = HandWorld()
    found = make_endpoints(SYSTEM, {"ArchiveService": handler}, world, Log("node", "INFO", world), Metrics())
    assert sorted(found) == sorted(method.path for method in service.methods)
