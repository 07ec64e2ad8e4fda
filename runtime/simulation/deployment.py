"""Simulated nodes of a deployment, assembled from its tables as separate processes would be."""

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
from runtime.transport.in_process import to_remote_failure


class SimulatedNode:
    """One node from its start to its stop or crash. Its memory is lost with it."""

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
            stream=_NodeStream(self),
        )
        self.handlers = self._parts.handlers
        self.log = self._parts.log
        self._background = [self.spawn(work) for _, work in self._parts.background(self._stopping)]

    def serve(
        self, path: str, principal: str, data: bytes, patience: float, call: Call
    ) -> tuple[asyncio.Future[bytes], asyncio.Task[None]]:
        """Start to serve a call."""
        if not self.alive:
            raise OSError(f"{self.name} is down")
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._replies[reply] = None
        reply.add_done_callback(self._replies.pop)
        return reply, self.spawn(self._answer(reply, path, principal, data, patience, call))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task that is cancelled with the node, together with all tasks that it starts."""
        context = copy_context()
        context.run(OWNER.set, self._tasks)
        return context.run(asyncio.get_running_loop().create_task, work)

    def crash(self) -> None:
        """Crash: cancel all tasks. Calls in flight fail with UNAVAILABLE."""
        self.alive = False
        for reply in list(self._replies):
            if not reply.done():
                reply.set_exception(CallFailed("UNAVAILABLE", f"{self.name} went down", self.name))
        for task in list(self._tasks):
            task.cancel()

    async def stop(self) -> None:
        """Drain and stop in order."""
        self._stopping.set()
        await asyncio.gather(*self._background)
        await asyncio.gather(*(each.drain() for each in self._parts.endpoints.values()))
        self.crash()
        await self.wait_until_gone()

    async def wait_until_gone(self) -> None:
        """Wait until all tasks of a stopped node have ended."""
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
                reply.set_exception(to_remote_failure(failure, endpoint.method.service.rpartition(".")[2]))
        else:
            if not reply.done():
                reply.set_result(answer.SerializeToString())

    def _environ(self, table: NodeTable, place: int) -> dict[str, str]:
        """Return the variables that a launcher would set: addresses of other nodes, and its index."""
        addresses = {variable: f"{target}:1" for variable, target in table.upstreams.items()}
        if (routing := self._deployment.table.routing) is not None:
            nodes = [f"node-{index}:1" for index in range(table.replicas)]
            addresses |= {routing.index_variable: str(place), routing.order_variable: ",".join(nodes)}
        return {**addresses, **self._deployment.environ}


class SimulatedDeployment:
    """All nodes of one deployment. A node can be left out, stopped, crashed and restarted."""

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
        self._crashed: list[SimulatedNode] = []
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
        """Crash a node."""
        node = self.nodes.pop(name)
        node.crash()
        self._crashed.append(node)

    async def stop(self) -> None:
        """Stop all nodes, callers before their upstreams."""
        called = {target for table in self.table.nodes.values() for target in table.upstreams.values()}
        for name in sorted(self.nodes, key=lambda name: (self._places[name][0].name in called, name)):
            await self.nodes.pop(name).stop()
        for node in self._crashed:
            await node.wait_until_gone()

    def channel(
        self, principal: str, *, node: str | None = None, alive: SimulatedNode | None = None
    ) -> NetworkChannel:
        """Make a channel to the node that serves a method, or to a given one, for any principal."""

        def host_of(method: Method) -> Host | None:
            return self.nodes.get(node) if node is not None else self._find_node(method)

        return NetworkChannel(
            self.system, self.network, principal, host_of, lambda: alive is None or alive.alive
        )

    def call(self, principal: str, seconds: float | None = None) -> Call:
        """Make the context of an external call, with an overall deadline if one is given."""
        deadline = None if seconds is None else self.world.monotonic() + seconds
        log = Log(principal, "INFO", self.world, _NullStream())
        return Call(world=self.world, log=log, caller=principal, deadline=deadline)

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        """Return the log lines of all nodes in order, or those of one event."""
        lines = [json.loads(line) for line in self.lines]
        return [line for line in lines if event is None or line["event"] == event]

    def _find_node(self, method: Method) -> SimulatedNode | None:
        component = next(
            each.component for each in self.system.services.values() if each.name == method.service
        )
        hosting = (node for node in self.nodes.values() if component in node.handlers)
        return next(hosting, None)


class _NodeStream:
    """The log stream of a node while it is alive."""

    def __init__(self, node: SimulatedNode) -> None:
        self._node = node

    def write(self, text: str) -> None:
        if self._node.alive:
            self._node._deployment.lines.append(text)

    def flush(self) -> None:
        """Nothing is buffered."""


class _NullStream:
    def write(self, text: str) -> None:
        """Drop the log of external callers."""

    def flush(self) -> None:
        """Nothing is buffered."""
