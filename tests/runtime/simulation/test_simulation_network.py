"""The simulated network: it fails exactly as planned, and shares nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from generated.studio.clients import LedgerServiceClient, RackServiceClient
from generated.studio.messages import (
    HangFilmRequest,
    HangFilmResponse,
    ListNotesRequest,
    NoteFilmRequest,
    NoteFilmResponse,
    Order,
    TakeFilmRequest,
)
from generated.studio.system import SYSTEM
from runtime.call.conditions import CallFailed, Failure
from runtime.simulation import (
    Exchange,
    Fault,
    SimulatedDeployment,
    SimulatedWorld,
    simulate,
)

CREATE = NoteFilmRequest(order=Order(paper="x"))
KEYED = NoteFilmRequest(order=Order(paper="x"), order_number="key")


class Nodes:
    """A deployment of nodes that make no calls by themselves."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.deployment = SimulatedDeployment(SYSTEM, "rooms", world, without=("printer", "foreman", "desk"))
        self.ledger = LedgerServiceClient(self.deployment.channel("desk"))
        self.rack = RackServiceClient(self.deployment.channel("desk"))

    async def create(
        self, request: NoteFilmRequest = CREATE, seconds: float | None = None
    ) -> NoteFilmResponse:
        return await self.ledger.note_film(request, self.deployment.call("desk", seconds))

    async def hang(self, film_id: str = "x") -> HangFilmResponse:
        return await self.rack.hang_film(HangFilmRequest(film_id=film_id), self.deployment.call("desk"))

    async def count_records(self) -> int:
        """How many records the ledger has."""
        answer = await self.ledger.list_notes(ListNotesRequest(), self.deployment.call("desk"))
        return len(answer.films)

    def fail_next(self, fault: Fault) -> None:
        faults = [fault]

        def plan(_: Exchange) -> Fault | None:
            return faults.pop() if faults else None

        self.deployment.network.plan = plan


def with_nodes(scenario: Callable[[Nodes], Coroutine[Any, Any, None]], seed: int = 0) -> Nodes:
    async def run(world: SimulatedWorld) -> Nodes:
        nodes = Nodes(world)
        await scenario(nodes)
        await nodes.deployment.stop()
        return nodes

    return simulate(run, seed)


def test_nothing_is_shared_across_the_network() -> None:
    """The callee gets a copy of the request, and so does the record of the exchange."""

    async def scenario(nodes: Nodes) -> None:
        request = NoteFilmRequest(order=Order(paper="before"))
        answer = await nodes.create(request)
        request.order.paper = "after"
        answer.film_id = "changed"
        (kept,) = nodes.deployment.network.exchanges
        assert isinstance(kept.request, NoteFilmRequest)
        assert kept.request.order.paper == "before"
        assert kept.answers != [answer]

    with_nodes(scenario)


def test_the_guard_stands_in_the_simulation_too() -> None:
    """A caller outside the matrix is denied as it would be over the network."""

    async def scenario(nodes: Nodes) -> None:
        call = nodes.deployment.call("printer")
        ledger = LedgerServiceClient(nodes.deployment.channel("printer"))
        with pytest.raises(Failure) as denied:
            await ledger.note_film(CREATE, call)
        assert denied.value.grpc == "PERMISSION_DENIED"
        assert denied.value.origin == "LedgerService"

    with_nodes(scenario)


