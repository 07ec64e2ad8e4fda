"""The methods of a node as a carrier serves them: bytes in, bytes out, every call through its endpoint."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from google.protobuf.message import DecodeError, Message

from runtime.call.conditions import CONDITION_HEADER, Condition, Failure, TransportRefusal
from runtime.call.context import LONGEST_REQUEST_ID, REQUEST_ID_HEADER
from runtime.call.endpoint import Endpoint
from runtime.call.identity import TOKEN_HEADER, TWO_TOKENS, AuthenticationError, Authenticator
from runtime.model.system import System
from runtime.observe import log as events
from runtime.observe.log import Log
from runtime.observe.tracing import TRACE_HEADER, TRACE_ID_HEADER
from runtime.transport.grpc.status_codes import STATUS_CODES
from runtime.transport.grpc.status_details import DETAILS_HEADER, encode_details
from runtime.world import World

_NAMES: dict[str | bytes, str] = {
    spelling: name
    for name in (TOKEN_HEADER, REQUEST_ID_HEADER, TRACE_HEADER, TRACE_ID_HEADER)
    for spelling in (name, name.encode())
}


class CallMetadata:
    """The proof of a caller by token, the id of its request and its trace."""

    __slots__ = ("authorization", "request_id", "trace")

    def __init__(self) -> None:
        self.authorization: str | AuthenticationError | None = None
        self.request_id: str | None = None
        self.trace: str | None = None


def read_metadata(pairs: Iterable[tuple[str | bytes, str | bytes]]) -> CallMetadata:
    """Read the metadata of a call; names and values are text or bytes, as the carrier has them."""
    found = CallMetadata()
    for key, given in pairs:
        if (name := _NAMES.get(key)) is None:
            continue
        value = given if isinstance(given, str) else given.decode(errors="replace")
        if name == REQUEST_ID_HEADER:
            found.request_id = value[:LONGEST_REQUEST_ID]
        elif name == TRACE_HEADER:
            found.trace = value
        elif name == TRACE_ID_HEADER:
            found.trace = found.trace or value
        else:
            found.authorization = TWO_TOKENS if found.authorization is not None else value
    return found


Answer = Callable[[CallMetadata, float | None, bytes, tuple[bytes, ...]], Coroutine[Any, Any, bytes]]
"""Answers a message with one. It takes the metadata of the call, the seconds until its deadline, the message,
and the URI names in the certificate of its caller; it raises a Failure that has been counted and logged."""


class ServedMethods:
    """The methods that a listener offers, by path, and what is said of calls that none of them answers."""

    def __init__(
        self,
        system: System,
        endpoints: Mapping[str, Endpoint],
        authenticator: Authenticator,
        world: World,
        log: Log,
    ) -> None:
        self.system = system
        self.services = sorted({endpoint.method.service for endpoint in endpoints.values()})
        self.answers: Mapping[str, Answer] = {
            path: _answer(system, endpoint, authenticator, world) for path, endpoint in endpoints.items()
        }
        self.log = log
        self._endpoints = endpoints
        self._authenticator = authenticator

    def allow(self, path: str, metadata: CallMetadata, names: tuple[bytes, ...]) -> int:
        """Return the max bytes of a caller's message; 0 where the guard refuses the caller anyway."""
        caller = self._authenticator.authenticate(path, names, metadata.authorization)
        is_allowed = isinstance(caller, str) and caller in self.system.matrix.get(path, {})
        return self.system.message_bytes if is_allowed else 0

    def report(
        self, path: str, metadata: CallMetadata, names: tuple[bytes, ...], status: str, message: str
    ) -> None:
        """Log a call that no method has answered, and count it where it is of a method."""
        caller = self._authenticator.authenticate(path, names, metadata.authorization)
        if (endpoint := self._endpoints.get(path)) is not None:
            failure = TransportRefusal(status, message)
            endpoint.refuse(caller, failure, metadata.request_id, metadata.trace)
            return
        known = {"request_id": metadata.request_id, "caller": caller if isinstance(caller, str) else None}
        method = path.rpartition(".")[2].replace("/", ".")
        self.log.write(events.RPC_ERROR, message, method, {**known, "grpc_code": status})

    def describe_failure(self, failure: Failure) -> tuple[tuple[str, str | bytes], ...]:
        """The trailing metadata of a call that failed: the name of its condition, and its details."""
        if not isinstance(failure, Condition):
            return ()
        details = encode_details(failure, STATUS_CODES[failure.grpc], self.system.name)
        return (CONDITION_HEADER, failure.code), (DETAILS_HEADER, details)


def _answer(system: System, endpoint: Endpoint, authenticator: Authenticator, world: World) -> Answer:
    path, monotonic = endpoint.method.path, world.monotonic
    read, serialize = endpoint.method.request.FromString, endpoint.method.response.SerializeToString
    anonymous, allowed = authenticator.authenticate(path, (), None), system.matrix.get(path, {})
    kind = endpoint.method.request
    invalid: Callable[..., Condition] = system.roles["invalid_request"]
    most = system.message_bytes

    def write(response: Message) -> bytes:
        message: bytes = serialize(response)
        if len(message) > most:
            raise TransportRefusal(
                "RESOURCE_EXHAUSTED", f"the answer has {len(message)} bytes, and may have {most}"
            )
        return message

    async def answer(
        metadata: CallMetadata, timeout: float | None, message: bytes, names: tuple[bytes, ...]
    ) -> bytes:
        caller = anonymous
        if names or metadata.authorization is not None:
            caller = authenticator.authenticate(path, names, metadata.authorization)
        try:
            request = read(message)
        except DecodeError:
            if isinstance(caller, str) and caller in allowed:
                problem = f"is no {kind.__name__}, or has text that is not UTF-8"
                condition = invalid(field="message", problem=problem)
                endpoint.refuse(caller, condition, metadata.request_id, metadata.trace)
                raise condition from None
            # A caller that is refused learns nothing of what is wrong with its message.
            request = kind()
        deadline = monotonic() + timeout if timeout is not None else None
        response: bytes = await endpoint.answer(
            caller, request, deadline, metadata.request_id, metadata.trace, write=write
        )
        return response

    return answer
