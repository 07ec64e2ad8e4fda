"""Assembly of a node: settings, log, metrics, stores, handlers and endpoints, real or simulated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from runtime.call.context import Call, Channel
from runtime.call.endpoint import Endpoint, make_endpoints
from runtime.call.routing import OwningWorld
from runtime.model.system import Deployment, Node, System
from runtime.node.settings import find_unknown_variables, read
from runtime.node.wiring import Wiring, needs_no_handler
from runtime.observe.log import SETTING_UNKNOWN, Log, LogStream
from runtime.observe.metrics import Metrics
from runtime.observe.tracing import Tracer
from runtime.stores.node_stores import Stores
from runtime.transport.in_process import LocalChannel
from runtime.world import World

RemoteChannelFactory = Callable[["Assembly", str, str], Channel]
"""Takes the calling component and a service of another node; makes the channel to it."""


class Assembly:
    """The parts of a node, made from its tables and its environment. Nothing runs yet."""

    def __init__(
        self,
        system: System,
        deployment: Deployment,
        table: Node,
        environ: Mapping[str, str],
        world: World,
        make_remote_channel: RemoteChannelFactory,
        *,
        name: str | None = None,
        stream: LogStream | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.system = system
        self.deployment = deployment
        self.table = table
        variables = system.variables_of(deployment, table)
        self.values = read(variables, system.variable_rules, environ, table.defaults)
        self.hosts = tuple(each for each in table.hosts if not self._is_excluded(each))
        """The components that run here."""
        self.world = self._own_ids(world)
        self.log = Log(name or table.name, self.role("log_level") or "INFO", world, stream)
        self.metrics = Metrics()
        for problem in find_unknown_variables(system.variable_prefix, system.variables, environ):
            self.log.write(SETTING_UNKNOWN, problem)
        self.log.counts = self.metrics.event_counters(system.events)
        self.endpoints: dict[str, Endpoint] = {}
        self._make_remote_channel = make_remote_channel
        self.stores = Stores(
            system, self.world, self.metrics, self.values, name or table.name, engine=deployment.engine
        )
        self.handlers = self._make_handlers()
        served = {
            each: self.handlers[service.component]
            for each, service in system.services.items()
            if service.component in self.handlers
        }
        self.endpoints.update(
            make_endpoints(system, served, self.world, self.log, self.metrics, tracer, self.values)
        )

    def role(self, role: str) -> Any:
        """Return the value of the variable with a role of the engine; None if the node has none."""
        for name in self.table.variables:
            if self.system.variables[name].role == role:
                return self.values[name]
        return None

    async def open(self) -> None:
        """Open the stores. To be called before anything is served."""
        await self.stores.open(self.log, self.hosts)

    async def close(self) -> None:
        """Close the stores, after everything has stopped."""
        await self.stores.close()

    async def find_problem(self) -> str | None:
        """Return why the node is not ready; None if it is."""
        return await self.stores.health()

    def background(self, stopping: asyncio.Event) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Iterate over the background work of the components: their run() and their sweepers."""
        for component, handler in self.handlers.items():
            if (run := getattr(handler, "run", None)) is not None:
                call = Call(world=self.world, log=self.log.of(component), caller=component)
                yield component, run(call, stopping)
        for component in self.hosts:
            call = Call(world=self.world, log=self.log.of(component), caller=component)
            for work in self.stores.sweepers(component, call, stopping):
                yield component, work

    def _is_excluded(self, component: str) -> bool:
        variable = self.table.unless.get(component)
        return variable is not None and bool(self.values[variable])

    def _make_handlers(self) -> dict[str, Any]:
        wiring = Wiring(self.system, self.world, self.values, self._channel_for, self.stores)
        return {
            component: wiring.make(component)
            for component in self.hosts
            if not needs_no_handler(self.system, component)
        }

    def _channel_for(self, component: str, service: str) -> Channel:
        if self.system.services[service].component in self.hosts:
            return LocalChannel(self.system, self.endpoints, component)
        return self._make_remote_channel(self, component, service)

    def _own_ids(self, world: World) -> World:
        routing = self.deployment.routing
        if routing is None:
            return world
        return OwningWorld(
            world, self.values[routing.index_variable], len(self.values[routing.order_variable])
        )
