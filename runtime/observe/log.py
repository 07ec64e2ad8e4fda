"""JSON Lines on standard output: one object a line, with the fields that every line must have."""

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
"""What levels are called elsewhere; nothing is below the lowest of ours."""
_URGENT = frozenset(("WARNING", "ERROR"))
_GATHERED_S = 0.005
"""How long an ordinary line may wait for others to be flushed with. A busy node writes several in that time,
and each flush is a system call."""
_LONGEST_VALUE = 1024
"""Characters of a value of a line; a longer one is shortened in its middle, with a mark."""
_LONGEST_DETAIL = 1 << 14
"""The same for `detail`, which holds the traceback of a fault."""
_MOST_GATHERED = 1 << 16
"""Bytes that wait to be flushed at most."""

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


class Stream(Protocol):
    """Where lines go."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


_escaping = json.JSONEncoder(default=str, separators=(",", ":")).encode


def _encode(line: Mapping[str, Any]) -> str:
    """The line in ASCII, so that no reader takes a part of it for the end of a line, and of bounded size."""
    text = _encode_whole(line)
    if len(text) <= _LONGEST_VALUE:
        return text  # None of its values can be longer.
    return _encode_whole({name: _bounded(name, value) for name, value in line.items()})


def _bounded(name: str, value: object) -> object:
    """A value, or what is left of it where it is too long."""
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
    """Lines that begin alike, of which that beginning is encoded once."""
    rest = [*each]
    if rest and all(rest) and shared.keys().isdisjoint(chain.from_iterable(rest)):
        with suppress(TypeError):  # It is met again below, by the line that it is in.
            head = orjson.dumps(shared, str)[:-1] + b","
            texts = [orjson.dumps(fields, str, orjson.OPT_APPEND_NEWLINE)[1:] for fields in rest]
            text = (head + head.join(texts)).decode()
            if text.isascii() and len(head) + max(map(len, texts)) <= _LONGEST_VALUE:
                return text
    return "".join(_encode({**shared, **fields}) for fields in rest)


def gathering_stdout() -> io.TextIOWrapper:
    """Standard output for a log alone, which says itself when its lines are to leave the process.

    `PYTHONUNBUFFERED` would make a system call of each line, and whoever waits for the interpreter gets hold
    of it at each of them: in a busy node that costs more than the line. What others print leaves at once.
    """
    raw = io.FileIO(sys.stdout.fileno(), "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw, _MOST_GATHERED), "ascii")


class _Output:
    """A stream that is flushed once for the ordinary lines of some milliseconds, at once for the others."""

    def __init__(self, stream: Stream | None) -> None:
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
    """The log of one node. Each component writes through a view of its own, which knows its name."""

    def __init__(self, service: str, level: str, world: World, stream: Stream | None = None) -> None:
        self.service = service
        least = LEVELS[_SAME.get(level, level)]
        self._wanted = frozenset(name for name, weight in LEVELS.items() if weight >= least)
        self._now_ms = world.now_ms
        self._output = _Output(stream)
        self._seen: set[str] = set()
        self.counts: dict[str, int] = {}
        """Events that are counted, whether or not the level lets them be written."""

    def of(self, service: str) -> Log:
        """A view for another component of the same node."""
        view = Log.__new__(Log)
        view.__dict__.update(self.__dict__, service=service)
        return view

    def wants(self, event: Event) -> bool:
        """Whether a line about this event would be written."""
        if event.level in self._wanted or event.always:
            return True
        return event.first_always and event.name not in self._seen

    def write(
        self, event: Event, message: str, method: str = "", fields: Mapping[str, Any] | None = None
    ) -> None:
        """Writes a line, unless the level is too low for it. Fields that are None are left out."""
        if self.wants(event):
            line = self.begun(event, message, method)
            if fields:
                line.update((name, value) for name, value in fields.items() if value is not None)
            self.end(event, line)

    def write_all(
        self,
        event: Event,
        message: str,
        method: str,
        shared: Mapping[str, Any],
        each: Iterable[Mapping[str, Any]],
    ) -> None:
        """Writes a line for each of some, which share all but a few of their fields, whatever the level."""
        line = self.begun(event, message, method)
        line.update((name, value) for name, value in shared.items() if value is not None)
        if event.first_always:
            self._seen.add(event.name)
        self._output.write(_encode_all(line, each), urgent=event.always or event.level in _URGENT)

    def begun(self, event: Event, message: str, method: str) -> dict[str, Any]:
        """The fields that every line must have, of one that is known to be wanted."""
        return {
            "ts_ms": self._now_ms(),
            "level": event.level,
            "service": self.service,
            "method": method,
            "event": event.name,
            "message": message,
        }

    def end(self, event: Event, line: Mapping[str, Any]) -> None:
        """Writes a line with all that has been added to it."""
        if event.first_always:
            self._seen.add(event.name)
        self._output.write(_encode(line), urgent=event.always or event.level in _URGENT)
