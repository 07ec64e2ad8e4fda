"""From bytes to frames and whole header blocks, in the order that the protocol wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runtime.transport.grpc.direct import frames
from runtime.transport.grpc.direct.frames import Broken, Code, StreamError
from runtime.transport.grpc.direct.header_blocks import LARGEST_BLOCK

Take = Callable[[int, int, bytes], None]
"""Takes the flags, the stream and the bytes of a frame."""
_FRAMES_A_TURN = 256
"""Frames that one connection has read before the others have their turn of the event loop."""
_TURN = range(_FRAMES_A_TURN)
_WORK_A_TURN = 16_384
"""The same for work, counted in bytes of header blocks: one of Huffman's code takes about 0.2 µs."""


class FrameReader:
    """Hands on each frame to whoever takes its kind. Raises Broken at what nobody may send."""

    def __init__(
        self,
        takes: Mapping[int, Take],
        on_block: Take,
        introduced: Callable[[], None],
        odd: Callable[[], None],
        fail_stream: Callable[[int, StreamError], None],
        rest: Callable[[], None],
        *,
        preface: bytes,
    ) -> None:
        """`introduced` hears that the peer speaks HTTP/2, `odd` of frames that nobody takes, and
        `fail_stream` of the stream whose frame was against a rule. `rest` is told that enough was read for
        one turn of the event loop, and gives the reader something to read in the next.
        """
        self._takes = {
            **takes,
            frames.HEADERS: self._on_headers,
            frames.CONTINUATION: self._on_continuation,
        }
        self._on_block = on_block
        self._introduced = introduced
        self._odd = odd
        self._fail_stream = fail_stream
        self._rest = rest
        self._spent = 0
        """The work of this turn."""
        self.over = False
        """Whether nothing is read any more."""
        self.has_settings = False
        """Whether the peer has said its preface and begun its SETTINGS."""
        self.paused = False
        """Whether nothing is read for now; whoever says that it is again gives it something to read."""
        self._preface = preface
        self._read: Callable[[bytes], int] = self._read_preface if preface else self._read_first
        self._held = b""
        """The beginning of a frame, or what came while nothing was read."""
        self._block: tuple[int, int, bytes] | None = None
        """Stream, flags and bytes of a header block that goes on with the next frame."""

    def take(self, data: bytes) -> None:
        """What has come."""
        self._spent = 0
        if self._held:
            data = self._held + data
        self._held = data if self.paused else data[self._read(data) :]

    def spend(self, work: int) -> None:
        """Count work for the peer; where it was enough for one turn, no more frames are read in it."""
        self._spent += work
        if self._spent > _WORK_A_TURN and not self.paused:
            self.paused = True
            self._rest()

    def end(self) -> None:
        """Nothing is read any more, and whoever took the frames is not kept."""
        self.over = self.paused = True
        self._held = b""
        self._takes, self._on_block, self._read = {}, _nobody, len
        self._introduced = self._odd = self._rest = _nothing
        self._fail_stream = _no_stream

    def _read_preface(self, data: bytes) -> int:
        preface = self._preface
        if not data.startswith(preface[: len(data)]):
            raise Broken(Code.PROTOCOL_ERROR, "this port speaks gRPC, over HTTP/2")
        if len(data) < len(preface):
            return 0
        self._read = self._read_first
        return len(preface) + self._read_first(data[len(preface) :])

    def _read_first(self, data: bytes) -> int:
        if len(data) < frames.HEAD_BYTES:
            return 0
        _, _, kind, flags, _ = frames.head_at(data, 0)
        if kind != frames.SETTINGS or flags & frames.ACK:
            raise Broken(Code.PROTOCOL_ERROR, "the first frame has to be settings")
        self._read = self._read_frames
        self.has_settings = True
        self._introduced()
        return self._read_frames(data)

    def _read_frames(self, data: bytes) -> int:
        position, end, takes = 0, len(data), self._takes
        for _ in _TURN:
            if end - position < frames.HEAD_BYTES:
                return position
            high, low, kind, flags, number = frames.head_at(data, position)
            length = high << 16 | low
            if length > frames.LARGEST_FRAME:
                raise Broken(Code.FRAME_SIZE_ERROR, f"a frame of more than {frames.LARGEST_FRAME} bytes")
            begin = position + frames.HEAD_BYTES
            if begin + length > end:
                return position
            position = begin + length
            if self._block is not None and kind != frames.CONTINUATION:
                raise Broken(Code.PROTOCOL_ERROR, "another frame within a header block")
            if (take := takes.get(kind)) is not None:
                try:
                    take(flags, number & frames.LARGEST_WINDOW, data[begin:position])
                except StreamError as error:
                    self._fail_stream(number & frames.LARGEST_WINDOW, error)
            else:
                # Kinds that nobody knows are to be ignored.
                self._odd()
            if self.paused:
                return end if self.over else position
        self.spend(_WORK_A_TURN + 1)
        return position

    def _on_headers(self, flags: int, number: int, payload: bytes) -> None:
        if not number & 1:
            raise Broken(Code.PROTOCOL_ERROR, "headers of a stream that no client may open")
        block = frames.unpadded(flags, payload)
        if flags & frames.HAS_PRIORITY:
            if len(block) < frames.PRIORITY_BYTES:
                raise Broken(Code.FRAME_SIZE_ERROR, "headers that are too short for their priority")
            block = block[frames.PRIORITY_BYTES :]
        if flags & frames.END_HEADERS:
            self._spent += len(block)
            if self._spent > _WORK_A_TURN:
                self.spend(0)
            self._on_block(flags, number, block)
        else:
            self._block = (number, flags, block)

    def _on_continuation(self, flags: int, number: int, payload: bytes) -> None:
        if self._block is None or self._block[0] != number:
            raise Broken(Code.PROTOCOL_ERROR, "a header block goes on that has not begun")
        _, first, begun = self._block
        block = begun + payload
        if len(block) > LARGEST_BLOCK:
            raise Broken(Code.ENHANCE_YOUR_CALM, f"a header block of more than {LARGEST_BLOCK} bytes")
        self._odd()
        if flags & frames.END_HEADERS:
            self._block = None
            self.spend(len(block))
            self._on_block(first, number, block)
        else:
            self._block = (number, first, block)


def _nobody(_flags: int, _number: int, _payload: bytes) -> None:
    pass


def _nothing() -> None:
    pass


def _no_stream(_number: int, _error: StreamError) -> None:
    pass
