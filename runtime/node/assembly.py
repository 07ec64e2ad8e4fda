"""What a node is made of, wherever it runs: settings, log, handlers, and the endpoints that lead to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from runtime.call.context import Call, Channel
from runtime.call.endpoint import Endpoint, endpoints
from runtime.call.routing import OwningWorld
from runtime.model.system import Deployment, Node, System
from runtime.node.settings import read, strangers
from runtime.node.wiring import Wiring, needs_no_handler
from runtime.observe.log import SETTING_UNKNOWN, Log, Stream
from runtime.observe.metrics import Metrics
from runtime.observe.tracing import Tracer
from runtime.stores.node_stores import Stores
from runtime.transport.in_process import LocalChannel
from runtime.world import World

Elsewhere = Callable[["Assembly", str, str], Channel]
"""Takes the calling component and a service that another node offers, gives the channel to it."""


class Assembly:
    """One node, put together from its tables and its environment. Nothing runs yet."""

    def __init__(
        self,
        system: System,
        deployment: Deployment,
        table: Node,
        environ: Mapping[str, str],
        world: World,
        elsewhere: Elsewhere,
        *,
        name: str | None = None,
        stream: Stream | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.system = system
        self.deployment = deployment
        self.table = table
        variables = [system.variables[each] for each in table.variables]
        self.values = read(variables, system.variable_rules, environ, table.defaults)
        self.hosts = tuple(each for each in table.hosts if not self._is_left_out(each))
        """The components that run here."""
        self.world = self._owning(world)
        self.log = Log(name or table.name, self.role("log_level") or "INFO", world, stream)
        self.metrics = Metrics()
        for stranger in strangers(system.variable_prefix, system.variables, environ):
            self.log.write(SETTING_UNKNOWN, stranger)
        self.log.counts = self.metrics.events(system.events)
        self.endpoints: dict[str, Endpoint] = {}
        self._elsewhere = elsewhere
        self.stores = Stores(system, self.world, self.metrics, self.values, name or table.name)
        self.handlers = self._make_handlers()
        offered = {
            each: self.handlers[service.component]
            for each, service in system.services.items()
            if service.component in self.handlers
        }
        self.endpoints.update(
            endpoints(system, offered, self.world, self.log, self.metrics, tracer, self.values)
        )

    def role(self, role: str) -> Any:
        """The value of the variable that plays one of the engine's roles."""
        for name in self.table.variables:
            if self.system.variables[name].role == role:
                return self.values[name]
        return None

    async def open(self) -> None:
        """Opens what the stores need. To be called before anything is served."""
        await self.stores.open(self.log, self.hosts)

    async def close(self) -> None:
        """Closes it again, after everything has stopped."""
        await self.stores.close()

    async def problem(self) -> str | None:
        """Why the node cannot do its work now; None when it can."""
        return await self.stores.problem()

    def background(self, stopping: asyncio.Event) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """What the components do without being called, by component."""
        for component, handler in self.handlers.items():
            if (run := getattr(handler, "run", None)) is not None:
                call = Call(world=self.world, log=self.log.of(component), caller=component)
                yield component, run(call, stopping)
        for component in self.hosts:
            call = Call(world=self.world, log=self.log.of(component), caller=component)
            for work in self.stores.sweepers(component, call, stopping):
                yield component, work

    def _is_left_out(self, component: str) -> bool:
        variable = self.table.unless.get(component)
        return variable is not None and bool(self.values[variable])

    def _make_handlers(self) -> dict[str, Any]:
        wiring = Wiring(self.system, self.world, self.values, self._channel_for, self.stores.of)
        return {
            component: wiring.make(component)
            for component in self.hosts
            if not needs_no_handler(self.system, component)
        }

    def _channel_for(self, component: str, service: str) -> Channel:
        if self.system.services[service].component in self.hosts:
            return LocalChannel(self.system, self.endpoints, component)
        return self._elsewhere(self, component, service)

    def _owning(self, world: World) -> World:
        routing = self.deployment.routing
        if routing is None:
            return world
        return OwningWorld(
            world, self.values[routing.index_variable], len(self.values[routing.order_variable])
        )
