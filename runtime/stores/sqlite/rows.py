"""Between records and rows: states are names in the file and numbers in Python, times are microseconds."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, get_args, get_type_hints

from runtime.model.lifecycles import Lifecycle
from runtime.stores.store import Record, Unstorable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
Convert = Callable[[Any], Any]


class Rows(Generic[Record]):
    """How the records of one kind are written to and read from their table."""

    def __init__(self, lifecycle: Lifecycle, record: type[Record]) -> None:
        self._record: Callable[..., Record] = record
        self.names = record.__struct_fields__
        # A field may be called as a type is, so the names in the class are no names of types.
        hints = get_type_hints(record, vars(sys.modules[record.__module__]), {})
        self._key = lifecycle.key
        self.word = lifecycle.in_sqlite.words if lifecycle.in_sqlite else lifecycle.states
        self.number = {word: number for number, word in self.word.items()}
        self._hints = hints
        self._reading: list[tuple[str, Convert]] = []
        for name in self.names:
            if (convert := self._convert(name, hints[name], lifecycle.status)) is not None:
                self._reading.append((name, convert))

    def is_instant(self, name: str) -> bool:
        """Whether a field is a time of type timestamp; other times are whole milliseconds."""
        return datetime in (get_args(self._hints[name]) or (self._hints[name],))

    def read(self, row: sqlite3.Row) -> Record:
        """The record of a row, by the names of its columns."""
        values = {name: row[name] for name in self.names}
        for name, convert in self._reading:
            if values[name] is not None:
                values[name] = convert(values[name])
        return self._record(**values)

    def write(self, record: Record) -> dict[str, Any]:
        """What a statement is given of a record."""
        return {f"record_{name}": stored(getattr(record, name)) for name in self.names}

    def _convert(self, name: str, hint: Any, status: str) -> Convert | None:
        if name == status:
            return self.number.__getitem__
        if self.is_instant(name):
            return moment
        return bool if bool in (get_args(hint) or (hint,)) else None


def moment(microseconds: int) -> datetime:
    """A time as Python has it."""
    return _EPOCH + microseconds * _MICROSECOND


def stored(value: Any) -> Any:
    """A value as SQLite keeps it."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Unstorable("text with half a character in it cannot be kept") from None
    return value
