"""Reader of frames: splits received bytes into frames and whole header blocks (RFC 9113, 3.4, 4, 6.10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runtime.transport.grpc.direct.http2 import frames
from runtime.transport.grpc.direct.http2.frames import ErrorCode, Http2ConnectionError, StreamError
from runtime.transport.grpc.direct.http2.header_blocks import MAX_BLOCK_BYTES

FrameHandler = Callable[[int, int, bytes], None]
"""Takes the flags, the stream identifier and the payload of a frame."""
_FRAMES_PER_TURN = 256
"""Frames of one connection that are handled before the others have their turn of the event loop."""
_TURN = range(_FRAMES_PER_TURN)
_WORK_PER_TURN = 16_384
"""The same for work, counted in bytes of header blocks: one of Huffman's code takes about 0.2 µs."""


class FrameReader:
    """Passes each frame to the handler of its type. Raises Http2ConnectionError at a connection error."""

    def __init__(
        self,
        handlers: Mapping[int, FrameHandler],
        on_header_block: FrameHandler,
        on_preface: Callable[[], None],
        count_suspicious: Callable[[], None],
        on_stream_error: Callable[[int, StreamError], None],
        yield_turn: Callable[[], None],
        *,
        preface: bytes,
    ) -> None:
        """`on_preface` is called at the first SETTINGS, `count_suspicious` for frames of unknown types, and
        `on_stream_error` for the stream whose frame is a stream error. `yield_turn` is called when enough was
        read for one turn of the event loop; it has to unpause and feed the reader in the next one.
        """
        self._handlers = {
            **handlers,
            frames.HEADERS: self._on_headers_frame,
            frames.CONTINUATION: self._on_continuation_frame,
        }
        self._on_header_block = on_header_block
        self._on_preface = on_preface
        self._count_suspicious = count_suspicious
        self._on_stream_error = on_stream_error
        self._yield_turn = yield_turn
        self._work = 0
        """The work of this turn."""
        self.is_closed = False
        """Whether nothing is read any more."""
        self.has_preface = False
        """Whether the peer has sent its connection preface, up to the header of its SETTINGS frame."""
        self.is_paused = False
        """Whether received bytes are kept unread; who unpauses the reader also feeds it."""
        self._preface = preface
        self._read: Callable[[bytes], int] = self._read_preface if preface else self._read_first_frame
        self._unread = b""
        """An incomplete frame, or what was received while the reader was paused."""
        self._header_block: tuple[int, int, bytes] | None = None
        """Stream, flags and bytes of a header block that a CONTINUATION has to continue."""

    def feed(self, data: bytes) -> None:
        """Read what was received."""
        self._work = 0
        if self._unread:
            data = self._unread + data
        self._unread = data if self.is_paused else data[self._read(data) :]

    def count_work(self, work: int) -> None:
        """Count work for the peer; when it is enough for one turn, the reader pauses and yields."""
        self._work += work
        if self._work > _WORK_PER_TURN and not self.is_paused:
            self.is_paused = True
            self._yield_turn()

    def close(self) -> None:
        """Read nothing any more, and drop the references to the connection."""
        self.is_closed = self.is_paused = True
        self._unread = b""
        self._handlers, self._on_header_block, self._read = {}, _ignore_frame, len
        self._on_preface = self._count_suspicious = self._yield_turn = _do_nothing
        self._on_stream_error = _ignore_stream_error

    def _read_preface(self, data: bytes) -> int:
        preface = self._preface
        if not data.startswith(preface[: len(data)]):
            raise Http2ConnectionError(
                ErrorCode.PROTOCOL_ERROR, "no HTTP/2 connection preface; this port serves gRPC over HTTP/2"
            )
        if len(data) < len(preface):
            return 0
        self._read = self._read_first_frame
        return len(preface) + self._read_first_frame(data[len(preface) :])

    def _read_first_frame(self, data: bytes) -> int:
        if len(data) < frames.FRAME_HEADER_BYTES:
            return 0
        _, _, kind, flags, _ = frames.unpack_frame_header(data, 0)
        if kind != frames.SETTINGS or flags & frames.ACK:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        self._read = self._read_frames
        self.has_preface = True
        self._on_preface()
        return self._read_frames(data)

    def _read_frames(self, data: bytes) -> int:
        position, end, handlers = 0, len(data), self._handlers
        for _ in _TURN:
            if end - position < frames.FRAME_HEADER_BYTES:
                return position
            high, low, kind, flags, stream_id = frames.unpack_frame_header(data, position)
            length = high << 16 | low
            if length > frames.MAX_FRAME_BYTES:
                raise Http2ConnectionError(
                    ErrorCode.FRAME_SIZE_ERROR, f"a frame of more than {frames.MAX_FRAME_BYTES} bytes"
                )
            begin = position + frames.FRAME_HEADER_BYTES
            if begin + length > end:
                return position
            position = begin + length
            if self._header_block is not None and kind != frames.CONTINUATION:
                raise Http2ConnectionError(
                    ErrorCode.PROTOCOL_ERROR, "a frame other than CONTINUATION within a header block"
                )
            if (handle := handlers.get(kind)) is not None:
                try:
                    handle(flags, stream_id & frames.MAX_STREAM_ID, data[begin:position])
                except StreamError as error:
                    self._on_stream_error(stream_id & frames.MAX_STREAM_ID, error)
            else:
                # Frames of unknown types are ignored (RFC 9113, section 4.1).
                self._count_suspicious()
            if self.is_paused:
                return end if self.is_closed else position
        self.count_work(_WORK_PER_TURN + 1)
        return position

    def _on_headers_frame(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id & 1:
            raise Http2ConnectionError(
                ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream whose identifier is not odd"
            )
        block = frames.strip_padding(flags, payload)
        if flags & frames.HAS_PRIORITY:
            if len(block) < frames.PRIORITY_BYTES:
                raise Http2ConnectionError(
                    ErrorCode.FRAME_SIZE_ERROR, "a HEADERS frame is too short for its priority"
                )
            block = block[frames.PRIORITY_BYTES :]
        if flags & frames.END_HEADERS:
            self._work += len(block)
            if self._work > _WORK_PER_TURN:
                self.count_work(0)
            self._on_header_block(flags, stream_id, block)
        else:
            self._header_block = (stream_id, flags, block)

    def _on_continuation_frame(self, flags: int, stream_id: int, payload: bytes) -> None:
        if self._header_block is None or self._header_block[0] != stream_id:
            raise Http2ConnectionError(
                ErrorCode.PROTOCOL_ERROR, "CONTINUATION without a header block of its stream"
            )
        _, first_flags, begun = self._header_block
        block = begun + payload
        if len(block) > MAX_BLOCK_BYTES:
            raise Http2ConnectionError(
                ErrorCode.ENHANCE_YOUR_CALM, f"a header block of more than {MAX_BLOCK_BYTES} bytes"
            )
        self._count_suspicious()
        if flags & frames.END_HEADERS:
            self._header_block = None
            self.count_work(len(block))
            self._on_header_block(first_flags, stream_id, block)
        else:
            self._header_block = (stream_id, first_flags, block)


def _ignore_frame(_flags: int, _stream_id: int, _payload: bytes) -> None:
    pass


def _do_nothing() -> None:
    pass


def _ignore_stream_error(_stream_id: int, _error: StreamError) -> None:
    pass
