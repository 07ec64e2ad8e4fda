"""Nodes that are forked from a process with their modules loaded: a start takes a tenth of the time.

A node runs only after the fork, and it is a process like any other: it may be stopped, starved and killed.
Tests of the launcher and of the containers start their processes as users do.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from runtime.launch import die_with_parent
from tests.support import fork_server

ROOT = Path(__file__).parents[2]


class Process(Protocol):
    """The part of subprocess.Popen that tests use of a node's process."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class ForkedProcess:
    """A process of the fork server. It ends when the tests do."""

    def __init__(self, pid: int, source: _ForkServer) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._source = source
        self._ended = threading.Event()
        self._at_end: list[Callable[[], object]] = []

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int, /) -> None:
        self._source.signal(self, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def call_at_end(self, callback: Callable[[], object]) -> None:
        """Call something once it has ended, in any thread; at once where it has."""
        self._at_end.append(callback)
        if self._ended.is_set():
            callback()

    def end(self, code: int) -> None:
        """Record its exit code."""
        self.returncode = code
        self._ended.set()
        for callback in self._at_end:
            callback()


def start(
    system: str, module: str, arguments: Sequence[str], environ: Mapping[str, str], out: Path, errors: Path
) -> Process:
    """Run `python -m <module> <arguments>` with the modules of a system; append both outputs to files.

    Where variables of Python itself differ from ours it is a new interpreter, because they count from its
    start.
    """
    for each in (out, errors):
        each.touch()
    if any(environ.get(name) != os.environ.get(name) for name in environ if name.startswith("PYTHON")):
        with out.open("ab") as output, errors.open("ab") as complaints:
            return subprocess.Popen(
                _tie_to_parent([sys.executable, "-m", module, *arguments]),
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=complaints,
                start_new_session=True,
            )
    request = {
        "module": module,
        "arguments": list(arguments),
        "environ": dict(environ),
        "out": str(out),
        "errors": str(errors),
    }
    return _start_fork_server(system).fork(request)


class _ForkServer:
    """Client of a fork server: sends requests, and listens for the ends of processes."""

    def __init__(self, system: str) -> None:
        self._socket, theirs = socket.socketpair()
        self._process: subprocess.Popen[bytes]
        self._fork_lock = threading.Lock()
        self._state = threading.Condition()
        self._living: dict[int, ForkedProcess] = {}
        self._last_forked: ForkedProcess | None = None
        started = threading.Event()
        threading.Thread(target=self._run, args=(system, theirs, started), daemon=True).start()
        started.wait()

    def fork(self, request: Mapping[str, Any]) -> ForkedProcess:
        with self._fork_lock, self._state:
            before = self._last_forked
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            self._state.wait_for(lambda: self._last_forked is not before or self._is_gone, 180)
            newest = self._last_forked
            assert newest is not None and newest is not before, "the fork server has ended, or hangs"
            return newest

    def signal(self, process: ForkedProcess, number: int) -> None:
        # Its id is not used again before we have acknowledged its end.
        with self._state:
            if process.returncode is None:
                os.kill(process.pid, number)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def _is_gone(self) -> bool:
        return self._process.poll() is not None

    def _run(self, system: str, theirs: socket.socket, started: threading.Event) -> None:
        """Start the server and listen to it, in one thread: it ends with the thread that started it.

        A node may be started by a thread of an event loop, which ends long before the tests do.
        """
        try:
            self._process = subprocess.Popen(
                _tie_to_parent([sys.executable, "-m", fork_server.__name__, system, str(theirs.fileno())]),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        finally:
            theirs.close()
            started.set()
        self._listen(self._socket.makefile("rb"))

    def _listen(self, lines: Any) -> None:
        for line in lines:
            message = json.loads(line)
            with self._state:
                if "began" in message:
                    pid = message["began"]
                    self._last_forked = self._living[pid] = ForkedProcess(pid, self)
                    self._state.notify_all()
                else:
                    self._living.pop(message["ended"]).end(message["code"])
                    self._socket.sendall(b"%d\n" % message["ended"])
        with self._state:
            self._state.notify_all()


def _tie_to_parent(command: Sequence[str]) -> list[str]:
    """Make a command that ends with this process, so that killed tests leave no process behind."""
    return [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *command]


@cache
def _start_fork_server(system: str) -> _ForkServer:
    server = _ForkServer(system)
    atexit.register(server.close)
    return server
