"""Log as JSON Lines on standard output: one object a line, with the fields that every line must have."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, Protocol

import orjson

from runtime.model.system import Event
from runtime.world import World

LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40}
_SAME = {"trace": "DEBUG", "debug": "DEBUG", "info": "INFO", "warn": "WARNING", "error": "ERROR"}
"""Aliases of levels; there is no level below DEBUG."""
_URGENT = frozenset(("WARNING", "ERROR"))
_GATHERED_S = 0.005
"""Delay after which ordinary lines are flushed in one batch. A busy node writes several in that time, and
each flush is a system call."""
_LONGEST_VALUE = 1024
"""Max characters of a value; a longer one is shortened in its middle, with a mark."""
_LONGEST_DETAIL = 1 << 14
"""The same for `detail`, which holds the traceback of a fault."""
_MOST_GATHERED = 1 << 16
"""Max bytes in the buffer before a flush."""

NOT_ANNOUNCED = Event("not_announced", "WARNING", always=True)
SERVICE_READY = Event("service_ready", "INFO", always=True)
SERVICE_STOPPING = Event("service_stopping", "INFO")
SERVICE_STOPPED = Event("service_stopped", "INFO")
SETTING_UNKNOWN = Event("setting_unknown", "WARNING", always=True)
SETTINGS_INVALID = Event("settings_invalid", "ERROR", always=True)
RPC = Event("rpc", "DEBUG")
RPC_ERROR = Event("rpc_error", "WARNING", always=True)
RPC_FAULT = Event("rpc_fault", "ERROR", always=True)
CALL_DENIED = Event("call_denied", "WARNING", always=True)
ACCEPT_FAILED = Event("accept_failed", "ERROR", always=True)
HANDSHAKE_FAILED = Event("handshake_failed", "WARNING", always=True)
HANDSHAKE_LEFT = Event("handshake_left", "DEBUG")
CALL_RETRIED = Event("call_retried", "INFO")
TRANSITION = Event("transition", "INFO")
INVALID_TRANSITION = Event("invalid_transition", "WARNING", always=True)
SHIFT = Event("shift", "INFO")
SWEPT = Event("sweep", "DEBUG")
SWEEP_FAILED = Event("sweep_failed", "WARNING")
FORGOTTEN = Event("forgotten", "WARNING")
ACQUIRE_FAILED = Event("acquire_failed", "WARNING")
HISTORY_WAITS = Event("history_waits", "WARNING")
HISTORY_REFUSED = Event("history_refused", "ERROR", always=True)
TERMINAL_WRITE_IGNORED = Event("terminal_write_ignored", "INFO")
STORE_AWAY = Event("store_away", "WARNING", always=True)
START_FAILED = Event("start_failed", "ERROR", always=True)
BACKGROUND_FAULT = Event("background_fault", "ERROR", always=True)


class LogStream(Protocol):
    """The output of a log."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


_escaping = json.JSONEncoder(default=str, separators=(",", ":")).encode


def _encode(line: Mapping[str, Any]) -> str:
    """Encode a line in ASCII, so that no reader finds a line break within it, and with a bounded size."""
    text = _encode_whole(line)
    if len(text) <= _LONGEST_VALUE:
        return text  # None of its values can be longer.
    return _encode_whole({name: _shorten(name, value) for name, value in line.items()})


def _shorten(name: str, value: object) -> object:
    """Shorten a value that is too long."""
    most = _LONGEST_DETAIL if name == "detail" else _LONGEST_VALUE
    if isinstance(value, int | float | None):
        return value
    text = value if isinstance(value, str) else _escaping(value)
    if len(text) <= most:
        return value
    kept = most // 2
    return f"{text[:kept]}[... {len(text) - 2 * kept} characters left out ...]{text[-kept:]}"


def _encode_whole(line: Mapping[str, Any]) -> str:
    try:
        text = orjson.dumps(line, str, orjson.OPT_APPEND_NEWLINE).decode()
    except TypeError:  # half a surrogate pair, or a number of more than 64 bits
        return _escaping(line) + "\n"
    return text if text.isascii() else _escaping(line) + "\n"


