"""What a peer says of a connection as a whole: its settings, whether we are there, and that it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runtime.transport.grpc.direct import frames
from runtime.transport.grpc.direct.calm import Restraint
from runtime.transport.grpc.direct.frame_reader import Take
from runtime.transport.grpc.direct.frame_writer import Sender
from runtime.transport.grpc.direct.frames import Broken, Code, Setting, StreamError
from runtime.transport.grpc.direct.streams import Stream

_STREAMS_A_FRAME = 8
"""How many streams are given another window with as much work as a frame is otherwise."""


class Control:
    """Takes the frames that are of no stream, or of none that matters."""

    def __init__(
        self,
        sender: Sender,
        restraint: Restraint,
        streams: Mapping[int, Stream],
        on_setting: Callable[[int, int], None],
        on_leave: Callable[[int], None],
        on_ping_ack: Callable[[bytes], None],
    ) -> None:
        """`on_setting` hears of what is not about sending, `on_leave` of the last stream that is taken, and
        `on_ping_ack` of the PING that was acknowledged.
        """
        self._sender = sender
        self._restraint = restraint
        self._streams = streams
        self._on_setting = on_setting
        self._on_leave = on_leave
        self._on_ping_ack = on_ping_ack
        self._sent_before = 0

    @property
    def takes(self) -> Mapping[int, Take]:
        """The kinds of frames that it is for."""
        return {
            frames.PRIORITY: self._priority,
            frames.SETTINGS: self._settings,
            frames.PUSH_PROMISE: self._push_promise,
            frames.PING: self._ping,
            frames.GOAWAY: self._go_away,
        }

    def _settings(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise Broken(Code.PROTOCOL_ERROR, "settings of a stream")
        if flags & frames.ACK:
            if payload:
                raise Broken(Code.FRAME_SIZE_ERROR, "settings that are taken in and told again")
            self._restraint.odd()
            return
        self._restraint.odd(1 + len(self._streams) // _STREAMS_A_FRAME)
        sender, window = self._sender, self._sender.stream_window
        for name, value in frames.settings_in(payload):
            if name == Setting.INITIAL_WINDOW_SIZE:
                if value > frames.LARGEST_WINDOW:
                    raise Broken(Code.FLOW_CONTROL_ERROR, "a window that is too large")
                window = value
            elif name == Setting.MAX_FRAME_SIZE:
                if not frames.LARGEST_FRAME <= value < 2**24:
                    raise Broken(Code.PROTOCOL_ERROR, "a size that no frame may have")
                sender.frame_bytes = value
            elif name == Setting.ENABLE_PUSH and value > 1:
                raise Broken(Code.PROTOCOL_ERROR, "promises are taken or not")
            else:
                self._on_setting(name, value)
        sender.write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        # Once for all of them: there may be thousands in a frame, and each would be for every stream.
        sender.resize(window, self._streams.values())

    def _ping(self, flags: int, number: int, payload: bytes) -> None:
        if number or len(payload) != 8:
            raise Broken(Code.PROTOCOL_ERROR if number else Code.FRAME_SIZE_ERROR, "a ping has 8 bytes")
        if flags & frames.ACK:
            self._restraint.odd()
            self._on_ping_ack(payload)
            return
        sent = self._sender.sent
        self._restraint.pinged(sent != self._sent_before)
        self._sent_before = sent
        self._sender.write(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _priority(self, _flags: int, number: int, payload: bytes) -> None:
        if number == 0:
            raise Broken(Code.PROTOCOL_ERROR, "the priority of no stream")
        if len(payload) != frames.PRIORITY_BYTES:
            # A stream that is not there cannot be reset.
            wrong = StreamError if number in self._streams else Broken
            raise wrong(Code.FRAME_SIZE_ERROR, f"a priority has {frames.PRIORITY_BYTES} bytes")
        self._restraint.odd()

    def _go_away(self, _flags: int, number: int, payload: bytes) -> None:
        if number:
            raise Broken(Code.PROTOCOL_ERROR, "a stream is not gone away from")
        if len(payload) < 8:
            raise Broken(Code.FRAME_SIZE_ERROR, "who goes says so in 8 bytes at least")
        self._restraint.odd()
        self._on_leave(frames.number_at(payload)[0] & frames.LARGEST_WINDOW)

    def _push_promise(self, _flags: int, _number: int, _payload: bytes) -> None:
        raise Broken(Code.PROTOCOL_ERROR, "nothing is promised here")
