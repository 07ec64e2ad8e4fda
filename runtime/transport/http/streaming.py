"""Methods over HTTP whose body, or whose answer, is content and not JSON."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from runtime.call.conditions import Failure
from runtime.call.identity import Unproven
from runtime.call.streams import Content, Stream
from runtime.transport.http.answers import CLOSE, Answer, answer
from runtime.transport.http.operation import Operation, Scope
from runtime.transport.http.requests import Gone, Receive
from runtime.transport.http.values import Misread

OCTETS = b"application/octet-stream"
_RANGE = re.compile(rb"bytes=(\d{0,18})-(\d{0,18})")


class StreamingOperation(Operation):
    """One such method. Nothing of the content is kept in memory longer than it takes to pass it on."""

    async def respond(self, scope: Scope, receive: Receive, path: Mapping[str, str]) -> Answer | None:
        headers = dict(scope["headers"])
        caller = self._caller(scope, headers)
        request_id, trace = self._ids(headers)
        stream = Stream()
        request: Any = self._empty()
        if not isinstance(caller, Unproven) and caller in self._allowed:
            try:
                request = self._reader.from_query(scope["query_string"], path)
            except Misread as problem:
                condition = self._refused(problem)
                self._endpoint.refuse(caller, condition, request_id, trace)
                return _closing(self._refusals.of(condition))
            if self._route.body is not None:
                length = headers.get(b"content-length", b"")
                stream = Stream(self._pieces(receive), int(length) if length.isdigit() else None)
        try:
            # Content takes as long as it takes: each piece has to come in time, not all of them together.
            response = await self._endpoint.answer(caller, request, None, request_id, trace, stream)
        except Gone:
            return None
        except TimeoutError:
            message = f"the content did not go on within {self._body_seconds:g} s"
            return self._refusals.plain(408, "REQUEST_TIMEOUT", message, CLOSE)
        except Failure as failure:
            return _closing(self._refusals.of(failure, self._rename))
        if stream.outgoing is not None:
            return _carrying(stream.outgoing, headers, is_head=scope["method"] == "HEAD")
        return answer(self._status_of(response), self._write(response))

    async def _pieces(self, receive: Receive) -> AsyncIterator[bytes]:
        while True:
            async with asyncio.timeout(self._body_seconds):
                message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            if piece := message.get("body", b""):
                yield piece
            if not message.get("more_body", False):
                return


def _carrying(content: Content, headers: Mapping[bytes, bytes], *, is_head: bool) -> Answer:
    """An answer with content, or with the part of it that was asked for."""
    tag = f'"{content.tag}"'.encode()
    known = [(b"etag", tag), (b"accept-ranges", b"bytes")]
    if tag in (each.strip() for each in headers.get(b"if-none-match", b"").split(b",")):
        return Answer(304, known)
    first, last, status = 0, content.size, 200
    # A part of something else than what the client has begun with is no use to it.
    fresh = headers.get(b"if-range", tag) == tag
    if fresh and (asked := _RANGE.fullmatch(headers.get(b"range", b""))) is not None:
        part = _part(asked[1], asked[2], content.size)
        if part is None:
            return Answer(
                416, [*known, (b"content-range", b"bytes */%d" % content.size), (b"content-length", b"0")]
            )
        first, last, status = *part, 206
        known.append((b"content-range", b"bytes %d-%d/%d" % (first, last - 1, content.size)))
    known += [(b"content-type", OCTETS), (b"content-length", b"%d" % (last - first))]
    # Whoever opens an address in a browser gets a file to keep, not a page to run.
    known += [(b"content-disposition", b"attachment"), (b"x-content-type-options", b"nosniff")]
    return Answer(status, known, chunks=None if is_head else content.read(first, last))


def _part(first: bytes, last: bytes, size: int) -> tuple[int, int] | None:
    """The bytes that a range stands for, the end excluded; None where there are none."""
    if not first:
        length = min(int(last or 0), size)
        return (size - length, size) if length else None
    begin, end = int(first), min(int(last), size - 1) + 1 if last else size
    return (begin, end) if begin < end else None


def _closing(found: Answer) -> Answer:
    """Whoever goes on sending what nobody reads is not listened to any longer."""
    return Answer(found.status, [*found.headers, CLOSE], found.body)
