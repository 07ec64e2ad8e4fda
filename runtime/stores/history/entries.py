"""Entries of the stream as rows: Redis has text only, and the database is given it as text, too."""

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
"""The columns of a change and what they are called in the stream; the key is `key`."""
_INSTEAD = {b"actor": "", b"fence": "0"}
"""What stands in for something that a script left out and that must be there."""
_MOMENT = "_at"

_COLUMNS, _ROWS = b"columns", b"rows"
"""Under these an entry has what is not the same for all of its changes, a row for each."""

Row = Sequence[str | None]


class Misshapen(ValueError):
    """An entry that cannot be a row; the message says why."""


class OutboxEntry(Struct, frozen=True):
    """One change: its name in the stream, its row, and the row of the whole record where that ended."""

    name: str
    key: str
    sequence: int
    change: Row
    ended: Row | None = None


class EntryShape:
    """How the entries of one entity become rows."""

    def __init__(self, lifecycle: Lifecycle, changes: Statement, ended: Statement) -> None:
        self._entity = lifecycle.entity.encode()
        names = {"key": b"key", **_CHANGE}
        self._change = [(names[column], _INSTEAD.get(names[column])) for column in changes.takes]
        self._record = [column for column in ended.takes if column != _MOMENT]

    def entry(self, name: str, fields: Mapping[bytes, bytes]) -> OutboxEntry:
        """The change as rows; raises Misshapen if it cannot be."""
        try:
            if fields[b"entity"] != self._entity:
                raise Misshapen(f"it is about a {_text(fields[b'entity'])}")
            change = [_text(fields[each]) if fields.get(each) else other for each, other in self._change]
            return OutboxEntry(
                name,
                _text(fields[b"key"]),
                int(fields[b"sequence"]),
                change,
                self._ended(fields) if b"record" in fields else None,
            )
        except Misshapen:
            raise
        except (KeyError, ValueError) as error:
            raise Misshapen(f"{type(error).__name__}: {error}") from None

    def _ended(self, fields: Mapping[bytes, bytes]) -> Row:
        found = orjson.loads(_text(fields[b"record"]))
        # Where a script had no need of all fields before, it has them as the server lists them.
        listed = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
        values = unpack_fields(listed)
        return [*(values.get(name) for name in self._record), _text(fields[b"at"])]


def apart(fields: Mapping[bytes, bytes]) -> list[Mapping[bytes, bytes]]:
    """The fields of each change of an entry; where they cannot be told apart, those of the entry."""
    if _ROWS not in fields:
        return [fields]
    shared = {name: text for name, text in fields.items() if name not in (_COLUMNS, _ROWS)}
    try:
        names = [*map(str.encode, orjson.loads(fields[_COLUMNS]))]
        rows = orjson.loads(_text(fields[_ROWS]))
        return [{**shared, **dict(zip(names, map(_bytes, row), strict=True))} for row in rows] or [fields]
    except (KeyError, ValueError, TypeError):
        return [fields]


def columns(rows: Sequence[Row]) -> list[str]:
    """Rows as columns, each the text of an array: the database reads that much faster than it is encoded."""
    return [_array(column) for column in zip(*rows, strict=True)]


def _array(values: Iterable[str | None]) -> str:
    quoted = (
        "NULL"
        if value is None
        else f'"{value}"'
        if '"' not in value and "\\" not in value
        else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for value in values
    )
    # There is no NUL in any text of the database.
    return ("{" + ",".join(quoted) + "}").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _bytes(value: object) -> bytes:
    """A value as it would stand in an entry of its own."""
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
