"""PostgreSQL server of a comparison, from the wheel with its default settings; a database for each queue."""

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

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.programs import program

_SQL = Path(__file__).parent / "sql"
_ENDING_S = 0.1


class SqlFailed(Exception):
    """The server refused a script of ours."""


@dataclass(frozen=True, slots=True)
class PostgresDatabase:
    """One database of the server, and the folder with its SQL."""

    url: str
    kind: str

    def run_script(self, name: str, **variables: int) -> str:
        """Run a script of the folder."""
        given = [part for key, value in variables.items() for part in ("-v", f"{key}={value}")]
        return self._psql(*given, "-f", str(self.path(name)))

    def execute(self, sql: str) -> str:
        """Run a statement."""
        return self._psql("-c", sql)

    def read_query(self, name: str) -> str:
        """Read a query of the folder."""
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
class PostgresServer:
    """The server, whose CPU time counts like that of its clients."""

    postgres: EmbeddedPostgres

    def database(self, name: str, kind: str) -> PostgresDatabase:
        """Create an empty database."""
        main = PostgresDatabase(self.postgres.url_of("postgres"), kind)
        main.execute(f'DROP DATABASE IF EXISTS "{name}"')
        main.execute(f'CREATE DATABASE "{name}"')
        return PostgresDatabase(self.postgres.url_of(name), kind)

    def copy_database(self, source: str, name: str, kind: str) -> PostgresDatabase:
        """Copy a database that has no connections."""
        main = PostgresDatabase(self.postgres.url_of("postgres"), kind)
        main.execute(f'DROP DATABASE IF EXISTS "{name}"')
        main.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}"')
        return PostgresDatabase(self.postgres.url_of(name), kind)

    def flush(self) -> None:
        """Write a checkpoint, so that no measurement pays for earlier writes."""
        PostgresDatabase(self.postgres.url_of("postgres"), "").execute("CHECKPOINT")

    def cpu_s(self) -> float:
        """Sum the CPU seconds of all its processes so far, with those that have ended."""
        assert self.postgres.pid is not None
        # A session that is just ending is for a moment neither a child nor counted.
        time.sleep(_ENDING_S)
        main = psutil.Process(self.postgres.pid)
        found = sum(main.cpu_times()[:4])
        for each in main.children():
            with suppress(psutil.NoSuchProcess):
                found += sum(each.cpu_times()[:2])
        return found

    def version(self) -> str:
        return PostgresDatabase(self.postgres.url_of("postgres"), "").execute("SHOW server_version")


@contextmanager
def start_server() -> Iterator[PostgresServer]:
    """Start a server for a run; its temporary folder needs room for several gigabytes."""
    with tempfile.TemporaryDirectory(prefix="charter-peers-", ignore_cleanup_errors=True) as folder:
        if os.name != "nt" and os.geteuid() == 0:
            Path(folder).chmod(0o755)
        postgres = EmbeddedPostgres(Path(folder, "postgres"))
        try:
            postgres.start()
            yield PostgresServer(postgres)
        finally:
            postgres.remove()
