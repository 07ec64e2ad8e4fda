"""The gRPC side of a node: methods from their tables, health and reflection beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import CoroutineType

from google.protobuf.message import DecodeError

from runtime.dispatch import Endpoint
from runtime.grpc_calls import Answer, Calls
from runtime.grpc_messages import Head, Refused
from runtime.grpc_services import Health, Reflection
from runtime.http2.connection import Connection
from runtime.http2.streams import Limits
from runtime.identity import URI_SCHEME, Identity
from runtime.listening import bound
from runtime.tables import System
from runtime.tls import Credentials
from runtime.world import World

_HANDSHAKE_SECONDS = 10.0
_GOODBYE_SECONDS = 2.0
"""How long a client may take to end its side of TLS."""
_LAST_SECONDS = 1.0
"""How long what was cut off may take to clean up, and its clients to take their leave."""
_MOST_WAITING = 2048
"""Connections that may wait to be accepted."""


class GrpcServer:
    """Listens on one port. Not serving, by its health service, until it is told that the node is ready."""

    def __init__(
        self,
        system: System,
        endpoints: Mapping[str, Endpoint],
        identity: Identity,
        world: World,
        *,
        tls: Credentials | None = None,
        open_to_anyone: bool = False,
    ) -> None:
        self._tls = tls.for_server(require_client=not open_to_anyone) if tls is not None else None
        services = sorted({endpoint.method.service for endpoint in endpoints.values()})
        self._health, reflection = Health(services), Reflection(services)
        own = {path.encode(): _answer(endpoint, identity, world) for path, endpoint in endpoints.items()}
        self._limits = Limits.of(system)
        self._calls = Calls(
            {**own, **self._health.answers},
            {**self._health.conversations, **reflection.conversations},
            _names,
            message_bytes=system.message_bytes,
            connections=system.connections,
            most_held=self._limits.most_held,
        )
        self._waiting = min(system.connections, _MOST_WAITING)
        self._server: asyncio.AbstractServer | None = None

    async def start(self, host: str, port: int) -> int:
        """Binds and listens; returns the port. Raises OSError when the port cannot be had."""
        listener = bound(host, port)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._calls, self._limits),
            sock=listener,
            ssl=self._tls,
            backlog=self._waiting,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._tls else None,
            ssl_shutdown_timeout=_GOODBYE_SECONDS if self._tls else None,
        )
        number: int = listener.getsockname()[1]
        return number

    async def ready(self) -> None:
        """Says through the health service that calls are welcome."""
        self._health.say(True)

    async def stop(self, grace: float) -> None:
        """Takes no new calls, waits for those under way, and cuts off what is left after the grace."""
        self._health.say(False)
        if self._server is None:
            return
        self._server.close()
        calls = self._calls
        # Whoever watches has one turn to hear of it.
        await asyncio.sleep(0)
        calls.leaving = True
        left = [connection.leave() for connection in calls.connections]
        for talk in list(calls.talks):
            talk.cancel()
        # An answer may still be on its way when its method is through.
        if under_way := {*calls.tasks, *left}:
            await asyncio.wait(under_way, timeout=grace)
        for task in list(calls.tasks):
            task.cancel()
        if calls.tasks:
            await asyncio.wait(calls.tasks, timeout=_LAST_SECONDS)
        for connection in list(calls.connections):
            connection.cut()
        if left := [each for each in left if not each.done()]:
            await asyncio.wait(left, timeout=_LAST_SECONDS)
        for connection in list(calls.connections):
            connection.abort()


def _answer(endpoint: Endpoint, identity: Identity, world: World) -> Answer:
    begin, path, monotonic = endpoint.begin, endpoint.method.path, world.monotonic
    read, write = endpoint.method.request.FromString, endpoint.method.response.SerializeToString
    nobody = identity.proven(path, (), None)

    async def answer(head: Head, message: bytes, names: tuple[bytes, ...]) -> bytes:
        try:
            request = read(message)
        except DecodeError:
            raise Refused("INTERNAL", f"the message is no {endpoint.method.request.__name__}") from None
        caller = nobody
        if names or head.authorization is not None:
            caller = identity.proven(path, names, head.authorization)
        deadline = monotonic() + head.timeout if head.timeout is not None else None
        answered = begin(caller, request, deadline, head.request_id, head.trace)
        response: bytes = write(await answered if type(answered) is CoroutineType else answered)
        return response

    return answer


def _names(transport: asyncio.Transport) -> tuple[bytes, ...]:
    """The URI names of a peer's certificate."""
    certificate = transport.get_extra_info("peercert") or {}
    named = certificate.get("subjectAltName", ())
    uris = (value.encode() for kind, value in named if kind == "URI")
    return tuple(each for each in uris if each.startswith(URI_SCHEME))
