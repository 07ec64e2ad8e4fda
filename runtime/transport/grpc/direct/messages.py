"""The gRPC protocol over HTTP/2: request headers, length-prefixed messages, and trailers with a status."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from runtime.transport.grpc.direct.http2.header_blocks import MAX_HEADER_LIST_BYTES, encode_headers
from runtime.transport.grpc.direct.http2.header_fields import Header

STATUS_CODES = {
    name: number
    for number, name in enumerate(
        (
            *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
            *("ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"),
            *("ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
            "UNAUTHENTICATED",
        )
    )
}
_STATUS_NAMES = {b"%d" % number: name for name, number in STATUS_CODES.items()}
_TIMEOUT = b"grpc-timeout"
PREFIX_BYTES = 5
_prefix = struct.Struct(">BL")
_GRPC = b"application/grpc"
CONTENT_TYPE = (b"content-type", _GRPC)
ACCEPT_ENCODING = (b"grpc-accept-encoding", b"identity,deflate,gzip")
RESPONSE_HEADERS = encode_headers([(b":status", b"200"), CONTENT_TYPE, ACCEPT_ENCODING])
"""The header block of every response."""
OK_TRAILERS = encode_headers([(b"grpc-status", b"0")])
"""The trailers of a call that succeeded."""
_TIMEOUT_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_MAX_TIMEOUT_BYTES = 9
_ZLIB_WINDOW_BITS = {b"gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}
_UNESCAPED = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
_MAX_STATUS_MESSAGE = 1000
"""Bytes of UTF-8 of a grpc-message: percent-encoded they are three times as many, and clients take 8 KiB of
headers."""
_NOT_COMPRESSED = "the message is not compressed as grpc-encoding says"
_CONTENT_TYPE_SUFFIXES = (b"", b"+", b";")
"""The suffixes of `application/grpc` in a content type."""


def is_grpc(content_type: bytes) -> bool:
    """Whether a content type is that of gRPC."""
    return (
        content_type.startswith(_GRPC) and content_type[len(_GRPC) : len(_GRPC) + 1] in _CONTENT_TYPE_SUFFIXES
    )


class GrpcStatusError(Exception):
    """The end of a call with a status other than OK, and its trailing metadata."""

    def __init__(self, status: str, message: str, trailers: tuple[Header, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.trailers = trailers


class HttpRefusal(NamedTuple):
    """The response to a request that is refused by its headers, with the status and message for the log."""

    header_block: bytes
    status: str
    message: str


class RequestHeaders:
    """The parsed headers of a call."""

    __slots__ = ("encoding", "metadata", "path", "refusal", "timeout")

    def __init__(self, headers: list[Header], parse_metadata: Callable[[list[Header]], Any]) -> None:
        """`parse_metadata` converts the metadata for methods: the headers that are not gRPC's own."""
        self.path = b""
        self.timeout: float | None = None
        self.encoding = b"identity"
        self.refusal: HttpRefusal | None = None
        method = content_type = b""
        metadata: list[Header] = []
        for header in headers:
            name, value = header
            if name not in _PROTOCOL_HEADERS:
                metadata.append(header)
            elif name == b":path":
                self.path = value
            elif name == b":method":
                method = value
            elif name == b"content-type":
                content_type = value
            elif name == _TIMEOUT:
                self.timeout = _parse_timeout(value)
                if self.timeout == 0:
                    self.refusal = _EXPIRED
            elif name == b"grpc-encoding":
                self.encoding = value
        self.metadata = parse_metadata(metadata)
        if method != b"POST":
            self.refusal = _NOT_POST
        elif content_type != _GRPC and not is_grpc(content_type):
            self.refusal = _NOT_GRPC


_PROTOCOL_HEADERS = frozenset(
    (
        *(b":path", b":method", b":scheme", b":authority", b"te", b"content-type", b"user-agent"),
        *(_TIMEOUT, b"grpc-encoding", b"grpc-accept-encoding"),
    )
)


def _parse_timeout(timeout: bytes) -> float | None:
    """Parse a grpc-timeout into seconds; None, which is no deadline, where it is malformed."""
    unit = _TIMEOUT_UNITS.get(timeout[-1:])
    if unit is None or len(timeout) > _MAX_TIMEOUT_BYTES or not timeout[:-1].isdigit():
        return None
    return int(timeout[:-1]) * unit


def encode_trailers(status: str, message: str = "", trailers: tuple[Header, ...] = ()) -> bytes:
    """Encode the trailers of a call: its status, its message and trailing metadata."""
    headers = [(b"grpc-status", b"%d" % STATUS_CODES[status]), *trailers]
    if message:
        # A character that is cut in the middle is left out.
        cut = message.encode(errors="replace")[:_MAX_STATUS_MESSAGE].decode(errors="ignore")
        escaped = quote(cut, safe=_UNESCAPED)
        if escaped != escaped.strip():
            # No field value begins or ends with a blank (RFC 9113, section 8.2.1).
            escaped = quote(escaped, safe=_UNESCAPED.replace(" ", "%"))
        headers.append((b"grpc-message", escaped.encode()))
    return encode_headers(headers)


