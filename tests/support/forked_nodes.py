"""Nodes that are forked off a process which has their modules already: a start takes a tenth of the time.

All that a node does begins after the fork, and it is a process like any other: it may be stopped, starved and
killed. What tests of the launcher and of the containers start comes into being as it does for users.
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
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from runtime.launch import die_with_parent
from tests.support import fork_server

ROOT = Path(__file__).parents[2]


class Process(Protocol):
    """What is asked of a node's process, in the words of subprocess.Popen."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Forked:
    """A process that was forked off. It ends when the tests do."""

    def __init__(self, pid: int, source: _Source) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._source = source
        self._ended = threading.Event()

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

    def end(self, code: int) -> None:
        """Is told how it ended."""
        self.returncode = code
        self._ended.set()


def start(
    system: str, module: str, arguments: Sequence[str], environ: Mapping[str, str], out: Path, errors: Path
) -> Process:
    """Run `python -m <module> <arguments>` with the modules of a system; both outputs are appended to.

    Where variables of Python itself differ from ours it is an interpreter of its own: these count from the
    beginning.
    """
    for each in (out, errors):
        each.touch()
    if any(environ.get(name) != os.environ.get(name) for name in environ if name.startswith("PYTHON")):
        with out.open("ab") as output, errors.open("ab") as complaints:
            return subprocess.Popen(
                _tied([sys.executable, "-m", module, *arguments]),
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=complaints,
                start_new_session=True,
            )
    asked = {
        "module": module,
        "arguments": list(arguments),
        "environ": dict(environ),
        "out": str(out),
        "errors": str(errors),
    }
    return _source(system).fork(asked)


class _Source:
    """The process that forks the others, and who waits for word of them."""

    def __init__(self, system: str) -> None:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            _tied([sys.executable, "-m", fork_server.__name__, system, str(theirs.fileno())]),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._asking = threading.Lock()
        self._known = threading.Condition()
        self._living: dict[int, Forked] = {}
        self._newest: Forked | None = None
        self._line = ours
        threading.Thread(target=self._listen, args=(ours.makefile("rb"),), daemon=True).start()

    def fork(self, asked: Mapping[str, Any]) -> Forked:
        with self._asking, self._known:
            before = self._newest
            self._line.sendall(json.dumps(asked).encode() + b"\n")
            self._known.wait_for(lambda: self._newest is not before or self._gone, 180)
            newest = self._newest
            assert newest is not None and newest is not before, "what forks the others has ended, or hangs"
            return newest

    def signal(self, process: Forked, number: int) -> None:
        # Its number is not given to another one before we have heard of its end.
        with self._known:
            if process.returncode is None:
                os.kill(process.pid, number)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def _gone(self) -> bool:
        return self._process.poll() is not None

    def _listen(self, told: Any) -> None:
        for line in told:
            said = json.loads(line)
            with self._known:
                if "began" in said:
                    pid = said["began"]
                    self._newest = self._living[pid] = Forked(pid, self)
                    self._known.notify_all()
                else:
                    self._living.pop(said["ended"]).end(said["code"])
                    self._line.sendall(b"%d\n" % said["ended"])
        with self._known:
            self._known.notify_all()


def _tied(command: Sequence[str]) -> list[str]:
    """The command, tied to this process, so that nothing is left behind by tests that are killed."""
    return [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *command]


@cache
def _source(system: str) -> _Source:
    made = _Source(system)
    atexit.register(made.close)
    return made
