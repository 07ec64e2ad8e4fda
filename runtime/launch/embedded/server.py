"""Embedded server: a child process with a data folder of its own, on loopback only."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from runtime.launch.embedded import exec_child
from runtime.launch.embedded.ports import LOOPBACK, allocate_ports
from runtime.launch.embedded.programs import EmbeddedError
from runtime.model.system import System

_PATIENCE = 60.0
_PAUSE = 0.02


class EmbeddedServer:
    """One server. Its data is persistent; the folder of a killed server can be used again."""

    title = ""
    """The name of the product."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder.absolute()
        self.port = 0
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id of the server itself, not of one of its children."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def url(self) -> str:
        """Its URL, password included."""
        raise NotImplementedError

    @property
    def variables(self) -> dict[str, str]:
        """Further variables for its clients, beside the URL."""
        return {}

    async def provision(self, system: System, engine: str | None) -> str:
        """Prepare the server for a system whose entities an engine keeps; return the URL for its nodes."""
        del system, engine
        return self.url

    def prepare(self) -> None:
        """Create the folder and initialise the data, unless that is done. May take a second."""
        raise NotImplementedError

    def start(self) -> str:
        """Prepare, start and wait until it is ready; return the URL."""
        self.prepare()
        self.spawn()
        self.wait()
        return self.url

    def spawn(self) -> None:
        """Start the server without waiting. It stops when the thread that calls this ends."""
        raise NotImplementedError

    def wait(self) -> None:
        """Wait until the server is ready; raises with the end of its log when it cannot be started."""
        until = time.monotonic() + _PATIENCE
        while not self._is_ready() or not self.running:
            # An answer after our process has ended comes from a foreign server.
            if not self.running:
                raise EmbeddedError(self._explain_failure())
            if time.monotonic() > until:
                self.kill()
                raise EmbeddedError(f"{self.title} did not answer within {_PATIENCE:g} s; see {self.log}.")
            time.sleep(_PAUSE)

    def stop(self, *, immediate: bool = False) -> None:
        """Stop it: in order, or immediately, with the recovery left to the next start."""
        if self._process is not None:
            self._signal(self._kill_signal if immediate else self._stop_signal)
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def restart(self, *, immediate: bool = False) -> None:
        """Restart it on the same port."""
        self.stop(immediate=immediate)
        self.spawn()
        self.wait()

    def remove(self) -> None:
        """Stop it and delete all its data."""
        self.stop(immediate=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def describe(self, name: str) -> str:
        """Return one line for the user: pid, address and data folder, with its name in the deployment."""
        return f"{name}: pid {self.pid}, listens on {LOOPBACK}:{self.port}, data in {self.folder}"

    def last_lines(self) -> list[str]:
        """Return the last lines of its log."""
        return self._read_log_tail() if self.log.exists() else []

    _stop_signal: int = signal.SIGINT
    """The signal for an orderly stop, which is also its parent death signal."""
    _kill_signal: int = signal.SIGKILL
    """The signal for an immediate stop."""

    def _is_ready(self) -> bool:
        raise NotImplementedError

    def _explain_failure(self) -> str:
        return "\n".join((f"{self.title} cannot be started in {self.folder}:", *self._read_log_tail()))

    def _read_log_tail(self) -> list[str]:
        return self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]

    def _make_folder(self) -> None:
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(f"The data folder {self.folder} cannot be made: {error.strerror}.") from None

    def _allocate_port(self) -> None:
        self.port = self.port or allocate_ports(1)[0]

    def _spawn(
        self, command: Sequence[str], environ: Mapping[str, str], *, user: str = "", keep: Sequence[int] = ()
    ) -> None:
        """Spawn the command of the server; `keep` are file descriptors that it inherits."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._make_child_command(command, user),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environ,
                pass_fds=keep,
                # Not in the terminal's process group: Ctrl-C first stops the clients, and then it.
                start_new_session=True,
            )

    def _make_child_command(self, command: Sequence[str], user: str = "") -> list[str]:
        """Make the command line that runs a program as a user, and stops it when we end.

        The program changes its user by itself. With the parameter `user`, subprocess would fork instead of
        vfork, and so run the fork handlers of libraries such as gRPC, which may abort the child.
        """
        options = (str(os.getpid()), str(int(self._stop_signal)), user)
        return [sys.executable, "-I", "-S", exec_child.__file__, *options, *command]

    def _signal(self, number: int) -> None:
        if (pid := self.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
