"""One process of a deployment: settings, handlers, channels and a server, from start to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from runtime import log as events
from runtime.call import Call, Channel
from runtime.dispatch import Endpoint, endpoints
from runtime.grpc_client import GrpcChannel
from runtime.grpc_server import GrpcServer
from runtime.identity import Identity
from runtime.local import LocalChannel
from runtime.log import Log
from runtime.metrics import Metrics
from runtime.routing import OwningWorld
from runtime.settings import read
from runtime.tables import Deployment, System
from runtime.tables import Node as NodeTable
from runtime.tls import Credentials
from runtime.tracing import tracer
from runtime.wiring import Wiring, memory_stores
from runtime.world import World


class Node:
    """A node that can be started and stopped. Making one reads the settings and opens nothing."""

    def __init__(
        self,
        system: System,
        deployment: str,
        name: str,
        environ: Mapping[str, str],
        world: World,
        stream: TextIO | None = None,
    ) -> None:
        self._system = system
        self._deployment: Deployment = system.deployments[deployment]
        self._table: NodeTable = self._deployment.nodes[name]
        variables = [system.variables[each] for each in self._table.variables]
        self.values = read(variables, system.variable_rules, environ, self._table.defaults)
        self._world = self._owning(world)
        self.log = Log(name, self._role("log_level") or "INFO", world, stream)
        self.metrics = Metrics()
        self._tracer = tracer(f"{system.name}.{name}", environ)
        self._tls = self._credentials()
        self._channels: dict[str, GrpcChannel] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._handlers = self._make_handlers()
        self._stopping = asyncio.Event()
        self.background: list[asyncio.Task[None]] = []
        self._server: GrpcServer | None = None
        self._stop_metrics: Callable[[], None] = _nothing_to_stop
        self.port: int | None = None

    async def start(self, port: int | None = None) -> None:
        """Binds, starts what runs in the background, and only then calls itself ready."""
        if self._table.port_variable is not None:
            await self._listen(port)
        if metrics_port := self._role("metrics_port"):
            self._stop_metrics = self.metrics.serve(metrics_port)
        for component, handler in self._handlers.items():
            if (run := getattr(handler, "run", None)) is not None:
                call = Call(world=self._world, log=self.log.of(component), caller=component)
                self.background.append(asyncio.create_task(self._watch(run(call, self._stopping), component)))
        # Background work has begun, and so has what it begins itself, before the node calls itself ready.
        for _ in range(2):
            await asyncio.sleep(0)
        if self._server is not None:
            await self._server.ready()
        self.log.write(
            events.SERVICE_READY, "ready", fields={"port": self.port, "hosts": list(self._table.hosts)}
        )

    async def stop(self) -> None:
        """Takes no new work, lets what is under way finish within the grace, and closes everything."""
        grace = self._system.shutdown_grace_ms / 1000
        self.log.write(events.SERVICE_STOPPING, f"draining for at most {grace:g} s")
        self._stopping.set()
        try:
            async with asyncio.timeout(grace):
                server = [self._server.stop(grace)] if self._server is not None else []
                await asyncio.gather(*self.background, *server, return_exceptions=True)
                await asyncio.gather(*(each.drained() for each in self._endpoints.values()))
        except TimeoutError:
            self.log.write(events.SERVICE_STOPPING, "the grace is over; what is left is cut off")
        for task in self.background:
            task.cancel()
        if self._server is not None:
            await self._server.stop(0)
        for channel in self._channels.values():
            await channel.close()
        self._stop_metrics()
        if self._tracer is not None:
            self._tracer.close()
        self.log.write(events.SERVICE_STOPPED, "stopped")

    async def _listen(self, port: int | None) -> None:
        table = self._table
        served = {
            path: endpoint
            for path, endpoint in self._endpoints.items()
            if endpoint.method.service in {self._system.services[name].name for name in table.serves}
        }
        identity = Identity(self._system, self._role("accepted_tokens"))
        open_to_anyone = any(self._is_open(path) for path in served)
        self._server = GrpcServer(
            self._system, served, identity, self._world, tls=self._tls, open_to_anyone=open_to_anyone
        )
        wanted = self.values[table.port_variable or ""] if port is None else port
        self.port = await self._server.start(table.bind_host or "0.0.0.0", wanted)

    def _is_open(self, path: str) -> bool:
        """Whether someone without proof may call this method."""
        return any(self._system.principals[name].anonymous for name in self._system.matrix.get(path, ()))

    def _make_handlers(self) -> dict[str, Any]:
        stores = memory_stores(self._system, self._world, self.metrics, self.values)
        wiring = Wiring(self._system, self._world, self.values, self._channel_for, stores)
        handlers = {component: wiring.make(component) for component in self._table.hosts}
        offered = {
            name: handlers[service.component]
            for name, service in self._system.services.items()
            if service.component in handlers
        }
        self._endpoints.update(
            endpoints(self._system, offered, self._world, self.log, self.metrics, self._tracer)
        )
        return handlers

    def _channel_for(self, component: str, service: str) -> Channel:
        server = self._system.services[service].component
        if server in self._table.hosts:
            return LocalChannel(self._system, self._endpoints, component)
        address = self._address_of(server)
        if address not in self._channels:
            token = self._role("caller_token")
            self._channels[address] = GrpcChannel(
                self._system, address, component, server, token=token, tls=self._tls
            )
        return self._channels[address]

    def _address_of(self, component: str) -> str:
        for variable, target in self._table.upstreams.items():
            if component in self._deployment.nodes[target].hosts:
                return str(self.values[variable])
        raise LookupError(f"{self._table.name} has no upstream to {component}")

    def _credentials(self) -> Credentials | None:
        certificate = self._role("tls_certificate")
        if certificate is None:
            return None
        return Credentials.read(certificate, self._role("tls_key"), self._role("tls_authority"))

    def _owning(self, world: World) -> World:
        routing = self._deployment.routing
        if routing is None:
            return world
        return OwningWorld(
            world, self.values[routing.index_variable], len(self.values[routing.order_variable])
        )

    def _role(self, role: str) -> Any:
        """The value of the variable that plays one of the engine's roles."""
        for name in self._table.variables:
            if self._system.variables[name].role == role:
                return self.values[name]
        return None

    async def _watch(self, work: Any, component: str) -> None:
        """Runs a component's background work; a fault in it is told, and ends the node."""
        try:
            await work
        except Exception as error:
            self.log.of(component).write(events.BACKGROUND_FAULT, f"{type(error).__name__}: {error}")
            raise


def _nothing_to_stop() -> None:
    """What stands where no metrics are served."""
