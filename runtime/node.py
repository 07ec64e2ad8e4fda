"""One process of a deployment: settings, handlers, channels and a server, from start to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from runtime import log as events
from runtime.assembly import Assembly
from runtime.call import Channel
from runtime.grpc_client import GrpcChannel
from runtime.grpc_server import GrpcServer
from runtime.identity import Identity
from runtime.tables import System
from runtime.tls import Credentials
from runtime.tracing import tracer
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
        self._tracer = tracer(f"{system.name}.{name}", environ)
        self._channels: dict[str, GrpcChannel] = {}
        design = system.deployments[deployment]
        self._table = design.nodes[name]
        self._parts = Assembly(
            system, design, self._table, environ, world, self._channel, stream=stream, tracer=self._tracer
        )
        self.log = self._parts.log
        self._tls = self._credentials(self._parts)
        self._stopping = asyncio.Event()
        self.background: list[asyncio.Task[None]] = []
        self._server: GrpcServer | None = None
        self._stop_metrics: Callable[[], None] = _nothing_to_stop
        self.port: int | None = None

    async def start(self, port: int | None = None) -> None:
        """Binds, starts what runs in the background, and only then calls itself ready."""
        if self._table.port_variable is not None:
            await self._listen(port)
        if metrics_port := self._parts.role("metrics_port"):
            self._stop_metrics = self._parts.metrics.serve(metrics_port)
        for component, work in self._parts.background(self._stopping):
            self.background.append(asyncio.create_task(self._watch(work, component)))
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
                await asyncio.gather(*(each.drained() for each in self._parts.endpoints.values()))
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
            for path, endpoint in self._parts.endpoints.items()
            if endpoint.method.service in {self._system.services[name].name for name in table.serves}
        }
        identity = Identity(self._system, self._parts.role("accepted_tokens"))
        open_to_anyone = any(self._is_open(path) for path in served)
        self._server = GrpcServer(
            self._system, served, identity, self._parts.world, tls=self._tls, open_to_anyone=open_to_anyone
        )
        wanted = self._parts.values[table.port_variable or ""] if port is None else port
        self.port = await self._server.start(table.bind_host or "0.0.0.0", wanted)

    def _is_open(self, path: str) -> bool:
        """Whether someone without proof may call this method."""
        return any(self._system.principals[name].anonymous for name in self._system.matrix.get(path, ()))

    def _channel(self, parts: Assembly, component: str, service: str) -> Channel:
        server = self._system.services[service].component
        address = self._address_of(parts, server)
        if address not in self._channels:
            self._channels[address] = GrpcChannel(
                self._system,
                address,
                component,
                server,
                token=parts.role("caller_token"),
                tls=self._credentials(parts),
            )
        return self._channels[address]

    def _address_of(self, parts: Assembly, component: str) -> str:
        for variable, target in self._table.upstreams.items():
            if component in parts.deployment.nodes[target].hosts:
                return str(parts.values[variable])
        raise LookupError(f"{self._table.name} has no upstream to {component}")

    @staticmethod
    def _credentials(parts: Assembly) -> Credentials | None:
        certificate = parts.role("tls_certificate")
        if certificate is None:
            return None
        return Credentials.read(certificate, parts.role("tls_key"), parts.role("tls_authority"))

    async def _watch(self, work: Any, component: str) -> None:
        """Runs a component's background work; a fault in it is told, and ends the node."""
        try:
            await work
        except Exception as error:
            self.log.of(component).write(events.BACKGROUND_FAULT, f"{type(error).__name__}: {error}")
            raise


def _nothing_to_stop() -> None:
    """What stands where no metrics are served."""
