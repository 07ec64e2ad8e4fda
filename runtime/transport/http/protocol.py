"""One HTTP connection: uvicorn's, with bounds on what it may ask for before there is a request to answer."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

from msgspec import Struct
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from runtime.call.identity import URI_SCHEME
from runtime.observe import log as events
from runtime.observe.log import Log
from runtime.transport.http.answers import CLOSE, Refusals

_GRPC_CODES = {
    HTTPStatus.BAD_REQUEST: "INVALID_ARGUMENT",
    HTTPStatus.REQUEST_TIMEOUT: "DEADLINE_EXCEEDED",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "RESOURCE_EXHAUSTED",
    HTTPStatus.SERVICE_UNAVAILABLE: "UNAVAILABLE",
}
"""What the log calls the statuses that are answered outside of any request."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_JOINED_BYTES = 1 << 14
"""How much of an answer is worth a system call of its own."""


class Limits(Struct, frozen=True):
    """What a listener takes of one client, and how long it waits."""

    connections: int
    head_bytes: int = 32 * 1024
    """The request line and all headers."""
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    idle_seconds: float = 60.0


class _HeadTooLarge(Exception):
    """More headers than anyone needs."""


class _Joining:
    """A transport that sends the head of an answer together with its body: one system call and not two.

    A long body is passed on as it comes, so that the flow control of the transport counts it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []
        self._size = 0
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if data == _CONTINUE or self._size >= _JOINED_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._parts and not self._transport.is_closing():
            self._transport.write(b"".join(self._parts))
        self._parts.clear()
        self._size = 0

    def close(self) -> None:
        self.flush()
        self._transport.close()


class Connection(HttpToolsProtocol):
    """A connection of a client. What is no HTTP, too large or too slow is told so, and closed.

    Uvicorn's class is not public, so its release is pinned, and each name of it that is used here is held by
    tests/runtime/transport/http/test_uvicorn_names.py.
    """

    def __init__(
        self, config: Config, state: ServerState, limits: Limits, refusals: Refusals, log: Log
    ) -> None:
        super().__init__(config, state, {})
        self._log = log
        self._limits = limits
        self._refusals = refusals
        self._context = contextvars.copy_context()
        """The context variables that every request begins with; what one sets, no other request sees."""
        self._in_head = False
        self._head_seen = 0
        self._head_size = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_body = False
        self._rest_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._joining = _Joining(transport)
        self.transport = cast("asyncio.Transport", self._joining)
        if len(self.connections) > self._limits.connections:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again later")
            return
        certificate: Any = transport.get_extra_info("peercert")
        if certificate:
            self.app_state = {"uris": _uris(certificate)}
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        self._rest_is_there()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # A request that resumed the reading of its connection has left its own context variables here.
        self._context.copy().run(super().data_received, data)
        if self.transport.is_closing():
            return
        if self._in_head:
            # Of a header that does not end the parser tells nothing, but it keeps all of it.
            self._head_seen += len(data)
            if self._head_seen > self._limits.head_bytes:
                self._refuse_head()
                return
        if self._head_timer is None and (self._in_head or self._is_idle):
            self._await_head()

    def on_message_begin(self) -> None:
        self._in_head, self._head_seen, self._head_size = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        self._head_is_there()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        self._rest_is_there()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._joining.flush()
        if self._in_body and self._rest_timer is None:
            # The answer came before all of the body. Whoever closed now would take it from a client that
            # still sends, so the rest is thrown away as it comes, for a while.
            self._rest_timer = self.loop.call_later(self._limits.body_seconds, self._joining.close)
        # The task of this request begins the next one, if that has already come.
        self._context.copy().run(super().on_response_complete)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """What uvicorn says to bytes that the parser refuses, or that one of the callbacks above refused."""
        if self._head_size > self._limits.head_bytes:
            self._refuse_head()
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")

    @property
    def _is_idle(self) -> bool:
        """Whether nothing is asked for and nothing will end the connection."""
        # Before the first request there is no cycle, whatever its type says.
        cycle: RequestResponseCycle | None = self.cycle
        return self.timeout_keep_alive_task is None and (cycle is None or cycle.response_complete)

    def _count(self, size: int) -> None:
        self._head_size += size
        if self._head_size > self._limits.head_bytes:
            raise _HeadTooLarge

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_seconds, self._head_is_late)

    def _head_is_there(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _rest_is_there(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the headers did not come in time")

    def _refuse_head(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"the headers have more than {self._limits.head_bytes} bytes",
        )

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answers outside of any request, and closes."""
        if self.transport.is_closing():
            return
        self._head_is_there()
        known = {"grpc_code": _GRPC_CODES[status], "http_status": status.value}
        self._log.write(events.RPC_ERROR, message, fields=known)
        found = self._refusals.plain(status, status.name, message, CLOSE)
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
        lines += [name + b": " + value for name, value in found.headers]
        self.transport.write(b"\r\n".join((*lines, b"", found.body)))
        self.transport.close()


def _uris(certificate: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The URI names of a client's certificate, as the other transport gives them."""
    names = (value.encode() for kind, value in certificate.get("subjectAltName", ()) if kind == "URI")
    return tuple(name for name in names if name.startswith(URI_SCHEME))
