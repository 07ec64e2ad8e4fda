"""Client of a system: typed clients with the deadlines and retries of the spec."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from runtime.call.context import Call, Invoke, Request, Response
from runtime.call.endpoint import component_of
from runtime.call.routing import Router
from runtime.model.system import Method, Routing, System
from runtime.node.systems import load_system
from runtime.observe.log import Log
from runtime.transport.tls import Credentials
from runtime.world import RealWorld, World

if TYPE_CHECKING:
    from runtime.transport.grpc.channel import GrpcChannel

Typed = TypeVar("Typed")
AddressesOf = Callable[[str], Sequence[str]]
"""Takes a component; returns the addresses of the nodes that host it."""


def connect(
    system: System | str,
    addresses: str | Sequence[str],
    *,
    ca_file: str | None = None,
    cert_file: str | None = None,
    key_file: str | None = None,
    token: str | None = None,
    urls: Mapping[str, str] | None = None,
    wait_for_ready: bool = False,
) -> Client:
    """Make a client of the ingress nodes of a deployment. It connects at the first call.

    Several addresses are the nodes of a deployment in their fixed order; each call goes to the owner of its
    key. An address is `host:port`, or a target of gRPC such as `dns:///host:port`, whose
    addresses are called in turn, or `unix:/path`. With a CA file it talks TLS. A certificate or a token
    authenticates a principal; without, the caller is anonymous. With `wait_for_ready` a call waits for a
    connection until its deadline.
    """
    tables = load_system(system) if isinstance(system, str) else system
    found = (addresses,) if isinstance(addresses, str) else tuple(addresses)
    if not found:
        raise ValueError("a client needs at least one address")
    own = [Path(each).read_bytes() for each in (cert_file, key_file) if each is not None]
    tls = Credentials(Path(ca_file).read_bytes(), *own) if ca_file is not None else None
    return Client(
        tables, lambda _component: found, tls=tls, token=token, urls=urls, wait_for_ready=wait_for_ready
    )


class Client:
    """A client of the services of one system, as one principal. `async with` closes its connections."""

    def __init__(
        self,
        system: System,
        addresses_of: AddressesOf,
        *,
        principal: str | None = None,
        tls: Credentials | None = None,
        token: str | None = None,
        world: World | None = None,
        urls: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        wait_for_ready: bool = False,
    ) -> None:
        self.system = system
        self.urls = urls or {}
        """HTTP URLs by node, for content that is not sent in messages."""
        self.variables = variables or {}
        """The variables for programs that use the deployment without this client."""
        self._addresses_of = addresses_of
        self._principal = principal or _find_anonymous(system)
        self._tls = tls
        self._token = token
        self._wait_for_ready = wait_for_ready
        self._world = world or RealWorld()
        # Standard output belongs to the program that uses the client.
        self._log = Log("client", "ERROR", self._world, sys.stderr)
        self._channels: dict[tuple[str, str], GrpcChannel] = {}
        self._router = Router(_find_routing(system), self._world)

    def http_credentials(self) -> tuple[ssl.SSLContext | None, str | None]:
        """Return the TLS context and the token for HTTP requests to the `urls`."""
        return (self._tls.for_http() if self._tls is not None else None), self._token

    def of(self, kind: type[Typed]) -> Typed:
        """Make the typed client of a service, from the class that was generated for it."""
        make: Callable[[Client], Typed] = kind
        return make(self)

    def service(self, name: str) -> Any:
        """Make the typed client of a service by its name."""
        return self.of(self.system.clients[name])

    def call(self, deadline_ms: int | None = None) -> Call:
        """Make a call context, which a typed client takes beside the request.

        Each attempt has the deadline that the spec gives its method. The deadline here is for all attempts.
        """
        deadline = None if deadline_ms is None else self._world.monotonic() + deadline_ms / 1000
        return Call(world=self._world, log=self._log, caller=self._principal, deadline=deadline)

    def bind(
        self, method: Method, request: type[Request], response: type[Response]
    ) -> Invoke[Request, Response]:
        """Bind a method to a function. The address is chosen for each request."""
        component = component_of(self.system, method)
        bound: dict[str, Invoke[Request, Response]] = {}

        async def invoke(message: Request, call: Call) -> Response:
            address = self._choose_address(component, method, message)
            if address not in bound:
                bound[address] = self._open_channel(address, component).bind(method, request, response)
            return await bound[address](message, call)

        return invoke

    async def close(self) -> None:
        """Close all connections."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def nodes(self, component: str) -> list[Client]:
        """Make a client for each node that hosts a component, for requests to all of them."""
        return [self._make_pinned(address) for address in self._addresses_of(component)]

    def _make_pinned(self, address: str) -> Client:
        client = Client.__new__(Client)
        client.__dict__.update(self.__dict__, _addresses_of=lambda _component: (address,))
        return client

    def _choose_address(self, component: str, method: Method, request: object) -> str:
        """Choose the address of a call: once for each call, so that retries stay on the owner."""
        return self._router.choose(method, request, self._addresses_of(component))

    def _open_channel(self, address: str, component: str) -> GrpcChannel:
        # Not before the first call: a launcher offers clients, and may never use one.
        from runtime.transport.grpc.carrier import choose_carrier
        from runtime.transport.grpc.channel import GrpcChannel

        if (address, component) not in self._channels:
            self._channels[address, component] = GrpcChannel(
                self.system,
                address,
                self._principal,
                component,
                token=self._token,
                tls=self._tls,
                carrier=choose_carrier(),
                wait_for_ready=self._wait_for_ready,
            )
        return self._channels[address, component]


def _find_routing(system: System) -> Routing | None:
    """Find the routing by owner; at most one deployment of a system has it."""
    return next((each.routing for each in system.deployments.values() if each.routing is not None), None)


def _find_anonymous(system: System) -> str:
    return next((each.name for each in system.principals.values() if each.anonymous), "")
