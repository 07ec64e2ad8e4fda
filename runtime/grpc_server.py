"""The gRPC side of a node: methods from their tables, health and reflection beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import CoroutineType
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from runtime.call import LONGEST_REQUEST_ID, REQUEST_ID_HEADER
from runtime.conditions import Condition, Failure
from runtime.dispatch import Endpoint
from runtime.grpc_client import CONDITION_HEADER
from runtime.identity import TOKEN_HEADER, URI_SCHEME, Identity
from runtime.tables import Keepalive, System
from runtime.tls import Credentials
from runtime.tracing import TRACE_HEADER, TRACE_ID_HEADER
from runtime.world import World

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_CODES = {code.name: code for code in grpc.StatusCode}


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
        self._server = grpc.aio.server(options=server_options(system))
        self._tls = tls
        self._open_to_anyone = open_to_anyone
        self._health = health.aio.HealthServicer()
        self._services = sorted({endpoint.method.service for endpoint in endpoints.values()})
        self._server.add_generic_rpc_handlers(
            [
                _generic_handler(service, endpoints, identity, world, tls is not None)
                for service in self._services
            ]
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = [*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, self._server)

    async def start(self, host: str, port: int) -> int:
        """Binds and listens; returns the port. Raises OSError when the port cannot be had."""
        await self._tell_health(_NOT_SERVING)
        address = f"{host}:{port}"
        try:
            if self._tls is None:
                bound = self._server.add_insecure_port(address)
            else:
                credentials = self._tls.for_server(require_client=not self._open_to_anyone)
                bound = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: the port is taken or not allowed") from error
        await self._server.start()
        return bound

    async def ready(self) -> None:
        """Says through the health service that calls are welcome."""
        await self._tell_health(_SERVING)

    async def stop(self, grace: float) -> None:
        """Takes no new calls and waits for those under way."""
        await self._tell_health(_NOT_SERVING)
        await self._server.stop(grace)

    async def _tell_health(self, status: Any) -> None:
        for service in ("", *self._services):
            await self._health.set(service, status)


def server_options(system: System) -> list[tuple[str, Any]]:
    """Connection settings of the serving side."""
    keepalive: Keepalive = system.keepalive
    return [
        ("grpc.keepalive_time_ms", keepalive.ping_every_ms),
        ("grpc.keepalive_timeout_ms", keepalive.ping_timeout_ms),
        ("grpc.keepalive_permit_without_calls", int(keepalive.idle_pings)),
        ("grpc.http2.min_ping_interval_without_data_ms", keepalive.shortest_ping_accepted_ms),
        ("grpc.max_send_message_length", system.message_bytes),
        ("grpc.max_receive_message_length", system.message_bytes),
        ("grpc.max_concurrent_streams", system.concurrent_streams),
        ("grpc.max_allowed_incoming_connections", system.connections),
        # Two nodes must never share a port by accident.
        ("grpc.so_reuseport", 0),
    ]


def _generic_handler(
    service: str, endpoints: Mapping[str, Endpoint], identity: Identity, world: World, secure: bool
) -> grpc.GenericRpcHandler:
    methods = {
        endpoint.method.name: grpc.unary_unary_rpc_method_handler(
            _serve(endpoint, identity, world, secure),
            request_deserializer=endpoint.method.request.FromString,
            response_serializer=endpoint.method.response.SerializeToString,
        )
        for endpoint in endpoints.values()
        if endpoint.method.service == service
    }
    return grpc.method_handlers_generic_handler(service, methods)


def _serve(endpoint: Endpoint, identity: Identity, world: World, secure: bool) -> Callable[[Any, Any], Any]:
    begin, path, monotonic = endpoint.begin, endpoint.method.path, world.monotonic
    nobody = identity.proven(path, (), None)

    async def serve(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        authorization = request_id = trace = None
        for name, value in context.invocation_metadata() or ():
            if name == TOKEN_HEADER:
                authorization = str(value)
            elif name == REQUEST_ID_HEADER:
                request_id = str(value)[:LONGEST_REQUEST_ID]
            elif name == TRACE_HEADER:
                trace = str(value)
            elif name == TRACE_ID_HEADER:
                trace = trace or str(value)
        uris = _uris(context.peer_identities()) if secure else ()
        caller = nobody
        if uris or authorization is not None:
            caller = identity.proven(path, uris, authorization)
        # The stubs promise a number, but a caller that sets no deadline has None.
        remaining: float | None = context.time_remaining()
        deadline = monotonic() + remaining if remaining else None
        try:
            answered = begin(caller, request, deadline, request_id, trace)
            return await answered if type(answered) is CoroutineType else answered
        except Failure as failure:
            if isinstance(failure, Condition):
                context.set_trailing_metadata(((CONDITION_HEADER, failure.code),))
            await context.abort(_CODES[failure.grpc], failure.message)

    return serve


def _uris(identities: Iterable[bytes] | None) -> list[bytes]:
    """The URI names of a peer's certificate.

    The names alone cost an eighth of the whole authentication context, which copies the certificate.
    """
    return [name for name in identities or () if name.startswith(URI_SCHEME)]
