"""Which header lists are well-formed: names, values and pseudo-headers (RFC 9113, sections 8.2 and 8.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from runtime.transport.grpc.direct.frames import Code, StreamError

Header = tuple[bytes, bytes]
Made = TypeVar("Made")

_TOKEN = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
FORBIDDEN = b"\0\r\n"
_WHITE_SPACE = b" \t"
_AUTHORIZATION = b"authorization"
_PSEUDO = frozenset((b":method", b":scheme", b":path", b":authority"))
_NEEDED = frozenset((b":method", b":scheme", b":path"))
_OF_CONNECT = frozenset((b":method", b":authority"))
_CONNECTION_SPECIFIC = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_MOST_LAYOUTS = 256
_LONGEST_LENGTH = 18
"""Digits of a content-length."""


class Layout(NamedTuple):
    """Where a request has the headers whose values have rules; -1 where it has none."""

    method: int
    path: int
    te: int
    content_length: int


def parse_request(
    make: Callable[[list[Header]], Made], headers: list[Header]
) -> tuple[Made, int | None] | None:
    """What `make` makes of the headers of a request, with its content-length; None for trailers.

    Raises a StreamError where they are malformed.
    """
    layout = _layout_of(tuple([name for name, _ in headers]))
    if layout is None:
        return None
    method, path, te, content_length = layout
    if path < 0 and headers[method][1] != b"CONNECT":
        raise _malformed(":scheme and :path are missing")
    if path >= 0 and not headers[path][1]:
        raise _malformed(":path is empty")
    if te >= 0 and headers[te][1] != b"trailers" and headers[te][1].lower() != b"trailers":
        raise _malformed("te may only be trailers")
    length = None if content_length < 0 else _parse_length(headers[content_length][1])
    return make(headers), length


@lru_cache(_MOST_LAYOUTS)
def _layout_of(names: tuple[bytes, ...]) -> Layout | None:
    """Check the names of a header list, which hardly ever change from call to call; None for trailers."""
    pseudo = [name for name in names if name.startswith(b":")]
    for name in names:
        if not is_name(name):
            raise _malformed("a name with characters that no name has")
        if name in _CONNECTION_SPECIFIC:
            raise _malformed("a connection-specific header")
    if not pseudo:
        return None
    found = frozenset(pseudo)
    if names[: len(pseudo)] != tuple(pseudo):
        raise _malformed("a pseudo-header after other headers")
    if len(found) < len(pseudo) or not found <= _PSEUDO:
        raise _malformed("a pseudo-header that is unknown, or there twice")
    if not found >= _NEEDED and found != _OF_CONNECT:
        raise _malformed("a pseudo-header is missing")
    if names.count(b"te") > 1 or names.count(b"content-length") > 1:
        raise _malformed("a header that may be there once is there twice")
    return Layout(
        *(
            names.index(each) if each in names else -1
            for each in (b":method", b":path", b"te", b"content-length")
        )
    )


def check_fields(headers: Iterable[Header]) -> None:
    """Raise a StreamError where a name or a value has what none may have.

    White space at the ends of a value is let through: servers of gRPC end their messages as they like.
    """
    for name, value in headers:
        if not is_name(name) or value != value.translate(None, FORBIDDEN):
            raise _malformed("a name or a value with characters that none has")


def check_request_fields(headers: Iterable[Header]) -> None:
    """Raise a StreamError where a request has a name or a value that none may have.

    Clients whose token is empty send `Bearer` with a blank, and are told by the guard that it proves nothing.
    """
    check_fields(headers)
    for name, value in headers:
        if value != value.strip(_WHITE_SPACE) and name != _AUTHORIZATION:
            raise _malformed("a value with white space at its end")


def is_name(name: bytes) -> bool:
    """Whether a header may be called so: a token in lower case, after a colon for a pseudo-header."""
    return len(name) > name.startswith(b":") and not name.removeprefix(b":").translate(None, _TOKEN)


def _parse_length(value: bytes) -> int:
    if not value.isdigit() or len(value) > _LONGEST_LENGTH:
        raise _malformed("content-length is no number")
    return int(value)


def _malformed(why: str) -> StreamError:
    return StreamError(Code.PROTOCOL_ERROR, why)
