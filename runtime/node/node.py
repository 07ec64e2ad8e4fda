"""A node: one process of a deployment, with its handlers, channels and servers, from start to stop.

Transports are imported on demand: many nodes use only one of HTTP and gRPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from runtime.call.context import Channel
from runtime.call.endpoint import Endpoint
from runtime.call.identity import Authenticator
from runtime.model.system import Listener, System
from runtime.node.assembly import Assembly
from runtime.node.finding import deployment_name
from runtime.node.proof_check import Proofs, find_missing_proofs
from runtime.node.settings import SettingsError, resolve_host
from runtime.observe import log as events
from runtime.observe.tracing import make_tracer
from runtime.stores.store import StoreAway, StoreUnusable
from runtime.transport.tls import Credentials, make_http_context
from runtime.world import World

if TYPE_CHECKING:
    from runtime.node.discovery import Announcer
    from runtime.transport.grpc.carrier import ServerCarrier
    from runtime.transport.grpc.channel import GrpcChannel
    from runtime.transport.http.server import HttpServer

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
"""Backoff of a node before it retries to reach a store."""


class Node:
    """A node that can be started and stopped. The constructor reads the settings and opens nothing."""

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
        self._environ = environ
        self._tracer = make_tracer(f"{system.name}.{name}", environ)
        self._channels: dict[str, GrpcChannel] = {}
        design = system.deployments[deployment]
        self._table = design.nodes[name]
        self._parts = Assembly(
            system, design, self._table, environ, world, self._channel, stream=stream, tracer=self._tracer
        )
        self._deployment_name = deployment_name(system, design, self._table.announced, self._parts.values)
        self.log = self._parts.log
        self._check_proofs()
        self._tls = self._credentials(self._parts)
        self._stopping = asyncio.Event()
        self._are_stores_open = False
        self.background: list[asyncio.Task[None]] = []
        self._server: ServerCarrier | None = None
        self._http: HttpServer | None = None
        self._announcer: Announcer | None = None
        self._stop_metrics: Callable[[], None] = _no_op
        self.port: int | None = None
        self.http_port: int | None = None

    async def wait_for_stores(self, stop: asyncio.Event) -> bool:
        """Open the stores, with retries and backoff while one is unreachable; False if `stop` comes first."""
        pause_s, world = _FIRST_PAUSE_S, self._parts.world
        while True:
            opening = asyncio.create_task(self._parts.open())
            if not await _ends_before(opening, stop):
                return False
            try:
                opening.result()
            except StoreAway as error:
                wait_s = world.uniform(pause_s / 2, pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                self.log.write(events.STORE_AWAY, f"{error} It is asked again in {wait_s:.1f} s.")
                if not await _ends_before(asyncio.create_task(asyncio.sleep(wait_s)), stop):
                    return False
            else:
                self._are_stores_open = True
                return True

    async def start(self, port: int | None = None, http_port: int | None = None) -> None:
        """Bind, start the background work, and only then report ready."""
        if not self._are_stores_open:
            await self._parts.open()
            self._are_stores_open = True
        if self._table.port_variable is not None:
            await self._listen(port)
        listener = self._table.http
        if listener is not None and (http_port is not None or self._is_wanted(listener)):
            await self._listen_http(listener, http_port)
        if metrics_port := self._parts.role("metrics_port"):
            self._stop_metrics = self._parts.metrics.serve(metrics_port)
        for component, work in self._parts.background(self._stopping):
            self.background.append(asyncio.create_task(self._run_background(work, component)))
        # Background work has started, and so have its own tasks, before the node reports ready.
        for _ in range(2):
            await asyncio.sleep(0)
        if self._server is not None:
            await self._server.ready()
        if self._http is not None:
            self._http.ready()
        await self._announce()
        self.log.write(
            events.SERVICE_READY,
            "ready",
            fields={"port": self.port, "http_port": self.http_port, "hosts": list(self._parts.hosts)},
        )

    async def stop(self) -> None:
        """Drain: accept no new work, let calls in flight end within the grace, and close everything."""
        grace = self._system.shutdown_grace_ms / 1000
        self.log.write(events.SERVICE_STOPPING, f"draining for at most {grace:g} s")
        self._stopping.set()
        if self._announcer is not None:
            await self._announcer.stop()
        try:
            async with asyncio.timeout(grace):
                servers = [each.stop(grace) for each in (self._server, self._http) if each is not None]
                await asyncio.gather(*self.background, *servers, return_exceptions=True)
                await asyncio.gather(*(each.drain() for each in self._parts.endpoints.values()))
        except TimeoutError:
            self.log.write(events.SERVICE_STOPPING, "the grace is over; what is left is cut off")
        for task in self.background:
            task.cancel()
        if self._server is not None:
            await self._server.stop(0)
        if self._http is not None:
            await self._http.stop(0)
        for channel in self._channels.values():
            await channel.close()
        await self._parts.close()
        self._stop_metrics()
        if self._tracer is not None:
            self._tracer.close()
        self.log.write(events.SERVICE_STOPPED, "stopped")

    async def _listen(self, port: int | None) -> None:
        from runtime.transport.grpc.carrier import make_server

        table = self._table
        served = self._find_served()
        authenticator = self._make_authenticator(table.anonymous)
        open_to_anyone = table.anonymous is not None or any(self._is_open(path) for path in served)
        self._server = make_server(
            self._carrier(table.carrier),
            self._system,
            served,
            authenticator,
            self._parts.world,
            self.log,
            tls=self._tls,
            open_to_anyone=open_to_anyone,
        )
        wanted = self._parts.values[table.port_variable or ""] if port is None else port
        self.port = await self._server.start(self._host(table.bind_host or "0.0.0.0"), wanted)

    async def _listen_http(self, listener: Listener, port: int | None) -> None:
        from runtime.transport.http.server import HttpServer

        parts, served = self._parts, list(self._find_served().values())
        tls = None
        # Health and metrics are no secret; a listener that has nothing else needs no TLS.
        if self._tls is not None and any(each.method.route for each in served):
            names = ("tls_certificate", "tls_key", "tls_authority")
            tls = make_http_context(*(parts.role(name) for name in names))
        self._http = HttpServer(
            self._system,
            served,
            self._make_authenticator(listener.anonymous),
            parts.world,
            self.log,
            parts.metrics,
            problem=parts.find_problem,
            tls=tls,
        )
        wanted = parts.values[listener.port_variable] if port is None else port
        self.http_port = await self._http.start(self._host(listener.host), wanted)

    def _check_proofs(self) -> None:
        """Refuse settings with which no call to this node, or no call of its own, could succeed."""
        parts, http = self._parts, self._table.http
        principals = self._system.principals
        proofs = Proofs(
            certificate=parts.role("tls_certificate") is not None,
            token=parts.role("caller_token") is not None,
            accepted=frozenset(
                name
                for name in parts.role("accepted_tokens") or ()
                if name in principals and "token" in principals[name].proofs
            ),
        )
        has_http = http is not None and self._is_wanted(http)
        if missing := find_missing_proofs(
            self._system, parts.deployment, self._table, proofs, has_http=has_http
        ):
            raise SettingsError(missing)

    def _is_wanted(self, listener: Listener) -> bool:
        return not listener.optional or self._parts.values[listener.port_variable] is not None

    def _make_authenticator(self, anonymous: str | None) -> Authenticator:
        tokens = self._parts.role("accepted_tokens")
        return Authenticator(self._system, tokens, anonymous, has_certificates=self._tls is not None)

    def _host(self, host: str) -> str:
        return resolve_host(host, self._parts.values)

    async def _announce(self) -> None:
        """Announce the node on the network, now that it can be reached."""
        announced = self._table.announced
        if announced is None or not self._parts.values[announced.variable]:
            return
        from runtime.node.discovery import Announcer, make_offers

        http = self._table.http
        host = self._host((http.host if http is not None else self._table.bind_host) or "0.0.0.0")
        ports = {"http_port": self.http_port, "grpc_port": self.port}
        offers = make_offers(announced.service, announced.alias, host, ports, self._deployment_name)
        self._announcer = Announcer(offers, lambda problem: self.log.write(events.NOT_ANNOUNCED, problem))
        await self._announcer.start()

    def _find_served(self) -> dict[str, Endpoint]:
        """Find the endpoints of the services that the node serves, by path."""
        names = {self._system.services[name].name for name in self._table.serves}
        return {
            path: endpoint
            for path, endpoint in self._parts.endpoints.items()
            if endpoint.method.service in names
        }

    def _is_open(self, path: str) -> bool:
        """Whether an anonymous principal may call this method, where others have certificates."""
        allowed = (self._system.principals[name] for name in self._system.matrix.get(path, ()))
        return any(each.anonymous and not each.without_tokens for each in allowed)

    def _channel(self, parts: Assembly, component: str, service: str) -> Channel:
        from runtime.transport.grpc.channel import GrpcChannel

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
                carrier=self._carrier(parts.deployment.carrier),
            )
        return self._channels[address]

    def _carrier(self, chosen: str) -> str:
        from runtime.transport.grpc.carrier import choose_carrier

        try:
            return choose_carrier(chosen, self._environ)
        except ValueError as error:
            raise SettingsError([str(error)]) from None

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

    async def _run_background(self, work: Any, component: str) -> None:
        """Run the background work of a component; a fault in it is logged, and ends the node."""
        try:
            await work
        except Exception as error:
            self.log.of(component).write(events.BACKGROUND_FAULT, _describe_error(error))
            raise


async def _ends_before(task: asyncio.Task[None], stop: asyncio.Event) -> bool:
    """Whether a task ends before `stop` is set; if not it is cancelled."""
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        for each in (task, stopped):
            each.cancel()
        await asyncio.wait({task, stopped})


def _describe_error(error: BaseException) -> str:
    """Describe an error; of a group, each."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(_describe_error, error.exceptions))
    if isinstance(error, StoreUnusable):
        return str(error)  # It is a sentence for the operator.
    return f"{type(error).__name__}: {error}"


def _no_op() -> None:
    """Stops nothing: no metrics are served."""
