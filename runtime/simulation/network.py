"""Simulated network: delays and injected faults of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from google.protobuf.message import Message

from runtime.call.call_policy import apply_call_policy
from runtime.call.conditions import CallFailed, Failure
from runtime.call.context import Call, Invoke, Request, Response
from runtime.model.system import Method, System
from runtime.simulation.world import SimulatedWorld


class Fault(Enum):
    """Faults of calls; the caller of each but the last gets a failure."""

    BEFORE = "the callee never sees it"
    AFTER = "the callee carries it out and the answer is lost"
    TIMEOUT = "the callee carries it out and the answer comes after the deadline"
    LATE = "it reaches the callee after its caller has given up"
    TWICE = "it reaches the callee twice"


@dataclass(slots=True)
class Exchange:
    """One attempt of a call, and its outcome."""

    number: int
    at: float
    principal: str
    method: Method
    request: Message
    fault: Fault | None = None
    answers: list[Message] = field(default_factory=list)
    """The responses of the callee, whether they arrived or not."""
    failure: Failure | None = None
    """The failure that the caller got."""

    @property
    def name(self) -> str:
        return self.method.name


Plan = Callable[[Exchange], Fault | Message | None]
"""Chooses the fault of an attempt, none, or a response without a call of the callee."""


class Host(Protocol):
    """A node, as the network sees it."""

    def serve(
        self, path: str, principal: str, data: bytes, patience: float, call: Call
    ) -> tuple[asyncio.Future[bytes], asyncio.Task[None]]:
        """Start to serve a call; the future fails when the node crashes. Raises OSError if it is down."""
        ...

    def spawn(self, work: Any) -> asyncio.Task[Any]:
        """Run a task that is cancelled with the node."""
        ...


def no_faults(_: Exchange) -> None:
    """The plan of a network without faults."""


class Network:
    """The network between nodes. Its plan may be changed at any time."""

    def __init__(self, world: SimulatedWorld, *, slowest: float = 0.002) -> None:
        self.plan: Plan = no_faults
        self.exchanges: list[Exchange] = []
        self._world = world
        self._chance = world.chance("network")
        self._slowest = slowest

    def record_attempt(self, principal: str, method: Method, request: Message) -> Exchange:
        """Record an attempt and choose its fault."""
        copy = method.request.FromString(request.SerializeToString())
        number = len(self.exchanges)
        exchange = Exchange(number, self._world.monotonic(), principal, method, copy)
        self.exchanges.append(exchange)
        fate = self.plan(exchange)
        if isinstance(fate, Message):
            exchange.answers.append(fate)
        else:
            exchange.fault = fate
        return exchange

    async def carry(self, exchange: Exchange, host: Host | None, patience: float, call: Call) -> bytes:
        """Deliver a request to its host and the response back, as its fault allows."""
        if exchange.answers:
            return exchange.answers[0].SerializeToString()
        fault = exchange.fault
        await self.delay()
        if host is None or fault is Fault.BEFORE:
            raise _make_unavailable(exchange, "cannot be reached")
        if fault is Fault.LATE:
            host.spawn(self._deliver_later(exchange, host, patience + self._chance.uniform(0.05, 1.0), call))
            await asyncio.sleep(patience)
        if fault is Fault.TWICE:
            host.spawn(self._deliver_later(exchange, host, 0.0, call))
        data = await self._deliver(exchange, host, patience, call)
        await self.delay()
        if fault is Fault.AFTER:
            raise _make_unavailable(exchange, "broke off before it answered")
        if fault is Fault.TIMEOUT:
            await asyncio.sleep(patience)
        return data

    async def delay(self) -> None:
        """Wait for the latency of one direction."""
        await asyncio.sleep(self._chance.uniform(0.0, self._slowest))

    async def _deliver_later(self, exchange: Exchange, host: Host, seconds: float, call: Call) -> None:
        """Deliver a call whose response is dropped."""
        await asyncio.sleep(seconds)
        await self.delay()
        with suppress(Failure):
            await self._deliver(exchange, host, exchange.method.policy.deadline_ms / 1000, call)

    async def _deliver(self, exchange: Exchange, host: Host, patience: float, call: Call) -> bytes:
        method = exchange.method
        try:
            reply, work = host.serve(
                method.path, exchange.principal, exchange.request.SerializeToString(), patience, call
            )
        except OSError:
            raise _make_unavailable(exchange, "is down") from None
        try:
            data = await reply
        except asyncio.CancelledError:
            work.cancel()
            raise
        exchange.answers.append(method.response.FromString(data))
        return data


class NetworkChannel:
    """A channel to other nodes, as one principal. All messages are serialised."""

    def __init__(
        self,
        system: System,
        network: Network,
        principal: str,
        host_of: Callable[[Method], Host | None],
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        self._system = system
        self._network = network
        self._principal = principal
        self._host_of = host_of
        self._alive = alive

    def bind(
        self, method: Method, _request: type[Request], _response: type[Response], /
    ) -> Invoke[Request, Response]:
        """Bind a method to a function."""
        permission = self._system.matrix.get(method.path, {}).get(self._principal)
        service = method.service.rpartition(".")[2]

        async def attempt(message: Any, call: Call, patience: float) -> Any:
            if not self._alive():
                raise asyncio.CancelledError("its node is down")
            exchange = self._network.record_attempt(self._principal, method, message)
            try:
                async with asyncio.timeout(patience):
                    data = await self._network.carry(exchange, self._host_of(method), patience, call)
            except TimeoutError:
                exchange.failure = CallFailed("DEADLINE_EXCEEDED", f"{method} took too long", service)
                raise exchange.failure from None
            except Failure as failure:
                exchange.failure = failure
                raise
            return method.response.FromString(data)

        return apply_call_policy(method, attempt, self._principal, permission.mode if permission else None)


def _make_unavailable(exchange: Exchange, problem: str) -> CallFailed:
    service = exchange.method.service.rpartition(".")[2]
    return CallFailed("UNAVAILABLE", f"{service} {problem}", service)
