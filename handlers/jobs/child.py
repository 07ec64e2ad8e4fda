"""The process in which plain job functions run, one after the other, for a worker that may end it any time.

Messages are JSON, each with its length before it. A thread reads them, so that a function can be told that
its worker is stopping, and so that nothing goes on once the worker is gone.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import socket
import struct
import threading
from collections.abc import Generator, Mapping
from typing import Any

from handlers.jobs.loader import HandlersUnusable, import_program, load
from handlers.jobs.registry import ANY, Job, JobFailed, JobFatal, Registered
from runtime.world import RealWorld

LENGTH = struct.Struct(">I")
_WORLD = RealWorld()


def main(descriptor: int, names: str) -> None:
    """Runs what comes over a socket until that is closed."""
    link = _Link(socket.socket(fileno=descriptor))
    try:
        functions = load(names)
    except HandlersUnusable as error:
        link.send({"unusable": str(error)})
        return
    threading.Thread(target=link.listen, daemon=True).start()
    while True:
        asked = link.jobs.get()
        program = asked.pop("program")
        link.send({"begun": asked["job_id"]})
        if not _known(functions, asked) and program:
            # The worker has it from a program that it runs, and not from a module that is named.
            try:
                functions = {**import_program(program), **functions}
            except HandlersUnusable as error:
                link.send({"unusable": str(error)})
                continue
        link.send(_run(_known(functions, asked), asked, link))


def _known(functions: Mapping[str, Registered], asked: Mapping[str, Any]) -> Registered | None:
    return functions.get(asked["job_type"]) or functions.get(ANY)


class _Link:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._is_stopping = threading.Event()
        self.jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen(self) -> None:
        try:
            while True:
                message = json.loads(self._exactly(LENGTH.unpack(self._exactly(LENGTH.size))[0]))
                if "job" in message:
                    self._is_stopping.clear()
                    self.jobs.put(message["job"])
                else:
                    self._is_stopping.set()
        finally:
            # The worker is gone, and whatever runs here would run for nobody.
            os._exit(0)

    def send(self, message: Mapping[str, Any]) -> None:
        self._connection.sendall(framed(message))

    def is_stopping(self) -> bool:
        return self._is_stopping.is_set()

    def report(self, progress: Mapping[str, Any]) -> _Told:
        self.send({"progress": dict(progress)})
        return _Told()

    def _exactly(self, size: int) -> bytes:
        read = bytearray()
        while len(read) < size:
            part = self._connection.recv(min(size - len(read), 1 << 20))
            if not part:
                raise EOFError
            read += part
        return bytes(read)


class _Told:
    """Nothing is left to wait for."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


def framed(message: Mapping[str, Any]) -> bytes:
    """A message with its length before it."""
    text = json.dumps(message).encode()
    return LENGTH.pack(len(text)) + text


def _run(function: Registered | None, asked: Mapping[str, Any], link: _Link) -> Mapping[str, Any]:
    if function is None:
        return {"unusable": f"{asked['job_type']!r} is not among the job functions of this process"}
    try:
        given = function.decoded(Job(world=_WORLD, report=link.report, is_stopping=link.is_stopping, **asked))
        made = function.output(function.function(given))
    except JobFailed as failed:
        return {"failed": failed.reason, "summary": failed.summary, "is_final": isinstance(failed, JobFatal)}
    except BaseException as error:
        return {"raised": _text(error)}
    return {
        "json": made.json or json.dumps(made.value),
        "summary": made.summary,
        "content": None if made.json else base64.b64encode(made.content).decode(),
    }


def _text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
