"""The channel over gRPC: calls of one component of another node, and what its failures mean here."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from runtime.call.call_policy import apply_call_policy
from runtime.call.conditions import CONDITION_HEADER, CallFailed, Failure
from runtime.call.context import REQUEST_ID_HEADER, Call, Invoke, Request, Response
from runtime.call.identity import token_metadata
from runtime.model.system import Method, System
from runtime.observe.tracing import TRACE_HEADER
from runtime.transport.grpc.carrier import DEFAULT, CallRefused, make_client
from runtime.transport.tls import Credentials, server_name


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
        carrier: str = DEFAULT,
        wait_for_ready: bool = False,
    ) -> None:
        self._system = system
        self._principal = principal
        self._is_closed = False
        certified = tls is not None and tls.certificate is not None
        self._carrier = make_client(
            carrier,
            system,
            address,
            tls=tls,
            server_name=server_name(system.name, component),
            metadata=token_metadata(token) if token and not certified else (),
            wait_for_ready=wait_for_ready,
        )

    def bind(
        self, method: Method, request: type[Request], response: type[Response]
    ) -> Invoke[Request, Response]:
        """The method as a function."""
        permission = self._system.matrix.get(method.path, {}).get(self._principal)
        service = method.service.rpartition(".")[2]
        read, write = method.response.FromString, method.request.SerializeToString
        send, most = self._carrier.method(method.path), self._system.message_bytes

        async def attempt(message: Any, call: Call, patience: float) -> Any:
            request_id = (REQUEST_ID_HEADER, call.request_id)
            metadata = (request_id,) if call.trace is None else (request_id, (TRACE_HEADER, call.trace))
            encoded = write(message)
            if len(encoded) > most:
                why = f"the message has {len(encoded)} bytes, and may have {most}"
                raise CallFailed("RESOURCE_EXHAUSTED", why, service)
            try:
                answered = await send(encoded, metadata, patience)
            except CallRefused as refused:
                raise self._to_failure(refused, service) from None
            try:
                return read(answered)
            except DecodeError:
                why = f"the answer is no {method.response.__name__}"
                raise CallFailed("INTERNAL", why, service) from None

        return apply_call_policy(method, attempt, self._principal, permission.mode if permission else None)

    async def close(self) -> None:
        """Ends the connection."""
        self._is_closed = True
        await self._carrier.close()

    def _to_failure(self, refused: CallRefused, service: str) -> Failure:
        name = refused.metadata.get(CONDITION_HEADER)
        condition = self._system.conditions.get(name) if isinstance(name, str) else None
        if condition is not None:
            return condition.from_remote(refused.message, service)
        if refused.status == "CANCELLED" and not self._is_closed:
            # This side has not cancelled it: grpcio's server does so with new calls while it is stopping.
            return CallFailed("UNAVAILABLE", "the server has cancelled the call", service)
        return CallFailed(refused.status, refused.message, service)
