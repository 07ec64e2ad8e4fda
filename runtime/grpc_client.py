"""The channel over gRPC: a connection to another node, and what its failures mean here."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio

from runtime.call import REQUEST_ID_HEADER, Call, Invoke, Request, Response
from runtime.conditions import CONDITION_HEADER, CallFailed, Failure
from runtime.identity import token_metadata
from runtime.outbound import governed
from runtime.tables import Keepalive, Method, System
from runtime.tls import Credentials, server_name
from runtime.tracing import TRACE_HEADER


class GrpcChannel:
    """Calls one component at one address, as one principal."""

    def __init__(
        self,
        system: System,
        address: str,
        principal: str,
        component: str,
        *,
        token: str | None = None,
        tls: Credentials | None = None,
    ) -> None:
        self._system = system
        self._principal = principal
        certified = tls is not None and tls.certificate is not None
        self._proof = token_metadata(token) if token and not certified else ()
        options = client_options(system.keepalive, system.message_bytes)
        if tls is None:
            self._channel = grpc.aio.insecure_channel(address, options)
        else:
            options += tls.name_options(server_name(system.name, component))
            self._channel = grpc.aio.secure_channel(address, tls.for_client(), options)

    def bind(
        self, method: Method, request: type[Request], response: type[Response]
    ) -> Invoke[Request, Response]:
        """The method as a function."""
        permission = self._system.matrix.get(method.path, {}).get(self._principal)
        service = method.service.rpartition(".")[2]
        stub: Any = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )

        async def attempt(message: Any, call: Call, patience: float) -> Any:
            metadata = (*self._proof, (REQUEST_ID_HEADER, call.request_id))
            if call.trace is not None:
                metadata = (*metadata, (TRACE_HEADER, call.trace))
            try:
                return await stub(message, timeout=patience, metadata=metadata)
            except grpc.aio.AioRpcError as error:
                raise self._received(error, service) from None

        return governed(method, attempt, self._principal, permission.mode if permission else None)

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()

    def _received(self, error: grpc.aio.AioRpcError, service: str) -> Failure:
        message = error.details() or ""
        for name, value in error.trailing_metadata() or ():
            if name == CONDITION_HEADER and str(value) in self._system.conditions:
                return self._system.conditions[str(value)].received(message, service)
        return CallFailed(error.code().name, message, service)


def client_options(keepalive: Keepalive, message_bytes: int) -> list[tuple[str, Any]]:
    """Connection settings of the calling side."""
    return [
        ("grpc.keepalive_time_ms", keepalive.ping_every_ms),
        ("grpc.keepalive_timeout_ms", keepalive.ping_timeout_ms),
        ("grpc.keepalive_permit_without_calls", int(keepalive.idle_pings)),
        ("grpc.max_send_message_length", message_bytes),
        ("grpc.max_receive_message_length", message_bytes),
        # Retries are the engine's: the channel's own have too little jitter and know no conditions.
        ("grpc.enable_retries", 0),
        # A node that comes back is found again soon, not after two minutes.
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
