"""Entries of the stream as rows: every value is text there, and of its column's type in the database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from runtime.postgres.statements import Statement
from runtime.tables import Lifecycle

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**63 - 1
_FIELDS = {
    "sequence": "sequence",
    "from_state": "from",
    "to_state": "to",
    "at": "at",
    "actor": "actor",
    "owner": "owner",
    "fence": "fence",
    "reason": "reason",
    "trace": "trace",
}
"""The columns of a change and what they are called in the stream; the key is `key`."""
_NEEDED = {"sequence": "", "to_state": "", "at": "", "actor": "", "fence": "0"}
"""Columns that must have a value, and what stands in for one that a script left out."""
MOMENT = "_at"


class Misshapen(ValueError):
    """An entry that cannot be a row; the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: its place in the stream, its row, and the row of the whole record where that ended."""

    id: str
    key: str
    sequence: int
    change: Sequence[Any]
    ended: Sequence[Any] | None = None


class Shape:
    """How the entries of one entity become rows."""

    def __init__(self, lifecycle: Lifecycle, changes: Statement, ended: Statement) -> None:
        self._entity = lifecycle.entity
        self._key = lifecycle.key
        self._changes = [(name, _CONVERSIONS[kind]) for name, kind in changes.takes.items()]
        self._ended = [(name, _CONVERSIONS[kind]) for name, kind in ended.takes.items()]

    def entry(self, number: str, fields: Mapping[str, str]) -> Entry:
        """The entry as rows; raises Misshapen if it cannot be."""
        try:
            if fields["entity"] != self._entity:
                raise Misshapen(f"it is about a {fields['entity']}")
            record = self._record(fields) if "record" in fields else None
            return Entry(number, fields["key"], int(fields["sequence"]), [*self._change(fields)], record)
        except Misshapen:
            raise
        except (KeyError, ValueError, OverflowError) as error:
            raise Misshapen(f"{type(error).__name__}: {error}") from None

    def _change(self, fields: Mapping[str, str]) -> Iterator[Any]:
        for column, convert in self._changes:
            if column == self._key:
                yield convert(fields["key"])
                continue
            text = fields.get(_FIELDS[column]) or _NEEDED.get(column)
            if text is None:
                yield None
            else:
                yield convert(text)

    def _record(self, fields: Mapping[str, str]) -> list[Any]:
        flat = json.loads(fields["record"])
        values = dict(zip(flat[::2], flat[1::2], strict=True))
        values[MOMENT] = fields["at"]
        return [
            None if (text := values.get(name)) is None else convert(text) for name, convert in self._ended
        ]


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows as the columns that a statement takes."""
    return [[row[number] for row in rows] for number in range(width)]


def moment(text: str) -> datetime:
    """Microseconds since the epoch as a time."""
    return _EPOCH + timedelta(microseconds=int(text))


def _text(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _number(text: str) -> int:
    number = int(text)
    if abs(number) > _LARGEST:
        raise ValueError(f"{text} is too large")
    return number


_CONVERSIONS: Mapping[str, Callable[[str], Any]] = {
    "text[]": _text,
    "json[]": _text,
    "bigint[]": _number,
    "integer[]": _number,
    "double precision[]": float,
    "boolean[]": lambda text: text == "true",
    "timestamptz[]": moment,
}
"""What the text of the stream becomes, by the type of the column."""
