"""The channel within a process: like the network to its caller, with the same guard and nothing copied."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from generated.studio.clients import ArchiveServiceClient
from generated.studio.errors import FilmUnknown
from generated.studio.messages import (
    DEVELOPED,
    WITHDRAWN,
    GetPrintRequest,
    GetPrintResponse,
    StorePrintRequest,
)
from generated.studio.system import SYSTEM
from runtime.call import Call
from runtime.call.conditions import CallFailed, Failure
from runtime.call.endpoint import Endpoint, make_endpoints
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.simulation import SimulatedWorld, simulate
from runtime.transport.in_process import LocalChannel
from tests.runtime.hand_world import Lines


class Local:
    """The archive in the same process, with a handler of the test's own."""

    def __init__(self, world: SimulatedWorld, handle: Any, principal: str = "desk") -> None:
        self.world = world
        self.log = Log("node", "INFO", world, Lines())
        handler = SimpleNamespace(get_print=handle, store_print=handle)
        self.endpoints: dict[str, Endpoint] = make_endpoints(
            SYSTEM, {"ArchiveService": handler}, world, self.log, Metrics()
        )
        self.client = ArchiveServiceClient(LocalChannel(SYSTEM, self.endpoints, principal))

    def call(self, seconds: float | None = None) -> Call:
        deadline = None if seconds is None else self.world.monotonic() + seconds
        return Call(world=self.world, log=self.log, caller="desk", deadline=deadline, request_id="id-1")

    async def get(self, seconds: float | None = None) -> GetPrintResponse:
        return await self.client.get_print(GetPrintRequest(film_id="x"), self.call(seconds))


def locally(scenario: Callable[[SimulatedWorld], Coroutine[Any, Any, None]]) -> None:
    simulate(scenario)


def test_an_answer_is_handed_over_as_it_is() -> None:
    """Request and response are the very objects, and the call keeps its id and its remaining time."""
    given = GetPrintResponse(found=True)
    seen: list[tuple[object, Call]] = []

    async def handle(request: object, call: Call) -> GetPrintResponse:
        seen.append((request, call))
        return given

    async def scenario(world: SimulatedWorld) -> None:
        local, request = Local(world, handle), GetPrintRequest(film_id="x")
        assert await local.client.get_print(request, local.call(0.4)) is given
        ((sent, call),) = seen
        assert sent is request
        assert (call.caller, call.request_id, call.remaining()) == ("desk", "id-1", 0.4)

    locally(scenario)


@pytest.mark.req("CH-65", "TQ-023")
@pytest.mark.parametrize(
    ("principal", "status", "code"),
    [
        ("printer", WITHDRAWN, "PERMISSION_DENIED"),
        ("desk", DEVELOPED, "PERMISSION_DENIED"),
        ("visitor", WITHDRAWN, "UNAUTHENTICATED"),
    ],
)
def test_the_guard_stands_within_a_process_too(principal: str, status: Any, code: str) -> None:
    """Components of one process are different principals, too."""

    async def handle(_request: object, _call: Call) -> None:
        raise AssertionError("the handler must not be reached")

    async def scenario(world: SimulatedWorld) -> None:
        local = Local(world, handle, principal)
        with pytest.raises(Failure) as denied:
            await local.client.store_print(StorePrintRequest(film_id="x", final_state=status), local.call())
        assert denied.value.grpc == code

    locally(scenario)


def test_a_condition_arrives_as_if_it_had_travelled() -> None:
    """The caller gets the condition by its class, with its origin, and without the handler's traceback."""

    async def handle(_request: object, _call: Call) -> None:
        raise FilmUnknown(film_id="x")

    async def scenario(world: SimulatedWorld) -> None:
        with pytest.raises(FilmUnknown) as failed:
            await Local(world, handle).get()
        assert (failed.value.message, failed.value.origin) == ("no film x", "ArchiveService")
        assert failed.value.fields == {}

    locally(scenario)


def test_the_failure_of_a_third_keeps_its_code_and_not_its_origin() -> None:
    """A failure that passes through a component has that component as its origin."""

    async def handle(_request: object, _call: Call) -> None:
        raise CallFailed("NOT_FOUND", "nothing there", "LedgerService")

    async def scenario(world: SimulatedWorld) -> None:
        with pytest.raises(CallFailed) as failed:
            await Local(world, handle).get()
        assert (failed.value.grpc, failed.value.origin) == ("NOT_FOUND", "ArchiveService")

    locally(scenario)


def test_a_fault_arrives_without_its_details() -> None:
    """What breaks in one component is an internal failure to the other."""

    async def handle(_request: object, _call: Call) -> None:
        raise KeyError("secret")

    async def scenario(world: SimulatedWorld) -> None:
        with pytest.raises(Failure) as failed:
            await Local(world, handle).get()
        assert failed.value.grpc == "INTERNAL"
        assert "secret" not in failed.value.message

    locally(scenario)


@pytest.mark.req("CH-73", "TQ-161")
@pytest.mark.parametrize(("seconds", "at_most"), [(None, 1.0), (0.3, 0.3), (9.0, 1.0)])
def test_an_attempt_ends_at_its_deadline(seconds: float | None, at_most: float) -> None:
    """The smaller of the method's deadline and the remaining time ends an attempt, and stops the callee."""
    ended: list[float] = []

    async def handle(_request: object, call: Call) -> None:
        try:
            await call.world.sleep(60)
        finally:
            ended.append(call.world.monotonic())

    async def scenario(world: SimulatedWorld) -> None:
        local = Local(world, handle)
        with pytest.raises(CallFailed) as failed:
            await local.get(seconds)
        assert failed.value.grpc == "DEADLINE_EXCEEDED"
        assert ended[0] == pytest.approx(at_most)

    locally(scenario)


def test_a_method_without_permissions_can_be_bound() -> None:
    """The guard of the callee decides, so a client for a method without a row is no mistake by itself."""

    async def scenario(world: SimulatedWorld) -> None:
        local = Local(world, None)
        channel = LocalChannel(replace(SYSTEM, matrix={}), local.endpoints, "nobody")
        with pytest.raises(Failure) as denied:
            await ArchiveServiceClient(channel).get_print(GetPrintRequest(film_id="x"), local.call())
        assert denied.value.grpc == "PERMISSION_DENIED"

    locally(scenario)
