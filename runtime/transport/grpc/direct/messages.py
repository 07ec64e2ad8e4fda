"""How gRPC says things over HTTP/2: the headers of a call, messages in their frames, and how a call ended."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from runtime.transport.grpc.direct.header_blocks import LARGEST_LIST, Header, written
from runtime.transport.grpc.status_details import shorten

STATUSES = {
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
_NAMES = {b"%d" % number: name for name, number in STATUSES.items()}
_TIMEOUT = b"grpc-timeout"
PREFIX_BYTES = 5
_prefix = struct.Struct(">BL")
_GRPC = b"application/grpc"
CONTENT_TYPE = (b"content-type", _GRPC)
ACCEPT_ENCODING = (b"grpc-accept-encoding", b"identity,deflate,gzip")
BEGIN = written([(b":status", b"200"), CONTENT_TYPE, ACCEPT_ENCODING])
"""The headers of every answer."""
OK = written([(b"grpc-status", b"0")])
"""The trailers of an answer that is one."""
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_LONGEST_TIMEOUT = 9
_WINDOW_BITS = {b"gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}
_PLAIN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
_PARAMETERS = (b"", b"+", b";")
"""How a content type may go on."""


def is_grpc(content_type: bytes) -> bool:
    """Whether a content type is one of gRPC."""
    return content_type.startswith(_GRPC) and content_type[len(_GRPC) : len(_GRPC) + 1] in _PARAMETERS


class Refused(Exception):
    """A call that ends without an answer: its status, and the metadata that comes with it."""

    def __init__(self, status: str, message: str, trailers: tuple[Header, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.trailers = trailers


class Unserved(NamedTuple):
    """The headers that answer what is no call of gRPC, with the status and the words for the log."""

    headers: bytes
    status: str
    message: str


class Head:
    """What the headers of a call say."""

    __slots__ = ("encoding", "metadata", "path", "refused", "timeout")

    def __init__(self, headers: list[Header], read: Callable[[list[Header]], Any]) -> None:
        """`read` makes of the metadata, which are the headers that are not gRPC's own, what methods get."""
        self.path = b""
        self.timeout: float | None = None
        self.encoding = b"identity"
        self.refused: Unserved | None = None
        method = content = b""
        metadata: list[Header] = []
        for header in headers:
            name, value = header
            if name not in _RESERVED:
                metadata.append(header)
            elif name == b":path":
                self.path = value
            elif name == b":method":
                method = value
            elif name == b"content-type":
                content = value
            elif name == _TIMEOUT:
                self.timeout = _seconds(value)
                if self.timeout == 0:
                    self.refused = _LATE
            elif name == b"grpc-encoding":
                self.encoding = value
        self.metadata = read(metadata)
        if method != b"POST":
            self.refused = _NO_POST
        elif content != _GRPC and not is_grpc(content):
            self.refused = _NO_GRPC


_RESERVED = frozenset(
    (
        *(b":path", b":method", b":scheme", b":authority", b"te", b"content-type", b"user-agent"),
        *(_TIMEOUT, b"grpc-encoding", b"grpc-accept-encoding"),
    )
)


def _seconds(timeout: bytes) -> float | None:
    """What is left of a call's time; what says nothing is no limit."""
    unit = _UNITS.get(timeout[-1:])
    if unit is None or len(timeout) > _LONGEST_TIMEOUT or not timeout[:-1].isdigit():
        return None
    return int(timeout[:-1]) * unit


def ending(status: str, message: str = "", trailers: tuple[Header, ...] = ()) -> bytes:
    """The trailers of a call that ended in some way."""
    said = [(b"grpc-status", b"%d" % STATUSES[status]), *trailers]
    if message:
        told = quote(shorten(message), safe=_PLAIN, errors="replace")
        if told != told.strip():
            # No value of a header begins or ends with a blank.
            told = quote(told, safe=_PLAIN.replace(" ", "%"))
        said.append((b"grpc-message", told.encode()))
    return written(said)


def ending_only(status: str, message: str, trailers: tuple[Header, ...] = ()) -> bytes:
    """The same where nothing was answered before."""
    return BEGIN + ending(status, message, trailers)


_OVER = ("DEADLINE_EXCEEDED", "the time of the call was over before it began")
_LATE = Unserved(ending_only(*_OVER), *_OVER)
_TOO_MANY = ("RESOURCE_EXHAUSTED", f"the headers have more than {LARGEST_LIST} bytes")
OVERSIZED = Unserved(ending_only(*_TOO_MANY), *_TOO_MANY)
_NO_POST = Unserved(
    written([(b":status", b"405"), (b"allow", b"POST")]), "UNKNOWN", "HTTP status 405: a call is a POST"
)
_NO_GRPC = Unserved(
    written([(b":status", b"415"), (b"accept", _GRPC)]), "UNKNOWN", "HTTP status 415: the content is no gRPC"
)


def status_of(said: bytes) -> str:
    """The name of a status."""
    return _NAMES.get(said, "UNKNOWN")


def text_of(said: bytes) -> str:
    """What a call ended with, as it was before it was made a header."""
    return unquote(said.decode(errors="replace"), errors="replace")


def timeout_of(seconds: float) -> Header:
    """How long a call may take, in eight digits at most."""
    microseconds = max(int(seconds * 1e6), 1)
    if microseconds < 10**8:
        return _TIMEOUT, b"%du" % microseconds
    return _TIMEOUT, b"%dm" % min(int(seconds * 1e3), 10**8 - 1)


def framed(message: bytes) -> bytes:
    """A message as it is sent."""
    return _prefix.pack(0, len(message)) + message


def too_large(length: int, largest: int) -> str:
    """What the caller of a method is told whose answer cannot be sent."""
    return f"the answer has {length} bytes, and may have {largest}"


def announced(data: bytes | bytearray, largest: int) -> int:
    """How long the first message of some data is, with what stands before it; 0 while that is not known."""
    if len(data) < PREFIX_BYTES:
        return 0
    length: int = _prefix.unpack_from(data)[1]
    if length > largest:
        raise Refused("RESOURCE_EXHAUSTED", f"the message has {length} bytes, and may have {largest}")
    return PREFIX_BYTES + length


def message_in(data: bytes | bytearray, encoding: bytes, largest: int) -> bytes:
    """The one message that some data is."""
    if not data or announced(data, largest) != len(data):
        raise Refused("INVALID_ARGUMENT", "the call has to have one message, and all of it")
    if data[0] == 0:
        return bytes(data[PREFIX_BYTES:])
    if data[0] != 1 or encoding == b"identity":
        raise Refused("INTERNAL", "the message is marked as packed, and the call does not say how")
    return _unpacked(bytes(data[PREFIX_BYTES:]), encoding, largest)


def _unpacked(packed: bytes, encoding: bytes, largest: int) -> bytes:
    if encoding not in _WINDOW_BITS:
        raise Refused("UNIMPLEMENTED", f"messages are not taken as {encoding.decode(errors='replace')!r}")
    inflate = zlib.decompressobj(_WINDOW_BITS[encoding])
    try:
        message = inflate.decompress(packed, largest + 1)
    except zlib.error:
        raise Refused("INVALID_ARGUMENT", "the message is not packed as the call says") from None
    if len(message) > largest:
        raise Refused("RESOURCE_EXHAUSTED", f"the message has more than the {largest} bytes that it may have")
    if not inflate.eof or inflate.unused_data:
        raise Refused("INVALID_ARGUMENT", "the message is not packed as the call says")
    return message
