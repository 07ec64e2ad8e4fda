"""Brings a file up to date: numbered SQL files, each once."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

from runtime.stores.store import StoreUnusable

_CREATE = """
CREATE TABLE IF NOT EXISTS charter_migrations (
    system TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (system, number)
) STRICT
"""
_APPLIED = "SELECT number, digest FROM charter_migrations WHERE system = ?"
_REMEMBER = "INSERT INTO charter_migrations (system, number, name, digest) VALUES (?, ?, ?, ?)"


class FileMigration(NamedTuple):
    """One step."""

    number: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_migrations(system: str) -> list[FileMigration]:
    """The steps of a system. One that was never accepted has its whole schema as the only step."""
    folder = files(f"generated.{system}").joinpath("sqlite")
    accepted = folder.joinpath("migrations")
    if not accepted.is_dir():
        return [FileMigration(0, "unaccepted", folder.joinpath("schema.sql").read_text(encoding="utf-8"))]
    named = [each for each in accepted.iterdir() if each.name.endswith(".sql")]
    steps = (FileMigration(int(each.name[:4]), each.name, each.read_text(encoding="utf-8")) for each in named)
    return sorted(steps, key=lambda each: each.number)


def migrate(connection: sqlite3.Connection, system: str, steps: Sequence[FileMigration]) -> None:
    """Applies what is missing, each step as a whole or not at all. A file that is ahead is left as it is."""
    connection.execute(_CREATE)
    applied = dict(connection.execute(_APPLIED, (system,)).fetchall())
    for step in _left(system, steps, applied):
        try:
            connection.execute("BEGIN IMMEDIATE")
            for statement in split_script(step.text):
                connection.execute(statement)
            connection.execute(_REMEMBER, (system, step.number, step.name, step.digest))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            connection.execute("ROLLBACK")
            raise StoreUnusable(f"{system}/{step.name} does not fit this file: {error}") from error


def _left(system: str, known: Sequence[FileMigration], applied: dict[int, str]) -> Iterator[FileMigration]:
    for each in known:
        if each.number not in applied:
            if each.number < max(applied, default=0):
                raise StoreUnusable(f"{system}/{each.name} is older than what the file has already")
            yield each
        elif applied[each.number] != each.digest:
            raise StoreUnusable(
                f"{system}/{each.name} is not what was applied under its number; migrations are never edited"
            )


def split_script(text: str) -> Iterator[str]:
    """The statements of a script. `executescript` would commit what is under way."""
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if sqlite3.complete_statement(statement := "\n".join(lines)):
            yield statement
            lines = []
