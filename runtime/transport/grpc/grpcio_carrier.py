"""The carrier `grpcio`: grpc.aio, with health and reflection beside the methods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import grpc
import grpc.aio

from runtime.call.conditions import Failure
from runtime.call.identity import URI_SCHEME
from runtime.model.system import System
from runtime.transport.grpc.carrier import CallRefused, Metadata, Send
from runtime.transport.grpc.grpcio_services import (
    HEALTH,
    REFLECTION,
    Context,
    Health,
    Reflection,
    end_call,
)
from runtime.transport.grpc.served_methods import Answer, ServedMethods, read_metadata
from runtime.transport.tls import CertificateFiles, Credentials

_SAN = "x509_subject_alternative_name"
_LARGEST_HEADERS = 16 * 1024
_ROOM = 2
"""Messages up to so many times the limit are refused here, with a log line; larger ones by the library."""
_MOST_PENDING = 100_000
"""Calls of all connections that may wait for the event loop to begin them. Beyond some thousand the library
would cancel calls at random, and a few clients that begin at once have as many."""
_CONNECT_MS = 10_000
_FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 100, 1000
"""Between attempts to connect: a node that comes back is found again soon."""

_CLOSED = "the channel is closed"

Options = Sequence[tuple[str, Any]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Server:
    """The serving side of one listener. Its health service says not serving until the node is ready."""

    def __init__(
        self, methods: ServedMethods, *, tls: Credentials | None = None, open_to_anyone: bool = False
    ) -> None:
        self._methods = methods
        self._tls = tls
        self._open_to_anyone = open_to_anyone
        self._server: grpc.aio.Server | None = None
        self._health = Health(methods.services)

    async def start(self, host: str, port: int) -> int:
        """Bind and listen; return the port. Raises OSError when the port cannot be had."""
        _hold_library()
        server = grpc.aio.server(options=_server_options(self._methods.system))
        server.add_generic_rpc_handlers(
            (_Dispatch(self._methods, self._health, certified=self._tls is not None),)
        )
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self._tls is None:
                bound = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, self._credentials(self._tls))
        except RuntimeError as error:
            await server.stop(None)
            raise OSError(f"cannot listen on {host}:{port}: the port is taken or not allowed") from error
        await server.start()
        self._server = server
        return int(bound)

    async def ready(self) -> None:
        """Say through the health service that calls are welcome."""
        self._health.set_serving()

    async def stop(self, grace: float) -> None:
        """Take no new calls, wait for those under way, and cut off what is left after the grace."""
        self._health.stop()
        if self._server is not None:
            await self._server.stop(grace)

    def _credentials(self, tls: Credentials) -> grpc.ServerCredentials:
        """Credentials that follow their files.

        The library cannot ask for a certificate without insisting on one, so a listener for anonymous callers
        requests none.
        """
        files = CertificateFiles.of(tls)

        def configuration(now: Credentials) -> grpc.ServerCertificateConfiguration:
            pairs = [(now.key or b"", now.certificate or b"")]
            return grpc.ssl_server_certificate_configuration(pairs, root_certificates=now.authority)

        def fetch() -> Any:
            """The new configuration, or None where nothing has changed."""
            renewed = files.read_if_changed() if files is not None else None
            return None if renewed is None else configuration(renewed)

        return grpc.dynamic_ssl_server_credentials(
            configuration(tls), fetch, require_client_authentication=not self._open_to_anyone
        )


class _Dispatch(grpc.GenericRpcHandler):
    """Finds the method of a call."""

    def __init__(self, methods: ServedMethods, health: Health, *, certified: bool) -> None:
        self._methods = methods
        self._certified = certified
        self._handlers: dict[str, Handler] = {
            path: grpc.unary_unary_rpc_method_handler(self._serve(path, answer))
            for path, answer in methods.answers.items()
        }
        self._handlers[f"/{HEALTH}/Check"] = grpc.unary_unary_rpc_method_handler(health.check)
        self._handlers[f"/{HEALTH}/Watch"] = grpc.unary_stream_rpc_method_handler(health.watch)
        reflect: Handler = grpc.stream_stream_rpc_method_handler(Reflection(methods.services).answer)
        self._handlers |= {f"/{service}/ServerReflectionInfo": reflect for service in REFLECTION}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler:
        """Return the handler of a method; for an unknown method, one that refuses."""
        path: str = handler_call_details.method
        known = self._handlers.get(path)
        return known or grpc.stream_stream_rpc_method_handler(partial(self._refuse_unknown, path))

    def _serve(self, path: str, answer: Answer) -> Callable[[bytes, Context], Awaitable[bytes]]:
        methods, most = self._methods, self._methods.system.message_bytes
        names_of = _names if self._certified else _no_names

        async def handle(message: bytes, context: Context) -> bytes:
            metadata = read_metadata(context.invocation_metadata() or ())
            names = names_of(context)
            if len(message) > most:
                why = f"the message has {len(message)} bytes, and may have {most}"
                methods.report(path, metadata, names, "RESOURCE_EXHAUSTED", why)
                return end_call(context, "RESOURCE_EXHAUSTED", why)
            try:
                return await answer(metadata, context.time_remaining(), message, names)
            except Failure as failure:
                return end_call(context, failure.grpc, failure.message, methods.describe_failure(failure))

        return handle

    async def _refuse_unknown(self, path: str, _messages: AsyncIterator[bytes], context: Context) -> None:
        why = f"no method {path}"
        names = _names(context) if self._certified else ()
        metadata = read_metadata(context.invocation_metadata() or ())
        self._methods.report(path, metadata, names, "UNIMPLEMENTED", why)
        end_call(context, "UNIMPLEMENTED", why)


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
        self._address = address
        self._options = _client_options(system, server_name if tls is not None else "")
        self._tls = tls
        self._metadata = metadata
        self._wait_for_ready = wait_for_ready
        self._channel: grpc.aio.Channel | None = None
        self._closed = False

    def method(self, path: str) -> Send:
        """A method as a function."""
        known: Any = None
        common, waits = self._metadata, self._wait_for_ready or None

        async def send(message: bytes, metadata: Metadata, patience: float) -> bytes:
            nonlocal known
            if known is None:
                known = self._open().unary_unary(path)
            try:
                answer: bytes = await known(
                    message, timeout=patience, metadata=(*common, *metadata), wait_for_ready=waits
                )
            except grpc.aio.AioRpcError as error:
                trailers = dict(error.trailing_metadata() or ())
                raise CallRefused(error.code().name, error.details() or "", trailers) from None
            except grpc.aio.UsageError:
                raise CallRefused("CANCELLED", _CLOSED) from None
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self._closed and task is not None and not task.cancelling():
                    # The library cancels what is under way when a channel closes; we were not cancelled.
                    raise CallRefused("CANCELLED", _CLOSED) from None
                raise
            return answer

        return send

    async def close(self) -> None:
        """End the connection."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

    def _open(self) -> grpc.aio.Channel:
        """The channel, made in the event loop that uses it."""
        if self._closed:
            raise CallRefused("CANCELLED", _CLOSED)
        if self._channel is None:
            _hold_library()
            tls = self._tls
            if tls is None:
                self._channel = grpc.aio.insecure_channel(self._address, self._options)
            else:
                credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
                self._channel = grpc.aio.secure_channel(self._address, credentials, self._options)
        return self._channel


