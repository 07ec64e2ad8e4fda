"""The rows of one table over a connection: records by key, read once in each step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from runtime.stores.sqlite.codec import RowCodec
from runtime.stores.sqlite.database import FileUnavailable
from runtime.stores.sqlite.statements import Statements
from runtime.stores.store import Unstorable

_UNSTORABLE = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
_NOTHING: Mapping[str, Any] = {}


class Rows:
    """Records by key. What a step has read or written it need not read again."""

    def __init__(self, entity: str, key: str, codec: RowCodec, statements: Statements) -> None:
        self._entity, self._key = entity, key
        self.codec, self.statements = codec, statements
        self.connection: sqlite3.Connection | None = None
        self._known: dict[str, Any | None] = {}

    def begin(self) -> None:
        """Begin a step: what was known before it may have changed."""
        self._known.clear()

    # Records.

    def get(self, key: str, /) -> Any | None:
        """Return a record; None where there is none."""
        if key in self._known:
            return self._known[key]
        try:
            row = self.execute("get", {"key": key}).fetchone()
        except Unstorable:  # A text that no row can have.
            return None
        record = self._known[key] = None if row is None else self._read(row)
        return record

    def __getitem__(self, key: str, /) -> Any:
        record = self.get(key)
        if record is None:
            raise KeyError(key)
        return record

    def __contains__(self, key: object, /) -> bool:
        return isinstance(key, str) and self.get(key) is not None

    def insert(self, key: str, record: Any) -> None:
        """Add a row."""
        self.execute("insert", self.codec.write(record))
        self._known[key] = record

    def update(self, key: str, old: Any, new: Any, *, whole: bool = False) -> None:
        """Write the fields of a row that have changed, or all of them."""
        names = self.codec.names if whole else self.codec.changes(old, new)
        if names:
            given = self.codec.write(new, names)
            given["key"] = key
            self._execute(self.statements.write(names), given)
        self._known[key] = new

    def write(self, names: list[str], given: Mapping[str, Any]) -> None:
        """Write some columns of a row, whatever its record is meanwhile."""
        self._execute(self.statements.write(names), given)

    def delete(self, key: str) -> None:
        """Remove a row."""
        self.execute("delete", {"key": key})
        self._known[key] = None

    # Statements.

    def execute(self, name: str, given: Mapping[str, Any] = _NOTHING) -> sqlite3.Cursor:
        """Run a statement by its name."""
        return self._execute(self.statements[name], given)

    def iterate(self, name: str, given: Mapping[str, Any] = _NOTHING) -> Iterator[tuple[str, Any]]:
        """Iterate over the keys and records of a statement, reading no further than is asked for."""
        return self._iterate(self.statements[name], given)

    def iterate_numbered(self, name: str, given: Mapping[str, Any]) -> Iterator[tuple[int, str, Any]]:
        """Iterate over the numbers of rows, their keys and their records."""
        for *row, number in self.execute(name, given):
            yield number, *self._remember(row)

    def find(self, name: str, conditions: list[str], given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Iterate over the keys and records of a listing under some conditions."""
        return self._iterate(self.statements.find(name, conditions), given)

    def _iterate(self, statement: str, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for row in self._execute(statement, given):
            yield self._remember(row)

    def _remember(self, row: Any) -> tuple[str, Any]:
        record = self._read(row)
        key: str = getattr(record, self._key)
        self._known[key] = record
        return key, record

    def _execute(self, statement: str, given: Mapping[str, Any]) -> sqlite3.Cursor:
        if self.connection is None:
            raise FileUnavailable("the database is not open")
        try:
            return self.connection.execute(statement, given)
        except UnicodeEncodeError:
            raise Unstorable("text with half a character in it cannot be kept") from None
        except (*_UNSTORABLE, OverflowError) as error:
            raise Unstorable(f"{self._entity}: {error}") from None

    def _read(self, row: Any) -> Any:
        return self.codec.read(self.statements.columns, row)
