"""HTTP connection: that of uvicorn, with limits for the head of a request and for slow clients."""

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
"""The gRPC codes in the log for statuses that are sent outside of any request."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_JOINED_BYTES = 1 << 14
"""Buffered bytes from which a write is worth a system call of its own."""


class HttpLimits(Struct, frozen=True):
    """Limits and timeouts of a listener."""

    connections: int
    head_bytes: int = 32 * 1024
    """The request line and all headers."""
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    idle_seconds: float = 60.0


class _HeadTooLarge(Exception):
    """The headers exceed the limit."""


class _WriteBuffer:
    """A transport that coalesces the head and the body of a response into one system call.

    A long body is written at once, so that the flow control of the transport counts it.
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
    """A connection of a client. Malformed, too large and too slow requests get an error, and are closed.

    Uvicorn's class is not public, so its release is pinned, and each name of it that is used here is held by
    tests/runtime/transport/http/test_uvicorn_names.py.
    """

    def __init__(
        self, config: Config, state: ServerState, limits: HttpLimits, refusals: Refusals, log: Log
    ) -> None:
        super().__init__(config, state, {})
        self._log = log
        self._limits = limits
        self._refusals = refusals
        self._context = contextvars.copy_context()
        """The initial context variables of every request; what one sets, no other request sees."""
        self._in_head = False
        self._head_seen = 0
        self._head_size = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_body = False
        self._rest_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._buffer = _WriteBuffer(transport)
        self.transport = cast("asyncio.Transport", self._buffer)
        if len(self.connections) > self._limits.connections:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections; try again later")
            return
        certificate: Any = transport.get_extra_info("peercert")
        if certificate:
            self.app_state = {"uris": _find_uris(certificate)}
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timer()
        self._cancel_rest_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # A request that resumed the reading of its connection has left its own context variables here.
        self._context.copy().run(super().data_received, data)
        if self.transport.is_closing():
            return
        if self._in_head:
            # The parser does not report an incomplete header, but it buffers all of it.
            self._head_seen += len(data)
            if self._head_seen > self._limits.head_bytes:
                self._refuse_head()
                return
        if self._head_timer is None and (self._in_head or self._is_idle):
            self._start_head_timer()

    def on_message_begin(self) -> None:
        self._in_head, self._head_seen, self._head_size = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        self._cancel_head_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        self._cancel_rest_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._buffer.flush()
        if self._in_body and self._rest_timer is None:
            # The response was sent before all of the body had come. A close would now discard it for a
            # client that still sends, so the rest of the body is read and dropped, for a while.
            self._rest_timer = self.loop.call_later(self._limits.body_seconds, self._buffer.close)
        # The task of this request begins the next one, if that has already come.
        self._context.copy().run(super().on_response_complete)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Called by uvicorn for bytes that the parser, or one of the callbacks above, refused."""
        if self._head_size > self._limits.head_bytes:
            self._refuse_head()
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, "this is no request of HTTP/1.1")

    @property
    def _is_idle(self) -> bool:
        """Whether no request is in flight and no timer will close the connection."""
        # Before the first request there is no cycle, whatever its type says.
        cycle: RequestResponseCycle | None = self.cycle
        return self.timeout_keep_alive_task is None and (cycle is None or cycle.response_complete)

    def _count_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > self._limits.head_bytes:
            raise _HeadTooLarge

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_seconds, self._on_head_timeout)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _cancel_rest_timer(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the headers did not come in time")

    def _refuse_head(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"the headers have more than {self._limits.head_bytes} bytes",
        )

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Respond outside of any request, and close the connection."""
        if self.transport.is_closing():
            return
        self._cancel_head_timer()
        known = {"grpc_code": _GRPC_CODES[status], "http_status": status.value}
        self._log.write(events.RPC_ERROR, message, fields=known)
        found = self._refusals.plain(status, status.name, message, CLOSE)
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
        lines += [name + b": " + value for name, value in found.headers]
        self.transport.write(b"\r\n".join((*lines, b"", found.body)))
        self.transport.close()


def _find_uris(certificate: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Find the URI names of a client's certificate, in the form of the gRPC transport."""
    names = (value.encode() for kind, value in certificate.get("subjectAltName", ()) if kind == "URI")
    return tuple(name for name in names if name.startswith(URI_SCHEME))
