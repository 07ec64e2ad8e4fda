"""The seam for carriers: what brings the bytes of a call across, on the serving and on the calling side.

The wire is the same for all of them, so the two sides of a call may have different ones.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from runtime.call.endpoint import Endpoint
from runtime.call.identity import Authenticator
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.transport.grpc.served_methods import ServedMethods
from runtime.transport.tls import Credentials
from runtime.world import World

Metadata = tuple[tuple[str, str], ...]
Send = Callable[[bytes, Metadata, float], Coroutine[Any, Any, bytes]]
"""Sends a message with metadata and gives the one that answers it within so many seconds; raises CallRefused
where there is none."""

DEFAULT = "grpcio"
_MODULES = {
    "grpcio": "runtime.transport.grpc.grpcio_carrier",
    "direct": "runtime.transport.grpc.direct_carrier",
}
CARRIERS = tuple(_MODULES)
VARIABLE = "CHARTER_GRPC_CARRIER"
"""Overrides the carrier of deployments, to compare carriers."""


class CallRefused(Exception):
    """A call that ended without an answer."""

    def __init__(self, status: str, message: str, metadata: Mapping[str, str | bytes] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.metadata = metadata or {}
        """The trailing metadata of its answer; none where nothing was answered."""


class ServerCarrier(Protocol):
    """The serving side: one listener, with health and reflection beside the methods."""

    async def start(self, host: str, port: int) -> int:
        """Bind and listen; return the port. Raises OSError when the port cannot be had."""
        ...

    async def ready(self) -> None:
        """Say through the health service that calls are welcome."""
        ...

    async def stop(self, grace: float) -> None:
        """Take no new calls, wait for those under way, and cut off what is left after the grace."""
        ...


class ClientCarrier(Protocol):
    """The calling side: one address."""

    def method(self, path: str) -> Send:
        """A method as a function."""
        ...

    async def close(self) -> None:
        """End the connection; calls under way fail."""
        ...


def choose_carrier(chosen: str = DEFAULT, environ: Mapping[str, str] = os.environ) -> str:
    """Choose the gRPC carrier: `chosen` by a deployment, unless the environment names another.

    Raises ValueError with a message for the user where the variable names none.
    """
    named = environ.get(VARIABLE)
    if not named:
        return chosen
    if named not in CARRIERS:
        raise ValueError(f"{VARIABLE} is {named!r}; a carrier is {' or '.join(CARRIERS)}")
    return named


def make_server(
    carrier: str,
    system: System,
    endpoints: Mapping[str, Endpoint],
    authenticator: Authenticator,
    world: World,
    log: Log,
    *,
    tls: Credentials | None = None,
    open_to_anyone: bool = False,
) -> ServerCarrier:
    """Make the serving side of a node.

    `open_to_anyone` is whether some method may be called without a certificate. Where none may and there are
    certificates, health and reflection are answered only to clients that show one, too.
    """
    methods = ServedMethods(system, endpoints, authenticator, world, log)
    made: ServerCarrier = _load(carrier).Server(methods, tls=tls, open_to_anyone=open_to_anyone)
    return made


def make_client(
    carrier: str,
    system: System,
    address: str,
    *,
    tls: Credentials | None = None,
    server_name: str = "",
    metadata: Metadata = (),
    wait_for_ready: bool = False,
) -> ClientCarrier:
    """Make the calling side of a channel.

    `server_name` is the name that the certificate of the other side has to have, `metadata` goes with every
    call, and with `wait_for_ready` a call waits for a connection as long as its deadline lets it.
    """
    made: ClientCarrier = _load(carrier).Client(
        system,
        address,
        tls=tls,
        server_name=server_name,
        metadata=metadata,
        wait_for_ready=wait_for_ready,
    )
    return made


def _load(carrier: str) -> Any:
    # grpcio's handlers of fork() are for children that make calls. Ours become other programs at once, unless
    # the handlers abort them or never end, as they do now and then. It is read when the library is loaded.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    # A process loads the carrier that it uses, and no other.
    return importlib.import_module(_MODULES[carrier])
