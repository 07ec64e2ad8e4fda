"""The gRPC side of a node: methods from their tables, health and reflection beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from google.protobuf.message import DecodeError, Message

from runtime import log as events
from runtime.conditions import Condition, TransportRefusal
from runtime.dispatch import Endpoint
from runtime.grpc_calls import LONGEST_QUESTION, Answer, Calls
from runtime.grpc_messages import Head, too_large
from runtime.grpc_services import Health, Reflection
from runtime.http2.connection import Connection
from runtime.http2.streams import Held, Limits
from runtime.identity import URI_SCHEME, Identity
from runtime.listening import bound
from runtime.log import Log
from runtime.tables import System
from runtime.tls import Credentials
from runtime.tls_listener import TlsListener
from runtime.world import World

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
        log: Log,
        *,
        tls: Credentials | None = None,
        open_to_anyone: bool = False,
    ) -> None:
        """`open_to_anyone` is whether some method may be called without proof; else health and reflection
        are answered only to clients that show a certificate, where there are certificates.
        """
        services = sorted({endpoint.method.service for endpoint in endpoints.values()})
        self._health, reflection = Health(services), Reflection(services)
        self._endpoints = endpoints
        self._identity = identity
        self._log = log
        own = {
            path.encode(): _answer(system, endpoint, identity, world) for path, endpoint in endpoints.items()
        }
        self._limits = Limits.of(system)
        talks = {**self._health.conversations, **reflection.conversations}
        is_closed = tls is not None and not open_to_anyone
        self._calls = Calls(
            {**own, **self._health.answers},
            talks,
            _names,
            self._report,
            message_bytes=system.message_bytes,
            connections=system.connections,
            most_held=self._limits.most_held,
            held=Held.of(self._limits),
            certified={*self._health.answers, *talks} if is_closed else (),
            allow=partial(_allow, system, identity, frozenset(own)),
        )
        self._most_connections = system.connections
        self._secured = (
            None if tls is None else TlsListener(tls.for_server(), self._connection, log, self._has_room)
        )
        self._waiting = min(system.connections, _MOST_WAITING)
        self._server: asyncio.AbstractServer | TlsListener | None = None

    async def start(self, host: str, port: int) -> int:
        """Binds and listens; returns the port. Raises OSError when the port cannot be had."""
        listener = bound(host, port)
        number: int = listener.getsockname()[1]
        if self._secured is not None:
            self._secured.start(listener, self._waiting)
            self._server = self._secured
        else:
            self._server = await asyncio.get_running_loop().create_server(
                self._connection, sock=listener, backlog=self._waiting
            )
        return number

    def _connection(self) -> asyncio.Protocol:
        return Connection(self._calls, self._limits)

    def _has_room(self, handshakes: int) -> bool:
        return len(self._calls.connections) + handshakes < self._most_connections

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

    def _report(self, head: Head, names: tuple[bytes, ...], status: str, message: str) -> None:
        """Log a call that no method has answered, and count it where it is of a method."""
        path = head.path.decode(errors="replace")
        caller = self._identity.proven(path, names, head.authorization)
        if (endpoint := self._endpoints.get(path)) is not None:
            endpoint.refuse(caller, TransportRefusal(status, message), head.request_id, head.trace)
            return
        known = {"request_id": head.request_id, "caller": caller if isinstance(caller, str) else None}
        method = path.rpartition(".")[2].replace("/", ".")
        self._log.write(events.RPC_ERROR, message, method, {**known, "grpc_code": status})


def _answer(system: System, endpoint: Endpoint, identity: Identity, world: World) -> Answer:
    path, monotonic = endpoint.method.path, world.monotonic
    read, serialize = endpoint.method.request.FromString, endpoint.method.response.SerializeToString
    nobody, allowed = identity.proven(path, (), None), system.matrix.get(path, {})
    kind = endpoint.method.request
    invalid: Callable[..., Condition] = system.roles["invalid_request"]
    most = system.message_bytes

    def write(response: Message) -> bytes:
        message: bytes = serialize(response)
        if len(message) > most:
            raise TransportRefusal("RESOURCE_EXHAUSTED", too_large(len(message), most))
        return message

    async def answer(head: Head, message: bytes, names: tuple[bytes, ...]) -> bytes:
        caller = nobody
        if names or head.authorization is not None:
            caller = identity.proven(path, names, head.authorization)
        try:
            request = read(message)
        except DecodeError:
            if isinstance(caller, str) and caller in allowed:
                problem = f"is no {kind.__name__}, or has text that is not UTF-8"
                condition = invalid(field="message", problem=problem)
                endpoint.refuse(caller, condition, head.request_id, head.trace)
                raise condition from None
            # A caller that is refused learns nothing of what is wrong with its message.
            request = kind()
        deadline = monotonic() + head.timeout if head.timeout is not None else None
        response: bytes = await endpoint.answer(
            caller, request, deadline, head.request_id, head.trace, write=write
        )
        return response

    return answer


def _allow(
    system: System, identity: Identity, own: frozenset[bytes], head: Head, names: tuple[bytes, ...]
) -> int:
    """How many bytes the message of a caller may have; none where the guard refuses the caller.

    Health is asked by anyone, in a few bytes.
    """
    if head.path not in own:
        return LONGEST_QUESTION
    path = head.path.decode()
    caller = identity.proven(path, names, head.authorization)
    is_allowed = isinstance(caller, str) and caller in system.matrix.get(path, {})
    return system.message_bytes if is_allowed else 0


def _names(transport: asyncio.Transport) -> tuple[bytes, ...]:
    """The URI names of a peer's certificate."""
    certificate = transport.get_extra_info("peercert") or {}
    named = certificate.get("subjectAltName", ())
    uris = (value.encode() for kind, value in named if kind == "URI")
    return tuple(each for each in uris if each.startswith(URI_SCHEME))
