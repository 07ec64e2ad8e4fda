"""The carrier `direct`: HTTP/2 on the event loop of the process, without a thread in between."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Mapping
from ipaddress import ip_address

from runtime.call.conditions import Failure
from runtime.call.identity import URI_SCHEME
from runtime.model.system import System
from runtime.transport.grpc.carrier import CallRefused, Metadata, Send
from runtime.transport.grpc.direct.channel import Channel
from runtime.transport.grpc.direct.http2.header_blocks import encode_headers
from runtime.transport.grpc.direct.http2.header_fields import Header
from runtime.transport.grpc.direct.http2.server_connection import ServerConnection
from runtime.transport.grpc.direct.http2.streams import BufferBudget, Limits
from runtime.transport.grpc.direct.messages import (
    ACCEPT_ENCODING,
    CONTENT_TYPE,
    GrpcStatusError,
    RequestHeaders,
    frame_message,
    make_timeout,
)
from runtime.transport.grpc.direct.server_calls import MAX_STREAMED_MESSAGE_BYTES, ServerCalls, UnaryMethod
from runtime.transport.grpc.direct.services import Health, Reflection
from runtime.transport.grpc.served_methods import Answer, ServedMethods, read_metadata
from runtime.transport.listening import bind_socket
from runtime.transport.tls import CertificateFiles, Credentials
from runtime.transport.tls_listener import TlsListener

_LAST_SECONDS = 1.0
"""Timeout for cancelled calls to clean up, and for clients to disconnect."""
_MOST_WAITING = 2048
"""Connections that may wait to be accepted."""
_BINARY = "-bin"


class Server:
    """The serving side of one listener. Its health service says not serving until the node is ready."""

    def __init__(
        self, methods: ServedMethods, *, tls: Credentials | None = None, open_to_anyone: bool = False
    ) -> None:
        system = methods.system
        self._methods = methods
        self._health, reflection = Health(methods.services), Reflection(methods.services)
        own = {path.encode(): _adapt(answer) for path, answer in methods.answers.items()}
        self._own = frozenset(own)
        self._limits = limits_of(system)
        streaming_methods = {**self._health.streaming_methods, **reflection.streaming_methods}
        is_closed = tls is not None and not open_to_anyone
        self._calls = ServerCalls(
            {**own, **self._health.unary_methods},
            streaming_methods,
            _names,
            self._report,
            message_bytes=system.message_bytes,
            connections=system.connections,
            max_buffered_bytes=self._limits.max_buffered_bytes,
            buffer_budget=BufferBudget.for_server(self._limits),
            certified={*self._health.unary_methods, *streaming_methods} if is_closed else (),
            limit_message=self._limit_message,
            parse_metadata=read_metadata,
            explain_error=self._explain_error,
        )
        self._most_connections = system.connections
        self._secured = (
            None
            if tls is None
            else TlsListener(
                tls.for_server(), self._connection, methods.log, self._has_room, CertificateFiles.of(tls)
            )
        )
        self._waiting = min(system.connections, _MOST_WAITING)
        self._server: asyncio.AbstractServer | TlsListener | None = None

    async def start(self, host: str, port: int) -> int:
        """Bind and listen; return the port. Raises OSError when the port cannot be had."""
        listener = bind_socket(host, port)
        number: int = listener.getsockname()[1]
        if self._secured is not None:
            self._secured.start(listener, self._waiting)
            self._server = self._secured
        else:
            self._server = await asyncio.get_running_loop().create_server(
                self._connection, sock=listener, backlog=self._waiting
            )
        return number

    async def ready(self) -> None:
        """Say through the health service that calls are welcome."""
        self._health.set_serving(True)

    async def stop(self, grace: float) -> None:
        """Take no new calls, wait for those under way, and cut off what is left after the grace."""
        self._health.set_serving(False)
        if self._server is None:
            return
        self._server.close()
        calls = self._calls
        # Health watches have one turn of the loop to send the change.
        await asyncio.sleep(0)
        calls.is_stopping = True
        left = [connection.shut_down_gracefully() for connection in calls.connections]
        for streaming in list(calls.streaming_tasks):
            streaming.cancel()
        # An answer may still be on its way when its method is through.
        if under_way := {*calls.tasks, *left}:
            await asyncio.wait(under_way, timeout=grace)
        for task in list(calls.tasks):
            task.cancel()
        if calls.tasks:
            await asyncio.wait(calls.tasks, timeout=_LAST_SECONDS)
        for connection in list(calls.connections):
            connection.close()
        if left := [each for each in left if not each.done()]:
            await asyncio.wait(left, timeout=_LAST_SECONDS)
        for connection in list(calls.connections):
            connection.abort()

    def _connection(self) -> asyncio.Protocol:
        return ServerConnection(self._calls, self._limits)

    def _has_room(self, handshakes: int) -> bool:
        return len(self._calls.connections) + handshakes < self._most_connections

    def _report(self, headers: RequestHeaders, names: tuple[bytes, ...], status: str, message: str) -> None:
        path = headers.path.decode(errors="replace")
        self._methods.report(path, headers.metadata, names, status, message)

    def _limit_message(self, headers: RequestHeaders, names: tuple[bytes, ...]) -> int:
        """Return the max bytes of a call's message. Health checks are open to all, with a few bytes."""
        if headers.path not in self._own:
            return MAX_STREAMED_MESSAGE_BYTES
        return self._methods.allow(headers.path.decode(), headers.metadata, names)

    def _explain_error(self, error: BaseException) -> GrpcStatusError | None:
        if not isinstance(error, Failure):
            return None
        trailers = tuple(_encode(*pair) for pair in self._methods.describe_failure(error))
        return GrpcStatusError(error.grpc, error.message, trailers)


