"""The ASGI application of a node: route a request to its method, and convert the outcome to a response.

It is written without a framework: the routes are tables already, and each layer would cost every call.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from typing import Any

from runtime.observe import log as events
from runtime.observe.log import Log
from runtime.transport.http.answers import NO_STORE, HttpAnswer, Refusals
from runtime.transport.http.operation import Scope, read_request_id
from runtime.transport.http.requests import Receive
from runtime.transport.http.routes import Routes

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Respond = Callable[[Scope, Receive, Mapping[str, str]], Awaitable[HttpAnswer | None]]
"""Takes the request and its path parameters; None for a client that has disconnected."""

_LONGEST_PATH = 200


class App:
    """The ASGI application that uvicorn calls."""

    def __init__(
        self,
        routes: Iterable[tuple[str, str, Respond]],
        refusals: Refusals,
        log: Log,
        any_value: Collection[tuple[str, str]] = (),
    ) -> None:
        self._routes = Routes(routes, any_value)
        self._refusals = refusals
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            found = await self._respond(scope, receive)
        except Exception as error:
            found = self._report_fault(error, scope)
        if found is None:
            return
        await send({"type": "http.response.start", "status": found.status, "headers": found.headers})
        if found.chunks is not None:
            async for chunk in found.chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": found.body})

    async def _respond(self, scope: Scope, receive: Receive) -> HttpAnswer | None:
        resource = self._routes.find(scope["raw_path"], scope["method"])
        if resource is None:
            return self._refuse(scope, "route_not_found")
        respond = resource.methods.get(scope["method"])
        if respond is None:
            allow = (b"allow", resource.allow.encode())
            if scope["method"] == "OPTIONS":
                return HttpAnswer(204, [NO_STORE, allow])
            return self._refuse(
                scope, "method_not_allowed", allow, method=scope["method"], allowed=resource.allow
            )
        return await respond(scope, receive, resource.parameters)

    def _refuse(self, scope: Scope, role: str, *more: tuple[bytes, bytes], **fields: str) -> HttpAnswer:
        """Answer and log a request for which there is no method."""
        path = _printable_path(scope)
        condition = self._refusals.condition(role, path=path, **fields)
        known = {
            "request_id": read_request_id(dict(scope["headers"])),
            "grpc_code": condition.grpc,
            "http_status": condition.http,
            "condition": condition.code,
        }
        self._log.write(events.RPC_ERROR, condition.message, f"{scope['method']} {path}", known)
        found = self._refusals.of(condition)
        return HttpAnswer(found.status, [*found.headers, *more], found.body)

    def _report_fault(self, error: Exception, scope: Scope) -> HttpAnswer:
        """Log a fault of the transport itself; the client gets only its correlation id."""
        correlation = read_request_id(dict(scope["headers"])) or f"{id(error):x}"
        detail = "".join(traceback.format_exception(error))
        self._log.write(
            events.RPC_FAULT,
            f"{type(error).__name__}: {error}",
            fields={"request_id": correlation, "correlation_id": correlation, "detail": detail},
        )
        return self._refusals.answer("unexpected", correlation_id=correlation)


def _printable_path(scope: Scope) -> str:
    path: bytes = scope["raw_path"]
    return path[:_LONGEST_PATH].decode("ascii", "replace")
