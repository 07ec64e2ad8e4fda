"""Decoder of the entries of the outbox stream to rows of text: the database parses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import orjson
from msgspec import Struct

from runtime.model.lifecycles import Lifecycle
from runtime.stores.postgres.statements import Statement
from runtime.stores.redis.codec import unpack_fields

_CHANGE = {
    "sequence": b"sequence",
    "from_state": b"from",
    "to_state": b"to",
    "at": b"at",
    "actor": b"actor",
    "owner": b"owner",
    "fence": b"fence",
    "reason": b"reason",
    "trace": b"trace",
}
"""The fields of the stream by the columns of a change; the key is `key`."""
_DEFAULTS = {b"actor": "", b"fence": "0"}
"""Defaults of required fields that a script left out."""
_MOMENT = "_at"

_COLUMNS, _ROWS = b"columns", b"rows"
"""The fields of an entry with several changes: the columns that differ, and a row for each change."""

Row = Sequence[str | None]


class MalformedEntry(ValueError):
    """A malformed entry; the message says why."""


class OutboxEntry(Struct, frozen=True):
    """One change: its name in the stream, its row, and the row of the record if it has ended."""

    name: str
    key: str
    sequence: int
    change: Row
    ended: Row | None = None


class EntryShape:
    """The decoder of the entries of one entity."""

    def __init__(self, lifecycle: Lifecycle, changes: Statement, ended: Statement) -> None:
        self._entity = lifecycle.entity.encode()
        names = {"key": b"key", **_CHANGE}
        self._change = [(names[column], _DEFAULTS.get(names[column])) for column in changes.takes]
        self._record = [column for column in ended.takes if column != _MOMENT]

    def decode(self, name: str, fields: Mapping[bytes, bytes]) -> OutboxEntry:
        """Decode a change to rows; raises MalformedEntry."""
        try:
            if fields[b"entity"] != self._entity:
                raise MalformedEntry(f"it is about a {_decode_text(fields[b'entity'])}")
            change = [
                _decode_text(fields[each]) if fields.get(each) else other for each, other in self._change
            ]
            return OutboxEntry(
                name,
                _decode_text(fields[b"key"]),
                int(fields[b"sequence"]),
                change,
                self._decode_ended(fields) if b"record" in fields else None,
            )
        except MalformedEntry:
            raise
        except (KeyError, ValueError) as error:
            raise MalformedEntry(f"{type(error).__name__}: {error}") from None

    def _decode_ended(self, fields: Mapping[bytes, bytes]) -> Row:
        found = orjson.loads(_decode_text(fields[b"record"]))
        # A script that did not read the fields itself has them as the flat list of HGETALL.
        listed = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
        values = unpack_fields(listed)
        return [*(values.get(name) for name in self._record), _decode_text(fields[b"at"])]


def split_changes(fields: Mapping[bytes, bytes]) -> list[Mapping[bytes, bytes]]:
    """Split an entry into the fields of its changes; a malformed one gives its own fields."""
    if _ROWS not in fields:
        return [fields]
    shared = {name: text for name, text in fields.items() if name not in (_COLUMNS, _ROWS)}
    try:
        names = [*map(str.encode, orjson.loads(fields[_COLUMNS]))]
        rows = orjson.loads(_decode_text(fields[_ROWS]))
        return [{**shared, **dict(zip(names, map(_encode_value, row), strict=True))} for row in rows] or [
            fields
        ]
    except (KeyError, ValueError, TypeError):
        return [fields]


def encode_columns(rows: Sequence[Row]) -> list[str]:
    """Encode rows as columns, each the text of an array, which is the fastest form to encode and parse."""
    return [_encode_array(column) for column in zip(*rows, strict=True)]


def _encode_array(values: Iterable[str | None]) -> str:
    quoted = (
        "NULL"
        if value is None
        else f'"{value}"'
        if '"' not in value and "\\" not in value
        else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for value in values
    )
    # Text of the database must not have a NUL.
    return ("{" + ",".join(quoted) + "}").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _encode_value(value: object) -> bytes:
    """Encode a value as in an entry with one change."""
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def _decode_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
