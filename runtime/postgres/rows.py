"""Between records and rows: states are names in the database and numbers in Python, keys may be UUIDs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Generic, get_type_hints

from runtime.lifecycles import Lifecycle
from runtime.store import Record, Unstorable

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class Rows(Generic[Record]):
    """How the records of one kind are written to and read from their table."""

    def __init__(self, lifecycle: Lifecycle, record: type[Record]) -> None:
        self._record: Callable[..., Record] = record
        self._names = tuple(each.name for each in fields(record))  # type: ignore[arg-type]
        self._key = self._names.index(lifecycle.key)
        self._status = self._names.index(lifecycle.status)
        self.number = {name: number for number, name in lifecycle.states.items()}
        self.types: Mapping[str, Any] = get_type_hints(record)

    def place(self, field: str) -> int:
        """Where a row has a field."""
        return self._names.index(field)

    def read(self, row: Sequence[Any]) -> Record:
        """The record of a row; columns that come after those of the record are left alone."""
        values = dict(zip(self._names, row, strict=False))
        values[self._names[self._key]] = str(row[self._key])
        values[self._names[self._status]] = self.number[row[self._status]]
        return self._record(**values)


def is_key(text: str) -> bool:
    """Whether a text can be a key of the table at all."""
    return _UUID.fullmatch(text) is not None


def as_key(text: str) -> str:
    """A key as the database gives it back."""
    return text.lower()


def storable(text: str | None, most: int | None = None) -> str | None:
    """A text as it can be kept: cut at a character, and without what the database refuses."""
    if text is None:
        return None
    encoded = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    return (encoded if most is None else encoded[:most]).decode("utf-8", "ignore")


def refused(name: str) -> Unstorable:
    """What whoever gave a value is told that the database does not take."""
    return Unstorable(f"{name}: the store cannot hold this value")