def encode_trailers_only(status: str, message: str, trailers: tuple[Header, ...] = ()) -> bytes:
    """Encode a Trailers-Only response: the end of a call without a message."""
    return RESPONSE_HEADERS + encode_trailers(status, message, trailers)


_EXPIRED_STATUS = ("DEADLINE_EXCEEDED", "the deadline had passed before the call began")
_EXPIRED = HttpRefusal(encode_trailers_only(*_EXPIRED_STATUS), *_EXPIRED_STATUS)
_OVERSIZED_STATUS = ("RESOURCE_EXHAUSTED", f"the headers have more than {MAX_HEADER_LIST_BYTES} bytes")
OVERSIZED_HEADERS = HttpRefusal(encode_trailers_only(*_OVERSIZED_STATUS), *_OVERSIZED_STATUS)
_NOT_POST = HttpRefusal(
    encode_headers([(b":status", b"405"), (b"allow", b"POST")]),
    "UNKNOWN",
    "HTTP status 405: a gRPC call is a POST",
)
_NOT_GRPC = HttpRefusal(
    encode_headers([(b":status", b"415"), (b"accept", _GRPC)]),
    "UNKNOWN",
    "HTTP status 415: the content type is not that of gRPC",
)


def parse_status(value: bytes) -> str:
    """The name of the status that a grpc-status has."""
    return _STATUS_NAMES.get(value, "UNKNOWN")


def parse_status_message(value: bytes) -> str:
    """Percent-decode a grpc-message."""
    return unquote(value.decode(errors="replace"), errors="replace")


def make_timeout(seconds: float) -> Header:
    """Make the grpc-timeout header of a call, with eight digits at most."""
    microseconds = max(int(seconds * 1e6), 1)
    if microseconds < 10**8:
        return _TIMEOUT, b"%du" % microseconds
    return _TIMEOUT, b"%dm" % min(int(seconds * 1e3), 10**8 - 1)


def frame_message(message: bytes) -> bytes:
    """Encode a message with its prefix: the compressed flag and the length."""
    return _prefix.pack(0, len(message)) + message


def format_response_too_large(length: int, limit: int) -> str:
    """The status message of a call whose response is larger than the limit."""
    return f"the answer has {length} bytes, and may have {limit}"


def message_length(data: bytes | bytearray, limit: int) -> int:
    """The length of the first message in some data, with its prefix; 0 while the prefix is incomplete.

    Raises GrpcStatusError where the message is larger than the limit.
    """
    if len(data) < PREFIX_BYTES:
        return 0
    length: int = _prefix.unpack_from(data)[1]
    if length > limit:
        raise GrpcStatusError("RESOURCE_EXHAUSTED", f"the message has {length} bytes, and may have {limit}")
    return PREFIX_BYTES + length


def parse_message(data: bytes | bytearray, encoding: bytes, limit: int) -> bytes:
    """Parse and decompress the message of a unary call.

    Raises GrpcStatusError where the data is not exactly one message.
    """
    if not data or message_length(data, limit) != len(data):
        raise GrpcStatusError("INVALID_ARGUMENT", "a unary call has exactly one complete message")
    if data[0] == 0:
        return bytes(data[PREFIX_BYTES:])
    if data[0] != 1 or encoding == b"identity":
        raise GrpcStatusError("INTERNAL", "the message is compressed, and the call has no grpc-encoding")
    return _decompress(bytes(data[PREFIX_BYTES:]), encoding, limit)


def _decompress(compressed: bytes, encoding: bytes, limit: int) -> bytes:
    if encoding not in _ZLIB_WINDOW_BITS:
        raise GrpcStatusError(
            "UNIMPLEMENTED", f"grpc-encoding {encoding.decode(errors='replace')!r} is not supported"
        )
    inflate = zlib.decompressobj(_ZLIB_WINDOW_BITS[encoding])
    try:
        message = inflate.decompress(compressed, limit + 1)
    except zlib.error:
        raise GrpcStatusError(
            "INVALID_ARGUMENT", "the message is not compressed as grpc-encoding says"
        ) from None
    if len(message) > limit:
        raise GrpcStatusError("RESOURCE_EXHAUSTED", f"the message has more than {limit} bytes")
    if not inflate.eof or inflate.unused_data:
        raise GrpcStatusError("INVALID_ARGUMENT", _NOT_COMPRESSED)
    return message
