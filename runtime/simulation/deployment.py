"""The nodes of a deployment, put together from its tables as separate processes would be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping, Sequence
from contextvars import copy_context
from typing import Any

from runtime.call.conditions import CallFailed, Failure
from runtime.call.context import Call
from runtime.model.system import Deployment, Method, System
from runtime.model.system import Node as NodeTable
from runtime.node.assembly import Assembly
from runtime.observe.log import Log
from runtime.simulation.loop import OWNER
from runtime.simulation.network import Host, Network, NetworkChannel
from runtime.simulation.world import SimulatedWorld
from runtime.transport.in_process import received


class SimulatedNode:
    """One node from its start to its stop or crash. What it held in memory goes with it."""

    def __init__(self, deployment: SimulatedDeployment, name: str, table: NodeTable, place: int) -> None:
        self.name = name
        self.alive = True
        self._deployment = deployment
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._replies: dict[asyncio.Future[bytes], None] = {}
        self._stopping = asyncio.Event()
        self._parts = Assembly(
            deployment.system,
            deployment.table,
            table,
            self._environ(table, place),
            deployment.world,
            lambda _parts, component, _service: deployment.channel(component, alive=self),
            name=name,
            stream=_Lines(self),
        )
        self.handlers = self._parts.handlers
        self.log = self._parts.log
        self._background = [self.spawn(work) for _, work in self._parts.background(self._stopping)]

    def serve(
        self, path: str, principal: str, data: bytes, patience: float, call: Call
    ) -> tuple[asyncio.Future[bytes], asyncio.Task[None]]:
        """Begins to answer a call."""
        if not self.alive:
            raise OSError(f"{self.name} is down")
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._replies[reply] = None
        reply.add_done_callback(self._replies.pop)
        return reply, self.spawn(self._answer(reply, path, principal, data, patience, call))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs something that ends with the node, together with all that it starts."""
        context = copy_context()
        context.run(OWNER.set, self._tasks)
        return context.run(asyncio.get_running_loop().create_task, work)

    def crash(self) -> None:
        """Ends everything at once. Whoever waits for an answer is told that there will be none."""
        self.alive = False
        for reply in list(self._replies):
            if not reply.done():
                reply.set_exception(CallFailed("UNAVAILABLE", f"{self.name} went down", self.name))
        for task in list(self._tasks):
            task.cancel()

    async def stop(self) -> None:
        """Finishes what is under way, as an orderly stop does."""
        self._stopping.set()
        await asyncio.gather(*self._background)
        await asyncio.gather(*(each.drained() for each in self._parts.endpoints.values()))
        self.crash()
        await self.gone()

    async def gone(self) -> None:
        """Returns when nothing of a node that went down is left."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(
        self,
        reply: asyncio.Future[bytes],
        path: str,
        principal: str,
        data: bytes,
        patience: float,
        call: Call,
    ) -> None:
        endpoint = self._parts.endpoints[path]
        request = endpoint.method.request.FromString(data)
        deadline = self._parts.world.monotonic() + patience
        try:
            answer = await endpoint.answer(principal, request, deadline, call.request_id, call.trace)
        except Failure as failure:
            if not reply.done():
                reply.set_exception(received(failure, endpoint.method.service.rpartition(".")[2]))
        else:
            if not reply.done():
                reply.set_result(answer.SerializeToString())

    def _environ(self, table: NodeTable, place: int) -> dict[str, str]:
        """What a launcher would set: addresses of other nodes, and its place among its replicas."""
        addresses = {variable: f"{target}:1" for variable, target in table.upstreams.items()}
        if (routing := self._deployment.table.routing) is not None:
            nodes = [f"node-{index}:1" for index in range(table.replicas)]
            addresses |= {routing.index_variable: str(place), routing.order_variable: ",".join(nodes)}
        return {**addresses, **self._deployment.environ}


class SimulatedDeployment:
    """All nodes of one deployment. A node can be left out, stopped, crashed and started anew."""

    def __init__(
        self,
        system: System,
        deployment: str,
        world: SimulatedWorld,
        *,
        environ: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
    ) -> None:
        self.system = system
        self.world = world
        self.table: Deployment = system.deployments[deployment]
        self.environ = environ or {}
        self.network = Network(world)
        self.lines: list[str] = []
        self.nodes: dict[str, SimulatedNode] = {}
        self._fallen: list[SimulatedNode] = []
        self._places = {
            f"{table.name}-{place}" if table.replicas > 1 else table.name: (table, place)
            for table in self.table.nodes.values()
            for place in range(table.replicas)
        }
        for name in self._places:
            if name not in without:
                self.start(name)

    def start(self, name: str) -> SimulatedNode:
        """Starts a node that does not run, with nothing in its memory."""
        if name in self.nodes:
            raise ValueError(f"{name} runs already")
        node = self.nodes[name] = SimulatedNode(self, name, *self._places[name])
        return node

    def crash(self, name: str) -> None:
        """Kills a node."""
        node = self.nodes.pop(name)
        node.crash()
        self._fallen.append(node)

    async def stop(self) -> None:
        """Stops all nodes, those first that others do not call."""
        called = {target for table in self.table.nodes.values() for target in table.upstreams.values()}
        for name in sorted(self.nodes, key=lambda name: (self._places[name][0].name in called, name)):
            await self.nodes.pop(name).stop()
        for node in self._fallen:
            await node.gone()

    def channel(
        self, principal: str, *, node: str | None = None, alive: SimulatedNode | None = None
    ) -> NetworkChannel:
        """The way to the node that serves a method, or to one in particular, for any principal."""

        def host_of(method: Method) -> Host | None:
            return self.nodes.get(node) if node is not None else self._serving(method)

        return NetworkChannel(
            self.system, self.network, principal, host_of, lambda: alive is None or alive.alive
        )

    def call(self, principal: str, seconds: float | None = None) -> Call:
        """The circumstances of a call from outside, with an overall limit if one is given."""
        deadline = None if seconds is None else self.world.monotonic() + seconds
        log = Log(principal, "INFO", self.world, _Nowhere())
        return Call(world=self.world, log=log, caller=principal, deadline=deadline)

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        """The log lines of all nodes in the order they were written, or those of one event."""
        lines = [json.loads(line) for line in self.lines]
        return [line for line in lines if event is None or line["event"] == event]

    def _serving(self, method: Method) -> SimulatedNode | None:
        component = next(
            each.component for each in self.system.services.values() if each.name == method.service
        )
        hosting = (node for node in self.nodes.values() if component in node.handlers)
        return next(hosting, None)


class _Lines:
    """Where a node logs to as long as it is alive."""

    def __init__(self, node: SimulatedNode) -> None:
        self._node = node

    def write(self, text: str) -> None:
        if self._node.alive:
            self._node._deployment.lines.append(text)

    def flush(self) -> None:
        """Nothing is held back."""


class _Nowhere:
    def write(self, text: str) -> None:
        """What callers outside log is nobody's business here."""

    def flush(self) -> None:
        """Nothing is held back."""
