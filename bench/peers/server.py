"""One PostgreSQL for all, from the wheel and with the settings that it comes with; a database for each."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.programs import program

_SQL = Path(__file__).parent / "sql"
_ENDING_S = 0.1


class SqlFailed(Exception):
    """A script of ours was refused by the server."""


@dataclass(frozen=True, slots=True)
class Database:
    """One database of the server, and the folder with its SQL."""

    url: str
    kind: str

    def run(self, name: str, **variables: int) -> str:
        """Run a script of the folder."""
        given = [part for key, value in variables.items() for part in ("-v", f"{key}={value}")]
        return self._psql(*given, "-f", str(self.path(name)))

    def say(self, sql: str) -> str:
        """Run a statement."""
        return self._psql("-c", sql)

    def text(self, name: str) -> str:
        """A query of the folder."""
        return self.path(name).read_text()

    def path(self, name: str) -> Path:
        return _SQL / self.kind / (name if "." in name else f"{name}.sql")

    def _psql(self, *arguments: str) -> str:
        options = ["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", self.url]
        done = subprocess.run(
            [str(program("psql")), *options, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SqlFailed(f"{self.kind}: {done.stderr.strip()}")
        return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Server:
    """The server, whose processor time counts as much as that of its clients."""

    postgres: EmbeddedPostgres

    def database(self, name: str, kind: str) -> Database:
        """A new and empty database."""
        main = Database(self.postgres.url_of("postgres"), kind)
        main.say(f'DROP DATABASE IF EXISTS "{name}"')
        main.say(f'CREATE DATABASE "{name}"')
        return Database(self.postgres.url_of(name), kind)

    def copy(self, source: str, name: str, kind: str) -> Database:
        """A database like another one, which nobody may be connected to."""
        main = Database(self.postgres.url_of("postgres"), kind)
        main.say(f'DROP DATABASE IF EXISTS "{name}"')
        main.say(f'CREATE DATABASE "{name}" TEMPLATE "{source}"')
        return Database(self.postgres.url_of(name), kind)

    def settle_down(self) -> None:
        """Write everything out, so that no measurement pays for what came before it."""
        Database(self.postgres.url_of("postgres"), "").say("CHECKPOINT")

    def cpu_s(self) -> float:
        """Processor seconds of all its processes so far, of those too that have ended."""
        assert self.postgres.pid is not None
        # A session that is just ending is nowhere for a moment: no child any more, and not yet counted.
        time.sleep(_ENDING_S)
        main = psutil.Process(self.postgres.pid)
        found = sum(main.cpu_times()[:4])
        for each in main.children():
            with suppress(psutil.NoSuchProcess):
                found += sum(each.cpu_times()[:2])
        return found

    def version(self) -> str:
        return Database(self.postgres.url_of("postgres"), "").say("SHOW server_version")


@contextmanager
def serving() -> Iterator[Server]:
    """A server for the time of a run. Where its data are, there must be room for several gigabytes."""
    with tempfile.TemporaryDirectory(prefix="charter-peers-", ignore_cleanup_errors=True) as folder:
        if os.name != "nt" and os.geteuid() == 0:
            Path(folder).chmod(0o755)
        postgres = EmbeddedPostgres(Path(folder, "postgres"))
        try:
            postgres.start()
            yield Server(postgres)
        finally:
            postgres.remove()