def _encode_all(shared: Mapping[str, Any], each: Iterable[Mapping[str, Any]]) -> str:
    """Encode lines with shared fields, which are encoded once."""
    rest = [*each]
    if rest and all(rest) and shared.keys().isdisjoint(chain.from_iterable(rest)):
        with suppress(TypeError):  # It is handled below, in the line that it belongs to.
            head = orjson.dumps(shared, str)[:-1] + b","
            texts = [orjson.dumps(fields, str, orjson.OPT_APPEND_NEWLINE)[1:] for fields in rest]
            text = (head + head.join(texts)).decode()
            if text.isascii() and len(head) + max(map(len, texts)) <= _LONGEST_VALUE:
                return text
    return "".join(_encode({**shared, **fields}) for fields in rest)


def open_buffered_stdout() -> io.TextIOWrapper:
    """Open a buffered standard output for a log, which flushes it itself.

    `PYTHONUNBUFFERED` would make a system call of each line, and each of them gives the interpreter lock to a
    waiting thread: in a busy node that costs more than the line. What others print is not buffered.
    """
    raw = io.FileIO(sys.stdout.fileno(), "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw, _MOST_GATHERED), "ascii")


class _Output:
    """Output that flushes ordinary lines in batches of some milliseconds, and urgent lines at once."""

    def __init__(self, stream: LogStream | None) -> None:
        self._given = stream
        self._due = False

    def write(self, text: str, *, urgent: bool) -> None:
        stream = self._given or sys.stdout
        stream.write(text)
        if urgent:
            stream.flush()
        elif not self._due:
            try:
                asyncio.get_running_loop().call_later(_GATHERED_S, self._flush)
                self._due = True
            except RuntimeError:
                stream.flush()

    def _flush(self) -> None:
        self._due = False
        (self._given or sys.stdout).flush()


class Log:
    """The log of one node. Each component writes through a view with its own name."""

    def __init__(self, service: str, level: str, world: World, stream: LogStream | None = None) -> None:
        self.service = service
        least = LEVELS[_SAME.get(level, level)]
        self._wanted = frozenset(name for name, weight in LEVELS.items() if weight >= least)
        self._now_ms = world.now_ms
        self._output = _Output(stream)
        self._seen: set[str] = set()
        self.counts: dict[str, int] = {}
        """Counters of events, which count whether or not the level lets the event be written."""

    def of(self, service: str) -> Log:
        """Return a view for another component of the same node."""
        view = Log.__new__(Log)
        view.__dict__.update(self.__dict__, service=service)
        return view

    def wants(self, event: Event) -> bool:
        """Whether an event of this kind would be written."""
        if event.level in self._wanted or event.always:
            return True
        return event.first_always and event.name not in self._seen

    def write(
        self, event: Event, message: str, method: str = "", fields: Mapping[str, Any] | None = None
    ) -> None:
        """Write a line, unless its level is too low. Fields that are None are left out."""
        if self.wants(event):
            line = self.begin_line(event, message, method)
            if fields:
                line.update((name, value) for name, value in fields.items() if value is not None)
            self.end_line(event, line)

    def write_all(
        self,
        event: Event,
        message: str,
        method: str,
        shared: Mapping[str, Any],
        each: Iterable[Mapping[str, Any]],
    ) -> None:
        """Write a batch of lines that share most of their fields, whatever the level."""
        line = self.begin_line(event, message, method)
        line.update((name, value) for name, value in shared.items() if value is not None)
        if event.first_always:
            self._seen.add(event.name)
        self._output.write(_encode_all(line, each), urgent=event.always or event.level in _URGENT)

    def begin_line(self, event: Event, message: str, method: str) -> dict[str, Any]:
        """Begin a line that is known to be wanted, with the fields that every line must have."""
        return {
            "ts_ms": self._now_ms(),
            "level": event.level,
            "service": self.service,
            "method": method,
            "event": event.name,
            "message": message,
        }

    def end_line(self, event: Event, line: Mapping[str, Any]) -> None:
        """Write a line with all fields that have been added to it."""
        if event.first_always:
            self._seen.add(event.name)
        self._output.write(_encode(line), urgent=event.always or event.level in _URGENT)