@cache
def _hold_library() -> None:
    """Keep the thread of the library for as long as the process lives.

    When the last channel or server is gone the library waits for that thread, in the event loop, while the
    thread may wait for the event loop to take results of calls that were cut off. Neither would ever end.
    """
    grpc.aio.init_grpc_aio()


def _server_options(system: System) -> Options:
    keepalive = system.keepalive
    return (
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", _ROOM * system.message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", system.concurrent_streams),
        # It would refuse calls within the limit while those that have ended before them are tidied up.
        ("grpc.http.overload_protection", 0),
        ("grpc.server.max_pending_requests", _MOST_PENDING),
        ("grpc.server.max_pending_requests_hard_limit", _MOST_PENDING),
        ("grpc.max_allowed_incoming_connections", system.connections),
        ("grpc.max_metadata_size", _LARGEST_HEADERS),
        ("grpc.absolute_max_metadata_size", _LARGEST_HEADERS),
        ("grpc.keepalive_time_ms", keepalive.ping_every_ms),
        ("grpc.keepalive_timeout_ms", keepalive.ping_timeout_ms),
        ("grpc.http2.ping_timeout_ms", keepalive.ping_timeout_ms),
        ("grpc.keepalive_permit_without_calls", int(keepalive.idle_pings)),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", keepalive.shortest_ping_accepted_ms),
        ("grpc.http2.max_ping_strikes", 2),
        ("grpc.max_connection_age_ms", keepalive.connection_age_ms),
    )


def _client_options(system: System, server_name: str) -> Options:
    keepalive = system.keepalive
    named = (("grpc.ssl_target_name_override", server_name),) if server_name else ()
    return (
        *named,
        # Retries are the spec's, with full jitter: no policy for them is looked up. The library still sends
        # again, once, what a server has not begun: calls that met its GOAWAY or the limit of its streams.
        ("grpc.enable_retries", 1),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.lb_policy_name", "round_robin"),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", system.message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", _LARGEST_HEADERS),
        ("grpc.absolute_max_metadata_size", _LARGEST_HEADERS),
        ("grpc.initial_reconnect_backoff_ms", _FIRST_PAUSE_MS),
        # Whatever its name says: it is how long an attempt to connect may take.
        ("grpc.min_reconnect_backoff_ms", _CONNECT_MS),
        ("grpc.max_reconnect_backoff_ms", _LONGEST_PAUSE_MS),
        ("grpc.keepalive_time_ms", keepalive.ping_every_ms),
        ("grpc.keepalive_timeout_ms", keepalive.ping_timeout_ms),
        ("grpc.http2.ping_timeout_ms", keepalive.ping_timeout_ms),
        ("grpc.keepalive_permit_without_calls", int(keepalive.idle_pings)),
        ("grpc.http2.max_pings_without_data", 0),
        # Pings that measure the bandwidth: a busy client would be sent away for too many of them.
        ("grpc.http2.bdp_probe", 0),
    )


def _names(context: Context) -> tuple[bytes, ...]:
    """The URI names in the certificate of a caller."""
    named = context.auth_context().get(_SAN, ())
    return tuple(each for each in named if each.startswith(URI_SCHEME))


def _no_names(_context: Context) -> tuple[bytes, ...]:
    return ()
