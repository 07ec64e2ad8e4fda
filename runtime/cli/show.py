"""Print answers as tables, with long bytes truncated and times formatted."""

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
from runtime.cli.descriptors import fields_of, is_message_list
from runtime.model.system import System

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 200
_WIDEST = 100_000
_SECOND = "seconds"
_NARROW = 80
"""Width of a listing where that of the terminal is not known."""
_BYTES_SHOWN = 16
_NOTHING = "-"


class AnswerFormat(Struct, frozen=True):
    """The format of a response: the fields with times, and the names of enum values."""

    times: frozenset[str]
    word: Callable[[str, str], str]
    ranking: Ranking | None = None
    """The rank of fields, where not all of them fit."""
    precision: str = "milliseconds"
    """The precision of times."""

    @classmethod
    def of(cls, system: System) -> AnswerFormat:
        """Make the format of a system: its stamps in milliseconds, and the names of its enum values."""
        found: set[str] = set()
        for lifecycle in system.lifecycles.values():
            found.update(lifecycle.creation_stamps)
            for edge in lifecycle.edges.values():
                found.update(edge.stamps)
        return cls(frozenset(found), system.word, Ranking.of(system, frozenset(found)))


def show(answer: Message, answer_format: AnswerFormat, *, wide: bool = False) -> None:
    """Print an answer: its fields one below the other, and a table for each list of messages.

    A table has the columns that fit, unless it is wide; the number of others goes to standard error.
    """
    # The library takes long to import, and help and JSON need no tables.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        # A pipe gets no wrapped lines: one row is one line.
        console = Console(highlight=False, width=_WIDE)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _list_rows(answer, answer_format):
        table.add_row(name, Text(value))
    if table.row_count:
        console.print(table)
    width = console.width if console.is_terminal else _NARROW
    left_out = 0
    for field in fields_of(answer):
        if is_message_list(field):
            items = getattr(answer, field.name)
            columns = _make_columns(field, items, answer_format, None if wide else width)
            left_out += len(columns.all) - len(columns.shown)
            _print_listing(Console(highlight=False, width=_WIDEST) if wide else console, field, columns)
    if left_out:
        more = f"{left_out} more columns" if left_out > 1 else "1 more column"
        print(f"{more}: --wide shows all, and so does --json.", file=sys.stderr)


def _list_rows(message: Message, answer_format: AnswerFormat, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Iterate over the fields of a message by name, nested ones included."""
    for field in fields_of(message):
        if is_message_list(field):
            continue
        value = getattr(message, field.name)
        if field.message_type is None or field.is_repeated:
            yield f"{prefix}{field.name}", _format_field(field, value, answer_format)
        elif isinstance(value, Timestamp):
            seconds = value.seconds + value.nanos / 1e9 if message.HasField(field.name) else 0.0
            yield f"{prefix}{field.name}", _format_time(seconds, answer_format.precision)
        elif message.HasField(field.name):
            yield from _list_rows(value, answer_format, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", _NOTHING


class _Columns(NamedTuple):
    """The rows of a listing, all its columns, and those that are shown."""

    rows: list[dict[str, str]]
    all: list[str]
    shown: list[str]


def _make_columns(
    field: FieldDescriptor, items: Any, answer_format: AnswerFormat, width: int | None
) -> _Columns:
    if width is not None:
        answer_format = replace(answer_format, precision=_SECOND)
    found = [dict(_list_rows(item, answer_format)) for item in items]
    names = list(dict.fromkeys(name for row in found for name in row))
    rows = [{name: row.get(name, _NOTHING) for name in names} for row in found]
    if not rows or width is None or answer_format.ranking is None or field.message_type is None:
        return _Columns(rows, names, names)
    return _Columns(
        rows, names, choose_columns(answer_format.ranking, field.message_type, rows, width, _NOTHING)
    )


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


def _format_field(field: FieldDescriptor, value: Any, answer_format: AnswerFormat) -> str:
    if field.is_repeated and field.message_type is not None:
        return ", ".join(f"{name}={each}" for name, each in sorted(value.items())) or _NOTHING
    if field.is_repeated:
        return ", ".join(_format_one(field, each, answer_format) for each in value) or _NOTHING
    return _format_one(field, value, answer_format)


def _format_one(field: FieldDescriptor, value: Any, answer_format: AnswerFormat) -> str:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _format_bytes(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return answer_format.word(field.enum_type.full_name, known.name) if known else str(value)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return "yes" if value else "no"
    if field.name in answer_format.times:
        return _format_time(value / 1000, answer_format.precision)
    return str(value) if value != "" else _NOTHING


def _format_bytes(value: bytes) -> str:
    if not value:
        return _NOTHING
    start = value[:_BYTES_SHOWN].hex()
    return f"{len(value):,} bytes: {start}{'…' if len(value) > _BYTES_SHOWN else ''}"


def _format_time(seconds: float, precision: str) -> str:
    if not seconds:
        return _NOTHING
    moment = datetime.fromtimestamp(seconds, UTC).astimezone()
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec=precision)
