"""Codec of records and rows: states are names in a row and numbers in Python, keys may be UUIDs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic

import msgspec
from msgspec import Raw, Struct

from runtime.stores.contract import Record
from runtime.stores.postgres.statements import Statement
from runtime.stores.semantics.rules import Rules
from runtime.stores.store import Unstorable

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_Convert = Callable[[Any], Any]


class PostgresCodec(Generic[Record]):
    """The stored form of one kind of record, by the types of its columns."""

    def __init__(self, rules: Rules, record: type[Record], columns: Statement) -> None:
        self._record: Callable[..., Record] = record
        self._names = rules.names
        self._key, self._status = rules.lifecycle.key, rules.lifecycle.status
        self._states = dict(rules.lifecycle.states)
        self._numbers = {name: number for number, name in self._states.items()}
        self._types: Mapping[str, str] = columns.takes
        self._cuts = columns.cuts
        self._columns = [(name, columns.renamed.get(name, name)) for name in self._names]
        self.has_uuids = self._types[self._key] == "uuid"
        converters = {name: self._decoder(rules, name) for name in self._names}
        self._decoders = {name: convert for name, convert in converters.items() if convert is not None}

    # Keys and states.

    def is_key(self, text: str) -> bool:
        """Whether a text is a valid key of the table."""
        return _UUID.fullmatch(text) is not None if self.has_uuids else "\0" not in text

    def as_key(self, text: str) -> str:
        """Normalize a key as the database returns it."""
        return text.lower() if self.has_uuids else text

    def state_name(self, number: int) -> str:
        """Return the name of a state."""
        return self._states[number]

    def state_number(self, name: str) -> int:
        """Return the number of a state."""
        return self._numbers[name]

    # Rows.

    def decode(self, row: Any) -> Record:
        """Decode a row to a record, by the names of its columns; further columns are ignored."""
        values = {name: row[name] for name in self._names}
        for name, convert in self._decoders.items():
            if values[name] is not None:
                values[name] = convert(values[name])
        return self._record(**values)

    def encode(self, records: Iterable[Any]) -> str:
        """Encode records as the JSON of their rows."""
        rows = [
            {column: self._to_json(name, getattr(each, name)) for name, column in self._columns}
            for each in records
        ]
        return msgspec.json.encode(rows).decode()

    def argument(self, name: str, value: Any) -> Any:
        """Convert the value of a field to an argument of a statement."""
        if isinstance(value, str) and self._types[name] == "text":
            return storable(value, self._cuts.get(name))
        if isinstance(value, Struct):
            return msgspec.json.encode(value).decode()
        return [*value] if isinstance(value, tuple) else value

    def _decoder(self, rules: Rules, name: str) -> _Convert | None:
        if name == self._status:
            return self._numbers.__getitem__
        kind = self._types[name]
        if kind == "uuid":
            return str
        if kind == "text[]":
            return tuple
        nested = next((each for each in rules.types_of(name) if _is_struct(each)), None)
        return msgspec.json.Decoder(nested).decode if nested is not None else None

    def _to_json(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name == self._status:
            return self._states[value]
        kind = self._types[name]
        if kind == "jsonb" and isinstance(value, str):
            return Raw(value.encode())
        if kind == "text":
            return storable(value, self._cuts.get(name))
        return "\\x" + value.hex() if isinstance(value, bytes) else value


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def storable(text: str, most: int | None = None) -> str:
    """Return a text that the database accepts: truncated at a character, without NUL."""
    encoded = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")
    return (encoded if most is None else encoded[:most]).decode("utf-8", "ignore")


def make_unstorable(name: str) -> Unstorable:
    """Return the error for a value that the database does not accept."""
    return Unstorable(f"{name}: the store cannot hold this value")
