"""One method over HTTP: decode the request, call the endpoint, and encode the response as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

from runtime.call.conditions import Condition, Failure, TransportRefusal
from runtime.call.context import LONGEST_REQUEST_ID, REQUEST_ID_HEADER
from runtime.call.endpoint import Endpoint
from runtime.call.identity import TOKEN_HEADER, TWO_TOKENS, AuthenticationError, Authenticator
from runtime.model.json_text import NotJson
from runtime.model.system import Route, System
from runtime.observe.tracing import TRACE_HEADER, TRACE_ID_HEADER
from runtime.transport.http.answers import CLOSE, NO_STORE, HttpAnswer, Refusals, answer, make_renamer
from runtime.transport.http.codec import Codec
from runtime.transport.http.requests import (
    BodyTooLarge,
    ClientDisconnected,
    Receive,
    RequestReader,
    UnsupportedMedia,
    check_media,
    read_body,
)
from runtime.transport.http.values import InvalidValue
from runtime.world import World

Scope = MutableMapping[str, Any]

_MARGIN = 0.002
"""The timer fires so much later than the deadline, so that the call sees itself as expired."""
_REQUEST_ID = REQUEST_ID_HEADER.encode()
_TRACE = TRACE_HEADER.encode()
_TRACE_ID = TRACE_ID_HEADER.encode()
_TOKEN = TOKEN_HEADER.encode()


class Operation:
    """One method over HTTP."""

    def __init__(
        self,
        system: System,
        endpoint: Endpoint,
        route: Route,
        authenticator: Authenticator,
        world: World,
        codec: Codec,
        refusals: Refusals,
        *,
        body_seconds: float,
    ) -> None:
        method = endpoint.method
        self._endpoint = endpoint
        self._reader = RequestReader(method, route, codec)
        self._write = codec.writer(method.response)
        self._route = route
        self._status = route.status
        self._instead = route.instead
        self._authenticator = authenticator
        self._world = world
        self._refusals = refusals
        self._rename = make_renamer({**codec.renames(method.response), **codec.renames(method.request)})
        self._allowed = system.matrix.get(method.path, {})
        self._empty = method.request
        self._deadline_s = method.policy.deadline_ms / 1000
        self._max_bytes = method.max_request_bytes or system.message_bytes
        self._body_seconds = body_seconds

    async def respond(self, scope: Scope, receive: Receive, path: Mapping[str, str]) -> HttpAnswer | None:
        """Answer one request."""
        headers = dict(scope["headers"])
        caller = self._authenticate(scope, headers)
        request_id, trace = self._read_ids(headers)
        deadline = self._world.monotonic() + self._deadline_s
        try:
            if isinstance(caller, AuthenticationError) or caller not in self._allowed:
                # A caller without permission learns nothing about problems of the request.
                request: Any = self._empty()
            elif self._reader.has_body:
                body = await self._read_body(receive, headers)
                deadline = self._world.monotonic() + self._deadline_s
                request = self._reader.from_body(body, path)
            else:
                request = self._reader.from_query(scope["query_string"], path)
        except ClientDisconnected:
            return None
        except TimeoutError:
            message = f"the body did not come within {self._body_seconds:g} s"
            late = TransportRefusal("DEADLINE_EXCEEDED", message)
            self._endpoint.refuse(caller, late, request_id, trace)
            return self._refusals.plain(408, "REQUEST_TIMEOUT", message, CLOSE)
        except (InvalidValue, NotJson, BodyTooLarge, UnsupportedMedia) as problem:
            condition = self._to_condition(problem)
            self._endpoint.refuse(caller, condition, request_id, trace)
            return self._refusals.of(condition)
        try:
            async with asyncio.timeout(self._deadline_s + _MARGIN):
                response = await self._endpoint.answer(caller, request, deadline, request_id, trace)
        except Failure as failure:
            return self._refusals.of(failure, self._rename)
        except TimeoutError:
            return self._refusals.answer("deadline_exceeded", method=str(self._endpoint.method))
        status = self._status if not self._instead else self._status_of(response)
        if status == 204:
            return HttpAnswer(204, [NO_STORE])
        return answer(status, self._write(response))

    def _read_ids(self, headers: Mapping[bytes, bytes]) -> tuple[str | None, str | None]:
        """Read the ids of the request and of the trace."""
        return read_request_id(headers), _text(headers.get(_TRACE) or headers.get(_TRACE_ID))

    def _status_of(self, response: Any) -> int:
        for each in self._instead:
            if _is_set(response, each.field) == each.is_set:
                return each.status
        return self._status

    def _authenticate(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str | AuthenticationError:
        names = [_text(headers.get(b"host")) or ""]
        if (origin := _text(headers.get(b"origin"))) is not None:
            names.append(origin)
        uris = scope["state"].get("uris", ())
        tokens = [value for name, value in scope["headers"] if name == _TOKEN]
        token = TWO_TOKENS if len(tokens) > 1 else _text(headers.get(_TOKEN))
        return self._authenticator.authenticate(self._endpoint.method.path, uris, token, names)

    async def _read_body(self, receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
        said = b"content-type" in headers or b"content-encoding" in headers
        if said:
            check_media(headers)
        async with asyncio.timeout(self._body_seconds):
            body = await read_body(receive, headers.get(b"content-length"), self._max_bytes)
        if body and not said:
            check_media(headers)
        return body

    def _to_condition(self, problem: Exception) -> Condition:
        if isinstance(problem, InvalidValue):
            return self._refusals.condition(
                "invalid_request", field=problem.path or "body", problem=problem.problem
            )
        if isinstance(problem, NotJson):
            return self._refusals.condition("malformed_body", problem=str(problem))
        if isinstance(problem, BodyTooLarge):
            return self._refusals.condition("body_too_large", limit=str(self._max_bytes))
        return self._refusals.condition("unsupported_media_type", media_type=str(problem))


def _is_set(message: Any, field: str) -> bool:
    """Whether a field of a response is set: it is present, true, not 0 or not empty."""
    if message.DESCRIPTOR.fields_by_name[field].has_presence:
        return bool(message.HasField(field))
    return bool(getattr(message, field))


def read_request_id(headers: Mapping[bytes, bytes]) -> str | None:
    """Read the id of the request from the headers."""
    given = headers.get(_REQUEST_ID)
    return given.decode("latin-1")[:LONGEST_REQUEST_ID] or None if given is not None else None


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")
