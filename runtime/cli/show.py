"""Answers for people: a small table, with long bytes cut short and times as times."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Struct
from msgspec.structs import replace

from runtime.cli.columns import GAP, Ranking, choose_columns
from runtime.cli.descriptors import fields_of, is_list_of_messages
from runtime.model.system import System

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 200
_WIDEST = 100_000
_SECOND = "seconds"
_NARROW = 80
"""What a listing fits into where the width is not known."""
_BYTES_SHOWN = 16
_NOTHING = "-"


class Reading(Struct, frozen=True):
    """What the numbers of an answer mean: which are times, and what the value of an enum is called."""

    times: frozenset[str]
    word: Callable[[str, str], str]
    ranking: Ranking | None = None
    """Which fields come first where not all of them fit."""
    to_the: str = "milliseconds"
    """How exactly times are shown."""

    @classmethod
    def of(cls, system: System) -> Reading:
        """What a system's lifecycles stamp with a time, in milliseconds, and what its enums are called."""
        found: set[str] = set()
        for lifecycle in system.lifecycles.values():
            found.update(lifecycle.creation_stamps)
            for edge in lifecycle.edges.values():
                found.update(edge.stamps)
        return cls(frozenset(found), system.word, Ranking.of(system, frozenset(found)))


def show(answer: Message, reading: Reading, *, wide: bool = False) -> None:
    """Prints an answer: its own fields one below the other, and a table for each list of messages.

    A table has the columns that fit, unless it is to be wide; which are missing is told on standard error.
    """
    # Whoever asks for help or for JSON needs no tables, and they take long to load.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        # Into a pipe nothing is wrapped: whoever reads it wants a row on a line.
        console = Console(highlight=False, width=_WIDE)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(answer, reading):
        table.add_row(name, Text(value))
    if table.row_count:
        console.print(table)
    width = console.width if console.is_terminal else _NARROW
    left_out = 0
    for field in fields_of(answer):
        if is_list_of_messages(field):
            items = getattr(answer, field.name)
            columns = _columns(field, items, reading, None if wide else width)
            left_out += len(columns.all) - len(columns.shown)
            _print_listing(Console(highlight=False, width=_WIDEST) if wide else console, field, columns)
    if left_out:
        more = f"{left_out} more columns" if left_out > 1 else "1 more column"
        print(f"{more}: --wide shows all, and so does --json.", file=sys.stderr)


def _rows(message: Message, reading: Reading, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The fields of a message by name, with those of messages in it."""
    for field in fields_of(message):
        if is_list_of_messages(field):
            continue
        value = getattr(message, field.name)
        if field.message_type is None or field.is_repeated:
            yield f"{prefix}{field.name}", _text(field, value, reading)
        elif isinstance(value, Timestamp):
            seconds = value.seconds + value.nanos / 1e9 if message.HasField(field.name) else 0.0
            yield f"{prefix}{field.name}", _time(seconds, reading.to_the)
        elif message.HasField(field.name):
            yield from _rows(value, reading, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", _NOTHING


class _Columns(NamedTuple):
    """The rows of a listing, and which of their columns are shown."""

    rows: list[dict[str, str]]
    all: list[str]
    shown: list[str]


def _columns(field: FieldDescriptor, items: Any, reading: Reading, width: int | None) -> _Columns:
    if width is not None:
        reading = replace(reading, to_the=_SECOND)
    found = [dict(_rows(item, reading)) for item in items]
    names = list(dict.fromkeys(name for row in found for name in row))
    rows = [{name: row.get(name, _NOTHING) for name in names} for row in found]
    if not rows or width is None or reading.ranking is None or field.message_type is None:
        return _Columns(rows, names, names)
    return _Columns(rows, names, choose_columns(reading.ranking, field.message_type, rows, width, _NOTHING))


def _print_listing(console: Console, field: FieldDescriptor, columns: _Columns) -> None:
    from rich.table import Table
    from rich.text import Text

    if not columns.rows:
        console.print(f"{field.name}: none")
        return
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for name in columns.shown:
        table.add_column(name, overflow="fold")
    for row in columns.rows:
        table.add_row(*(Text(row[name]) for name in columns.shown))
    console.print(table)


def _text(field: FieldDescriptor, value: Any, reading: Reading) -> str:
    if field.is_repeated and field.message_type is not None:
        return ", ".join(f"{name}={each}" for name, each in sorted(value.items())) or _NOTHING
    if field.is_repeated:
        return ", ".join(_one(field, each, reading) for each in value) or _NOTHING
    return _one(field, value, reading)


def _one(field: FieldDescriptor, value: Any, reading: Reading) -> str:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return reading.word(field.enum_type.full_name, known.name) if known else str(value)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return "yes" if value else "no"
    if field.name in reading.times:
        return _time(value / 1000, reading.to_the)
    return str(value) if value != "" else _NOTHING


def _bytes(value: bytes) -> str:
    if not value:
        return _NOTHING
    start = value[:_BYTES_SHOWN].hex()
    return f"{len(value):,} bytes: {start}{'…' if len(value) > _BYTES_SHOWN else ''}"


def _time(seconds: float, to_the: str) -> str:
    if not seconds:
        return _NOTHING
    moment = datetime.fromtimestamp(seconds, UTC).astimezone()
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec=to_the)
