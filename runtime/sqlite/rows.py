"""Between records and rows: states are names in the file and numbers in Python, times are microseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, get_args, get_type_hints

from runtime.lifecycles import Lifecycle
from runtime.store import Record, Unstorable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
Convert = Callable[[Any], Any]


class Rows(Generic[Record]):
    """How the records of one kind are written to and read from their table."""

    def __init__(self, lifecycle: Lifecycle, record: type[Record]) -> None:
        self._record: Callable[..., Record] = record
        self.names = tuple(each.name for each in fields(record))  # type: ignore[arg-type]
        hints = get_type_hints(record)
        self._key = lifecycle.key
        self.word = lifecycle.in_sqlite.words if lifecycle.in_sqlite else lifecycle.states
        self.number = {word: number for number, word in self.word.items()}
        self._hints = hints
        self._reading: list[tuple[int, Convert]] = []
        for place, name in enumerate(self.names):
            if (convert := self._convert(name, hints[name], lifecycle.status)) is not None:
                self._reading.append((place, convert))

    def is_instant(self, name: str) -> bool:
        """Whether a field is a time of type timestamp; other times are whole milliseconds."""
        return datetime in (get_args(self._hints[name]) or (self._hints[name],))

    def read(self, row: Sequence[Any]) -> Record:
        """The record of a row."""
        values = list(row)
        for place, convert in self._reading:
            if values[place] is not None:
                values[place] = convert(values[place])
        return self._record(**dict(zip(self.names, values, strict=True)))

    def write(self, record: Record) -> dict[str, Any]:
        """What a statement is given of a record."""
        return {name: stored(getattr(record, name)) for name in self.names}

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
