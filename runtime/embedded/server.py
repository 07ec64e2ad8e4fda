"""A server as a child process: started in a folder of its own, on loopback only, and ended in every way."""

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

from runtime.embedded import exec_child
from runtime.embedded.ports import LOOPBACK, free_ports
from runtime.embedded.programs import EmbeddedError

_PATIENCE = 60.0
_PAUSE = 0.02


class EmbeddedServer:
    """One server. Its data outlives it; a folder that a killed server left behind is simply used again."""

    title = ""
    """What the product is called."""

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
        """What it ended with, a negative number for a signal; None while it runs."""
        return None if self._process is None else self._process.poll()

    @property
    def url(self) -> str:
        """Where it is, password included."""
        raise NotImplementedError

    @property
    def variables(self) -> dict[str, str]:
        """What its clients have to know beside where it is, as variables that they read."""
        return {}

    async def admit(self, system: str) -> str:  # noqa: ARG002  # for those that have something to make ready
        """Makes ready what the nodes of a system need; where they find it."""
        return self.url

    def prepare(self) -> None:
        """Makes the folder and what the server needs in it, unless it has that. May take a second."""
        raise NotImplementedError

    def start(self) -> str:
        """Prepares, starts and waits until it answers; where it is."""
        self.prepare()
        self.spawn()
        self.wait()
        return self.url

    def spawn(self) -> None:
        """Starts the server and does not wait for it. It stops when the thread that calls this ends."""
        raise NotImplementedError

    def wait(self) -> None:
        """Returns when the server answers; raises with the end of its log when it cannot be started."""
        until = time.monotonic() + _PATIENCE
        while not self._answers() or not self.running:
            # Whoever answers in place of one that has ended is somebody else's.
            if not self.running:
                raise EmbeddedError(self._why_not())
            if time.monotonic() > until:
                self.kill()
                raise EmbeddedError(f"{self.title} did not answer within {_PATIENCE:g} s; see {self.log}.")
            time.sleep(_PAUSE)

    def stop(self, *, immediate: bool = False) -> None:
        """Ends it: in order, or at once with the recovery left to the next start."""
        if self._process is not None:
            self._signal(self._at_once if immediate else self._in_order)
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Ends it as a crash would."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def restart(self, *, immediate: bool = False) -> None:
        """Stops it and starts it again on the same port."""
        self.stop(immediate=immediate)
        self.spawn()
        self.wait()

    def remove(self) -> None:
        """Stops it and deletes all its data."""
        self.stop(immediate=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def told(self, name: str) -> str:
        """What a user wants to know of it once it is started, under the name that its deployment gives it."""
        return f"{name}: pid {self.pid}, listens on {LOOPBACK}:{self.port}, data in {self.folder}"

    def last_lines(self) -> list[str]:
        """The end of its log."""
        return self._said() if self.log.exists() else []

    _in_order: int = signal.SIGINT
    """The signal for an orderly stop, which it also gets when its parent has ended."""
    _at_once: int = signal.SIGKILL
    """The signal that ends it without an orderly stop."""

    def _answers(self) -> bool:
        raise NotImplementedError

    def _why_not(self) -> str:
        return "\n".join((f"{self.title} cannot be started in {self.folder}:", *self._said()))

    def _said(self) -> list[str]:
        return self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]

    def _make_folder(self) -> None:
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(f"The data folder {self.folder} cannot be made: {error.strerror}.") from None

    def _take_port(self) -> None:
        self.port = self.port or free_ports(1)[0]

    def _run(
        self, command: Sequence[str], environ: Mapping[str, str], *, user: str = "", keep: Sequence[int] = ()
    ) -> None:
        """Runs the server's command; `keep` are files that stay open in it."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    exec_child.__file__,
                    str(os.getpid()),
                    str(int(self._in_order)),
                    user,
                    *command,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environ,
                pass_fds=keep,
                # Away from the terminal's group: Ctrl-C is for those that use the server, and then for it.
                start_new_session=True,
            )

    def _signal(self, number: int) -> None:
        if (pid := self.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
