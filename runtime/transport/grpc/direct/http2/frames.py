"""Frames of HTTP/2 (RFC 9113, sections 4, 6 and 7): constants, error codes, and the encoding of frames."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

CONNECTION_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEADER_BYTES = 9
MAX_FRAME_BYTES = 16_384
"""The payload of a frame that is received: no peer may send more, as no SETTINGS_MAX_FRAME_SIZE is sent."""
MAX_WINDOW = 2**31 - 1
MAX_STREAM_ID = 2**31 - 1
DEFAULT_WINDOW = 65_535
PRIORITY_BYTES = 5

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)

ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
HAS_PRIORITY = 0x20

_frame_header = Struct(">BHBBL")
_setting = Struct(">HL")
_uint32 = Struct(">L")
_two_uint32 = Struct(">LL")
unpack_frame_header = _frame_header.unpack_from
unpack_uint32 = _uint32.unpack_from


class Setting(IntEnum):
    """The identifier of a setting (RFC 9113, section 6.5.2)."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ErrorCode(IntEnum):
    """Why a stream or a connection ends (RFC 9113, section 7)."""

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


class Http2Error(Exception):
    """A violation of the protocol by the peer, with its error code."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Http2ConnectionError(Http2Error):
    """A connection error: the connection ends with a GOAWAY (RFC 9113, 5.4.1)."""


class StreamError(Http2Error):
    """A stream error: the stream ends with an RST_STREAM, the connection goes on (RFC 9113, 5.4.2)."""


def encode_frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """Encode a frame of any type."""
    length = len(payload)
    return _frame_header.pack(length >> 16, length & 0xFFFF, kind, flags, stream_id) + payload


def encode_settings(values: dict[Setting, int]) -> bytes:
    """Encode a SETTINGS frame."""
    return encode_frame(SETTINGS, 0, 0, b"".join(_setting.pack(*each) for each in values.items()))


def parse_settings(payload: bytes) -> list[tuple[int, int]]:
    """Parse the payload of a SETTINGS frame into identifiers and values."""
    if len(payload) % _setting.size:
        raise Http2ConnectionError(
            ErrorCode.FRAME_SIZE_ERROR, "the length of a SETTINGS frame is no multiple of 6"
        )
    return list(_setting.iter_unpack(payload))


def encode_window_update(stream_id: int, increment: int) -> bytes:
    """Encode a WINDOW_UPDATE frame."""
    return encode_frame(WINDOW_UPDATE, 0, stream_id, _uint32.pack(increment))


def encode_rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    """Encode an RST_STREAM frame."""
    return encode_frame(RST_STREAM, 0, stream_id, _uint32.pack(code))


def encode_goaway(last_stream_id: int, code: ErrorCode, debug_data: str = "") -> bytes:
    """Encode a GOAWAY frame."""
    return encode_frame(GOAWAY, 0, 0, _two_uint32.pack(last_stream_id, code) + debug_data.encode())


def strip_padding(flags: int, payload: bytes) -> bytes:
    """Return the payload of a DATA or HEADERS frame without its padding."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "the padding is longer than the payload")
    return payload[1 : len(payload) - payload[0]]