@pytest.mark.parametrize(
    ("fault", "code", "records_at_once", "records_later"),
    [
        (Fault.BEFORE, "UNAVAILABLE", 0, 0),
        (Fault.AFTER, "UNAVAILABLE", 1, 1),
        (Fault.TIMEOUT, "DEADLINE_EXCEEDED", 1, 1),
        (Fault.LATE, "DEADLINE_EXCEEDED", 0, 1),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else "",
)
def test_each_fault_has_its_effect(fault: Fault, code: str, records_at_once: int, records_later: int) -> None:
    """Each fault gives its caller its code, and the callee has or has not done its work."""

    async def scenario(nodes: Nodes) -> None:
        nodes.fail_next(fault)
        with pytest.raises(CallFailed) as failed:
            await nodes.create()
        assert failed.value.grpc == code
        assert nodes.deployment.network.exchanges[0].fault is fault
        assert await nodes.count_records() == records_at_once
        await nodes.deployment.world.sleep(2)
        assert await nodes.count_records() == records_later

    with_nodes(scenario)


def test_a_call_that_arrives_twice_is_carried_out_twice() -> None:
    """The caller notices nothing, and the callee does the work again."""

    async def scenario(nodes: Nodes) -> None:
        nodes.fail_next(Fault.TWICE)
        await nodes.create()
        await nodes.deployment.world.sleep(1)
        assert await nodes.count_records() == 2
        assert len(nodes.deployment.network.exchanges[0].answers) == 2

    with_nodes(scenario)


def test_a_plan_may_answer_for_the_callee() -> None:
    """An answer in the plan reaches the caller, and the callee is not asked."""

    async def scenario(nodes: Nodes) -> None:
        nodes.deployment.network.plan = lambda _: NoteFilmResponse(film_id="made up")
        assert (await nodes.create()).film_id == "made up"
        nodes.deployment.network.plan = lambda _: None
        assert await nodes.count_records() == 0

    with_nodes(scenario)


def test_retries_are_attempts_of_their_own() -> None:
    """A call that may be repeated is, each attempt an exchange with a fate of its own."""

    async def scenario(nodes: Nodes) -> None:
        nodes.fail_next(Fault.AFTER)
        assert (await nodes.create(KEYED)).known
        first, second = nodes.deployment.network.exchanges
        assert (first.fault, second.fault) == (Fault.AFTER, None)
        assert await nodes.count_records() == 1

    with_nodes(scenario)


def test_a_crash_takes_the_memory_and_breaks_the_calls() -> None:
    """A call to a node that dies fails at once; a restarted node has no state."""

    async def scenario(nodes: Nodes) -> None:
        await nodes.create()
        rack = RackServiceClient(nodes.deployment.channel("foreman"))
        call = nodes.deployment.call("foreman")
        waiting = asyncio.create_task(rack.take_film(TakeFilmRequest(printer_id="w"), call))
        await nodes.deployment.world.sleep(0.1)
        for name in ("ledger", "rack"):
            nodes.deployment.crash(name)
        with pytest.raises(CallFailed, match="went down"):
            await waiting
        assert nodes.deployment.world.monotonic() < 0.2
        with pytest.raises(CallFailed, match="cannot be reached"):
            await nodes.create()
        nodes.deployment.start("ledger")
        assert await nodes.count_records() == 0

    with_nodes(scenario)


def test_a_call_that_is_sent_to_a_dying_node_fails() -> None:
    """A request that was sent and has not arrived fails."""

    async def scenario(nodes: Nodes) -> None:
        calling = asyncio.create_task(nodes.create())
        await asyncio.sleep(0)
        nodes.deployment.crash("ledger")
        with pytest.raises(CallFailed, match="is down"):
            await calling

    with_nodes(scenario)


def test_a_dead_node_says_nothing_more() -> None:
    """The last actions of a crashed node reach neither the log nor the network."""

    async def scenario(world: SimulatedWorld) -> None:
        deployment = SimulatedDeployment(SYSTEM, "rooms", world, environ={"STUDIO_LOG": "DEBUG"})
        await world.sleep(0.1)
        deployment.crash("printer")
        lines, calls = len(deployment.lines), len(deployment.network.exchanges)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [line for line in deployment.log()[lines:] if line["service"] == "printer"] == []
        assert [each for each in deployment.network.exchanges[calls:] if each.principal == "printer"] == []
        await deployment.stop()

    simulate(scenario)


def test_replicas_are_nodes_of_their_own() -> None:
    """Every replica of a node is started, and each draws ids that it owns."""

    async def scenario(world: SimulatedWorld) -> None:
        deployment = SimulatedDeployment(SYSTEM, "booths", world, without=["booth-5"])
        assert list(deployment.nodes) == [f"booth-{place}" for place in range(5)]
        notes = [
            await LedgerServiceClient(deployment.channel("desk", node=name)).note_film(
                CREATE, deployment.call("desk")
            )
            for name in deployment.nodes
        ]
        assert len({note.film_id for note in notes}) == 5
        with pytest.raises(ValueError, match="runs already"):
            deployment.start("booth-0")
        await deployment.stop()

    simulate(scenario)
