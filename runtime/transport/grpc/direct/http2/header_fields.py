"""Validation of header lists: field names, values and pseudo-header fields (RFC 9113, 8.2 and 8.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from runtime.transport.grpc.direct.http2.frames import ErrorCode, StreamError

Header = tuple[bytes, bytes]
Parsed = TypeVar("Parsed")

_TOKEN_BYTES = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
FORBIDDEN_BYTES = b"\0\r\n"
_WHITE_SPACE = b" \t"
_AUTHORIZATION = b"authorization"
_PSEUDO_HEADERS = frozenset((b":method", b":scheme", b":path", b":authority"))
_REQUIRED = frozenset((b":method", b":scheme", b":path"))
_REQUIRED_BY_CONNECT = frozenset((b":method", b":authority"))
_CONNECTION_SPECIFIC = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)
_MAX_CACHED_LAYOUTS = 256
_MAX_CONTENT_LENGTH_DIGITS = 18


class Layout(NamedTuple):
    """The positions of the headers of a request whose values have rules; -1 where it has none."""

    method: int
    path: int
    te: int
    content_length: int


def parse_request(
    parse: Callable[[list[Header]], Parsed], headers: list[Header]
) -> tuple[Parsed, int | None] | None:
    """Validate the headers of a request; returns what `parse` makes of them and its content-length.

    Returns None for trailers. Raises a StreamError where the headers are malformed.
    """
    layout = _check_names(tuple([name for name, _ in headers]))
    if layout is None:
        return None
    method, path, te, content_length = layout
    if path < 0 and headers[method][1] != b"CONNECT":
        raise _make_error(":scheme and :path are missing")
    if path >= 0 and not headers[path][1]:
        raise _make_error(":path is empty")
    if te >= 0 and headers[te][1] != b"trailers" and headers[te][1].lower() != b"trailers":
        raise _make_error("te may only be trailers")
    length = None if content_length < 0 else _parse_content_length(headers[content_length][1])
    return parse(headers), length


@lru_cache(_MAX_CACHED_LAYOUTS)
def _check_names(names: tuple[bytes, ...]) -> Layout | None:
    """Validate the names of a header list, which hardly ever change from call to call; None for trailers."""
    pseudo = [name for name in names if name.startswith(b":")]
    for name in names:
        if not is_valid_name(name):
            raise _make_error("a field name has forbidden characters")
        if name in _CONNECTION_SPECIFIC:
            raise _make_error("a connection-specific header field")
    if not pseudo:
        return None
    found = frozenset(pseudo)
    if names[: len(pseudo)] != tuple(pseudo):
        raise _make_error("a pseudo-header field after a regular one")
    if len(found) < len(pseudo) or not found <= _PSEUDO_HEADERS:
        raise _make_error("a pseudo-header field is unknown or repeated")
    if not found >= _REQUIRED and found != _REQUIRED_BY_CONNECT:
        raise _make_error("a pseudo-header field is missing")
    if names.count(b"te") > 1 or names.count(b"content-length") > 1:
        raise _make_error("te or content-length is repeated")
    return Layout(
        *(
            names.index(each) if each in names else -1
            for each in (b":method", b":path", b"te", b"content-length")
        )
    )


def check_fields(headers: Iterable[Header]) -> None:
    """Raise a StreamError where a field name or value has forbidden characters.

    White space at the ends of a value is accepted: gRPC servers end their messages as they like.
    """
    for name, value in headers:
        if not is_valid_name(name) or value != value.translate(None, FORBIDDEN_BYTES):
            raise _make_error("a field name or value has forbidden characters")


def check_request_fields(headers: Iterable[Header]) -> None:
    """Raise a StreamError where a request has a malformed field name or value.

    Clients whose token is empty send `Bearer` with a blank, and are refused by the guard.
    """
    check_fields(headers)
    for name, value in headers:
        if value != value.strip(_WHITE_SPACE) and name != _AUTHORIZATION:
            raise _make_error("a field value begins or ends with white space")


def is_valid_name(name: bytes) -> bool:
    """Whether a field may be called so: a token in lower case, after a colon for a pseudo-header field."""
    return len(name) > name.startswith(b":") and not name.removeprefix(b":").translate(None, _TOKEN_BYTES)


def _parse_content_length(value: bytes) -> int:
    if not value.isdigit() or len(value) > _MAX_CONTENT_LENGTH_DIGITS:
        raise _make_error("content-length is no number")
    return int(value)


def _make_error(reason: str) -> StreamError:
    return StreamError(ErrorCode.PROTOCOL_ERROR, reason)
