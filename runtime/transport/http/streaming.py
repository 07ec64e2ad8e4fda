"""Methods over HTTP with a streamed body or a streamed response."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from runtime.call.conditions import Failure
from runtime.call.identity import AuthenticationError
from runtime.call.streams import Content, ContentStream
from runtime.transport.http.answers import CLOSE, HttpAnswer, answer
from runtime.transport.http.operation import Operation, Scope
from runtime.transport.http.requests import ClientDisconnected, Receive
from runtime.transport.http.values import InvalidValue

OCTETS = b"application/octet-stream"
_RANGE = re.compile(rb"bytes=(\d{0,18})-(\d{0,18})")


class StreamingOperation(Operation):
    """A method with streamed content, which is never buffered as a whole."""

    async def respond(self, scope: Scope, receive: Receive, path: Mapping[str, str]) -> HttpAnswer | None:
        headers = dict(scope["headers"])
        caller = self._authenticate(scope, headers)
        request_id, trace = self._read_ids(headers)
        stream = ContentStream()
        request: Any = self._empty()
        if not isinstance(caller, AuthenticationError) and caller in self._allowed:
            try:
                request = self._reader.from_query(scope["query_string"], path)
            except InvalidValue as problem:
                condition = self._to_condition(problem)
                self._endpoint.refuse(caller, condition, request_id, trace)
                return _close_after(self._refusals.of(condition))
            if self._route.body is not None:
                length = headers.get(b"content-length", b"")
                stream = ContentStream(self._read_chunks(receive), int(length) if length.isdigit() else None)
        try:
            # No deadline for the whole content: the timeout is for each chunk.
            response = await self._endpoint.answer(caller, request, None, request_id, trace, stream)
        except ClientDisconnected:
            return None
        except TimeoutError:
            message = f"the content did not go on within {self._body_seconds:g} s"
            return self._refusals.plain(408, "REQUEST_TIMEOUT", message, CLOSE)
        except Failure as failure:
            return _close_after(self._refusals.of(failure, self._rename))
        if stream.outgoing is not None:
            return _make_content_response(stream.outgoing, headers, is_head=scope["method"] == "HEAD")
        return answer(self._status_of(response), self._write(response))

    async def _read_chunks(self, receive: Receive) -> AsyncIterator[bytes]:
        while True:
            async with asyncio.timeout(self._body_seconds):
                message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            if piece := message.get("body", b""):
                yield piece
            if not message.get("more_body", False):
                return


def _make_content_response(content: Content, headers: Mapping[bytes, bytes], *, is_head: bool) -> HttpAnswer:
    """Make a response with content, or with the requested range of it."""
    tag = f'"{content.tag}"'.encode()
    known = [(b"etag", tag), (b"accept-ranges", b"bytes")]
    if tag in (each.strip() for each in headers.get(b"if-none-match", b"").split(b",")):
        return HttpAnswer(304, known)
    first, last, status = 0, content.size, 200
    # A range of other content than the client has begun with is of no use (If-Range).
    fresh = headers.get(b"if-range", tag) == tag
    if fresh and (asked := _RANGE.fullmatch(headers.get(b"range", b""))) is not None:
        part = _parse_range(asked[1], asked[2], content.size)
        if part is None:
            return HttpAnswer(
                416, [*known, (b"content-range", b"bytes */%d" % content.size), (b"content-length", b"0")]
            )
        first, last, status = *part, 206
        known.append((b"content-range", b"bytes %d-%d/%d" % (first, last - 1, content.size)))
    known += [(b"content-type", OCTETS), (b"content-length", b"%d" % (last - first))]
    # A browser saves the content as a file, and never runs it as a page.
    known += [(b"content-disposition", b"attachment"), (b"x-content-type-options", b"nosniff")]
    return HttpAnswer(status, known, chunks=None if is_head else content.read(first, last))


def _parse_range(first: bytes, last: bytes, size: int) -> tuple[int, int] | None:
    """Parse a range to its bytes, the end excluded; None where it is empty."""
    if not first:
        length = min(int(last or 0), size)
        return (size - length, size) if length else None
    begin, end = int(first), min(int(last), size - 1) + 1 if last else size
    return (begin, end) if begin < end else None


def _close_after(found: HttpAnswer) -> HttpAnswer:
    """Close the connection after a response, as the rest of the body is not read."""
    return HttpAnswer(found.status, [*found.headers, CLOSE], found.body)
