"""The channel over gRPC: calls of one component of another node, and what its failures mean here."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from runtime.call import REQUEST_ID_HEADER, Call, Invoke, Request, Response
from runtime.conditions import CallFailed, Failure
from runtime.grpc_line import Ended, Line
from runtime.grpc_messages import ACCEPT_ENCODING, CONTENT_TYPE, Refused, framed, timeout_of
from runtime.http2.headers import Header, written
from runtime.http2.streams import Limits
from runtime.identity import token_metadata
from runtime.outbound import governed
from runtime.tables import Method, System
from runtime.tls import Credentials, server_name
from runtime.tracing import TRACE_HEADER

_REQUEST_ID, _TRACE = REQUEST_ID_HEADER.encode(), TRACE_HEADER.encode()


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
        proof = token_metadata(token) if token and not certified else ()
        self._headers: tuple[Header, ...] = (
            (b":method", b"POST"),
            (b":scheme", b"http" if tls is None else b"https"),
            (b":authority", address.encode()),
            (b"te", b"trailers"),
            CONTENT_TYPE,
            ACCEPT_ENCODING,
            *((name.encode(), value.encode()) for name, value in proof),
        )
        context = None if tls is None else tls.for_client()
        self._line = Line(address, Limits.of(system), context, server_name(system.name, component))

    def bind(
        self, method: Method, request: type[Request], response: type[Response]
    ) -> Invoke[Request, Response]:
        """The method as a function."""
        permission = self._system.matrix.get(method.path, {}).get(self._principal)
        service = method.service.rpartition(".")[2]
        read, write = method.response.FromString, method.request.SerializeToString
        # What all calls have in common comes first, as the pseudo-headers have to.
        headers = (*self._headers[:3], (b":path", method.path.encode()), *self._headers[3:])
        line, most = self._line, self._system.message_bytes

        async def attempt(message: Any, call: Call, patience: float) -> Any:
            varying = [timeout_of(patience), (_REQUEST_ID, call.request_id.encode())]
            if call.trace is not None:
                varying.append((_TRACE, call.trace.encode()))
            said = write(message)
            try:
                if len(said) > most:
                    why = f"the message has {len(said)} bytes, and may have {most}"
                    raise Refused("RESOURCE_EXHAUSTED", why)
                answered = await line.call(headers, written(varying), framed(said), patience)
            except Refused as refused:
                raise self._received(refused, service) from None
            try:
                return read(answered)
            except DecodeError:
                why = f"the answer is no {method.response.__name__}"
                raise CallFailed("INTERNAL", why, service) from None

        return governed(method, attempt, self._principal, permission.mode if permission else None)

    async def close(self) -> None:
        """Ends the connection."""
        await self._line.close()

    def _received(self, refused: Refused, service: str) -> Failure:
        if isinstance(refused, Ended) and refused.condition is not None:
            condition = self._system.conditions.get(refused.condition)
            if condition is not None:
                return condition.received(refused.message, service)
        return CallFailed(refused.status, refused.message, service)
