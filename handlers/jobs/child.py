"""The child process that runs plain job functions one after the other; the worker may kill it any time.

Messages are length-prefixed JSON. A thread reads them, so that a function can learn that its worker is
stopping, and so that the process exits once the worker is gone.
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
from handlers.jobs.registry import ANY, Job, JobFailed, JobFatal, RegisteredFunction
from runtime.world import RealWorld

LENGTH = struct.Struct(">I")
_WORLD = RealWorld()


def main(descriptor: int, names: str) -> None:
    """Run the jobs that arrive on a socket until it is closed."""
    connection = _WorkerConnection(socket.socket(fileno=descriptor))
    try:
        functions = load(names)
    except HandlersUnusable as error:
        connection.send({"unusable": str(error)})
        return
    threading.Thread(target=connection.listen, daemon=True).start()
    while True:
        request = connection.jobs.get()
        program = request.pop("program")
        connection.send({"begun": request["job_id"]})
        if not _find_function(functions, request) and program:
            # The worker has the function from its main program, not from a module named in the setting.
            try:
                functions = {**import_program(program), **functions}
            except HandlersUnusable as error:
                connection.send({"unusable": str(error)})
                continue
        connection.send(_run(_find_function(functions, request), request, connection))


def _find_function(
    functions: Mapping[str, RegisteredFunction], request: Mapping[str, Any]
) -> RegisteredFunction | None:
    return functions.get(request["job_type"]) or functions.get(ANY)


class _WorkerConnection:
    """The socket to the worker: jobs and stop notices come in, progress and results go out."""

    def __init__(self, stream: socket.socket) -> None:
        self._socket = stream
        self._is_stopping = threading.Event()
        self.jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen(self) -> None:
        try:
            while True:
                message = json.loads(self._read_exactly(LENGTH.unpack(self._read_exactly(LENGTH.size))[0]))
                if "job" in message:
                    self._is_stopping.clear()
                    self.jobs.put(message["job"])
                else:
                    self._is_stopping.set()
        finally:
            # The worker is gone, and no one would read the result of a run.
            os._exit(0)

    def send(self, message: Mapping[str, Any]) -> None:
        self._socket.sendall(encode_frame(message))

    def is_stopping(self) -> bool:
        return self._is_stopping.is_set()

    def report(self, progress: Mapping[str, Any]) -> _CompletedAwaitable:
        self.send({"progress": dict(progress)})
        return _CompletedAwaitable()

    def _read_exactly(self, size: int) -> bytes:
        read = bytearray()
        while len(read) < size:
            part = self._socket.recv(min(size - len(read), 1 << 20))
            if not part:
                raise EOFError
            read += part
        return bytes(read)


class _CompletedAwaitable:
    """An awaitable that is done: `report` has sent the progress already."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


def encode_frame(message: Mapping[str, Any]) -> bytes:
    """Encode a message as length-prefixed JSON."""
    text = json.dumps(message).encode()
    return LENGTH.pack(len(text)) + text


def _run(
    function: RegisteredFunction | None, request: Mapping[str, Any], connection: _WorkerConnection
) -> Mapping[str, Any]:
    if function is None:
        return {"unusable": f"{request['job_type']!r} is not among the job functions of this process"}
    try:
        job = function.decode_payload(
            Job(world=_WORLD, report=connection.report, is_stopping=connection.is_stopping, **request)
        )
        output = function.to_output(function.function(job))
    except JobFailed as failed:
        return {"failed": failed.reason, "summary": failed.summary, "is_final": isinstance(failed, JobFatal)}
    except BaseException as error:
        return {"raised": _describe_error(error)}
    return {
        "json": output.json or json.dumps(output.value),
        "summary": output.summary,
        "content": None if output.json else base64.b64encode(output.content).decode(),
    }


def _describe_error(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
