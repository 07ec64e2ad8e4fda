"""The way in for whoever is no node: typed clients, with deadlines and retries as the spec has them."""

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
"""Takes a component, gives the addresses at which it can be called."""


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
    """A client of the ingress nodes of a deployment. It opens nothing until the first call.

    Several addresses are the nodes of a deployment in their fixed order; each call goes to the one that owns
    what it is about. An address is `host:port`, or a target of gRPC such as `dns:///host:port`, whose
    addresses are called in turn, or `unix:/path`. With a CA file it talks TLS. A certificate or a token
    proves a principal that has one; without, the caller is anonymous. With `wait_for_ready` a call waits for
    a connection as long as its deadline lets it.
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
    """Calls the services of one system as one principal. `async with` closes its connections."""

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
        """Where nodes take HTTP requests, by node, for what is not sent in messages."""
        self.variables = variables or {}
        """What whoever uses the deployment without this client has to set."""
        self._addresses_of = addresses_of
        self._principal = principal or _anonymous(system)
        self._tls = tls
        self._token = token
        self._wait_for_ready = wait_for_ready
        self._world = world or RealWorld()
        # Standard output belongs to whoever uses the client.
        self._log = Log("client", "ERROR", self._world, sys.stderr)
        self._channels: dict[tuple[str, str], GrpcChannel] = {}
        self._router = Router(_routing(system), self._world)

    def http_proof(self) -> tuple[ssl.SSLContext | None, str | None]:
        """What it shows and trusts, and its token, for requests to those."""
        return (self._tls.for_http() if self._tls is not None else None), self._token

    def of(self, kind: type[Typed]) -> Typed:
        """The typed client of a service, from the class that was generated for it."""
        make: Callable[[Client], Typed] = kind
        return make(self)

    def service(self, name: str) -> Any:
        """The typed client of a service that is known by name only."""
        return self.of(self.system.clients[name])

    def call(self, deadline_ms: int | None = None) -> Call:
        """The circumstances of a call: what a typed client wants beside the request.

        Each attempt has the deadline that the spec gives its method. The deadline here is for all of them.
        """
        deadline = None if deadline_ms is None else self._world.monotonic() + deadline_ms / 1000
        return Call(world=self._world, log=self._log, caller=self._principal, deadline=deadline)

    def bind(
        self, method: Method, request: type[Request], response: type[Response]
    ) -> Invoke[Request, Response]:
        """The method as a function. The address is chosen with the request in hand, call by call."""
        component = component_of(self.system, method)
        bound: dict[str, Invoke[Request, Response]] = {}

        async def invoke(message: Request, call: Call) -> Response:
            address = self._address(component, method, message)
            if address not in bound:
                bound[address] = self._channel(address, component).bind(method, request, response)
            return await bound[address](message, call)

        return invoke

    async def close(self) -> None:
        """Ends all connections."""
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
        """A client for each node that hosts a component, for what is asked of all of them."""
        return [self._pinned(address) for address in self._addresses_of(component)]

    def _pinned(self, address: str) -> Client:
        pinned = Client.__new__(Client)
        pinned.__dict__.update(self.__dict__, _addresses_of=lambda _component: (address,))
        return pinned

    def _address(self, component: str, method: Method, request: object) -> str:
        """Where a call goes. It is chosen once for each call, so that retries stay on the owner."""
        return self._router.choose(method, request, self._addresses_of(component))

    def _channel(self, address: str, component: str) -> GrpcChannel:
        # Not before a call is made: a launcher has a client for whoever wants one, and may make none.
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


def _routing(system: System) -> Routing | None:
    """How owners are found; at most one design of a system has owners."""
    return next((each.routing for each in system.deployments.values() if each.routing is not None), None)


def _anonymous(system: System) -> str:
    return next((each.name for each in system.principals.values() if each.anonymous), "")