class Client:
    """The calling side of one channel."""

    def __init__(
        self,
        system: System,
        address: str,
        *,
        tls: Credentials | None = None,
        server_name: str = "",
        metadata: Metadata = (),
        wait_for_ready: bool = False,
    ) -> None:
        _require_host_and_port(address)
        self._headers: tuple[Header, ...] = (
            (b":method", b"POST"),
            (b":scheme", b"http" if tls is None else b"https"),
            (b":authority", address.encode()),
            (b"te", b"trailers"),
            CONTENT_TYPE,
            ACCEPT_ENCODING,
            *(_encode(*pair) for pair in metadata),
        )
        context = None if tls is None else tls.for_client()
        self._channel = Channel(address, limits_of(system), context, server_name, wait_for_ready)

    def method(self, path: str) -> Send:
        """A method as a function."""
        # What all calls have in common comes first, as the pseudo-headers have to.
        headers = (*self._headers[:3], (b":path", path.encode()), *self._headers[3:])
        call = self._channel.call

        async def send(message: bytes, metadata: Metadata, patience: float) -> bytes:
            varying = [make_timeout(patience)]
            for pair in metadata:
                varying.append(_encode(*pair))
            try:
                return await call(headers, encode_headers(varying), frame_message(message), patience)
            except GrpcStatusError as error:
                raise CallRefused(error.status, error.message, _decode(error.trailers)) from None

        return send

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close()


def _require_host_and_port(address: str) -> None:
    """Refuse the targets of gRPC that name a resolver or several addresses."""
    host, _, port = address.rpartition(":")
    try:
        is_host = ":" not in host or ip_address(host.strip("[]")).version == 6
    except ValueError:
        is_host = False
    if not (is_host and host and port.isdecimal()) or {"/", ","} & {*host}:
        raise ValueError(
            f"the address {address!r} is not host:port, which is all that the carrier direct takes; "
            "the carrier grpcio takes every target of gRPC"
        )


def limits_of(system: System) -> Limits:
    """The limits of a connection that a spec has."""
    keepalive = system.keepalive
    return Limits(
        streams=system.concurrent_streams,
        message_bytes=system.message_bytes,
        ping_every_s=keepalive.ping_every_ms / 1000,
        ping_timeout_s=keepalive.ping_timeout_ms / 1000,
        shortest_ping_s=keepalive.shortest_ping_accepted_ms / 1000,
        idle_pings=keepalive.idle_pings,
        connection_age_s=keepalive.connection_age_ms / 1000 or None,
    )


def _adapt(answer: Answer) -> UnaryMethod:
    return lambda headers, message, names: answer(headers.metadata, headers.timeout, message, names)


def _encode(name: str, value: str | bytes) -> Header:
    if isinstance(value, bytes):
        return name.encode(), b64encode(value).rstrip(b"=")
    return name.encode(), value.encode()


def _decode(headers: tuple[Header, ...]) -> Mapping[str, str | bytes]:
    found: dict[str, str | bytes] = {}
    for key, value in headers:
        name = key.decode(errors="replace")
        if not name.endswith(_BINARY):
            found[name] = value.decode(errors="replace")
            continue
        try:
            found[name] = b64decode(value + b"=" * (-len(value) % 4), validate=True)
        except ValueError:
            continue  # What cannot be read says nothing.
    return found


def _names(transport: asyncio.Transport) -> tuple[bytes, ...]:
    """The URI names of a peer's certificate."""
    certificate = transport.get_extra_info("peercert") or {}
    named = certificate.get("subjectAltName", ())
    uris = (value.encode() for kind, value in named if kind == "URI")
    return tuple(each for each in uris if each.startswith(URI_SCHEME))
