"""Between records and rows: states are names in the database and numbers in Python, keys may be UUIDs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic

from runtime.model.lifecycles import Lifecycle
from runtime.stores.store import Record, Unstorable

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

WAITED = "_waited"
"""The column with the seconds for which an entity was free to be taken; no field can have this name."""


class Rows(Generic[Record]):
    """How the records of one kind are written to and read from their table."""

    def __init__(self, lifecycle: Lifecycle, record: type[Record]) -> None:
        self._record: Callable[..., Record] = record
        self._names = record.__struct_fields__
        self._key, self._status = lifecycle.key, lifecycle.status
        self.number = {name: number for number, name in lifecycle.states.items()}

    def read(self, row: Any) -> Record:
        """The record of a row, by the names of its columns; a row may have more of them."""
        values = {name: row[name] for name in self._names}
        values[self._key] = str(values[self._key])
        values[self._status] = self.number[values[self._status]]
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
