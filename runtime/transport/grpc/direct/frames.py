"""Frames of HTTP/2: their numbers, and the bytes of those that a server sends."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9
LARGEST_FRAME = 16_384
"""Of what we take in; nobody may send larger frames without being told that we would take them."""
LARGEST_WINDOW = 2**31 - 1
LARGEST_STREAM = 2**31 - 1
DEFAULT_WINDOW = 65_535
PRIORITY_BYTES = 5

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)

ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
HAS_PRIORITY = 0x20

_head = Struct(">BHBBL")
_pair = Struct(">HL")
_number = Struct(">L")
_two_numbers = Struct(">LL")
head_at = _head.unpack_from
number_at = _number.unpack_from


class Setting(IntEnum):
    """What one side tells the other about itself."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class Code(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Broken(Exception):
    """The peer broke a rule by which both know what is said: the connection has to end."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code = code


class StreamError(Broken):
    """The peer broke a rule of one stream, which ends by RST_STREAM: the connection goes on.

    RFC 9113, section 5.4.2. Who does not know of streams takes it for what ends the connection.
    """


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Any frame."""
    length = len(payload)
    return _head.pack(length >> 16, length & 0xFFFF, kind, flags, stream) + payload


def settings(values: dict[Setting, int]) -> bytes:
    """What the server tells about itself."""
    return frame(SETTINGS, 0, 0, b"".join(_pair.pack(*each) for each in values.items()))


def settings_in(payload: bytes) -> list[tuple[int, int]]:
    """What the client tells about itself."""
    if len(payload) % _pair.size:
        raise Broken(Code.FRAME_SIZE_ERROR, "settings of a length that they cannot have")
    return list(_pair.iter_unpack(payload))


def window_update(stream: int, increment: int) -> bytes:
    """So many bytes more may be sent."""
    return frame(WINDOW_UPDATE, 0, stream, _number.pack(increment))


def reset(stream: int, code: Code) -> bytes:
    """A stream ends at once."""
    return frame(RST_STREAM, 0, stream, _number.pack(code))


def go_away(last_stream: int, code: Code, why: str = "") -> bytes:
    """No stream after that one is going to be served."""
    return frame(GOAWAY, 0, 0, _two_numbers.pack(last_stream, code) + why.encode())


def unpadded(flags: int, payload: bytes) -> bytes:
    """What a frame has without the bytes that only make it longer."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise Broken(Code.PROTOCOL_ERROR, "more padding than there are bytes")
    return payload[1 : len(payload) - payload[0]]
