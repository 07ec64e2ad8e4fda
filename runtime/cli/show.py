"""Answers for people: a small table, with long bytes cut short and times as times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from runtime.cli.descriptors import fields_of, is_list_of_messages
from runtime.frozen import dataclass
from runtime.tables import System

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 200
_BYTES_SHOWN = 16
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Reading:
    """What the numbers of an answer mean: which are times, and what the value of an enum is called."""

    times: frozenset[str]
    word: Callable[[str, str], str]

    @classmethod
    def of(cls, system: System) -> Reading:
        """What a system's lifecycles stamp with a time, in milliseconds, and what its enums are called."""
        found: set[str] = set()
        for lifecycle in system.lifecycles.values():
            found.update(lifecycle.creation_stamps)
            for edge in lifecycle.edges.values():
                found.update(edge.stamps)
        return cls(frozenset(found), system.word)


def show(answer: Message, reading: Reading) -> None:
    """Prints an answer: its own fields one below the other, and a table for each list of messages."""
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
    for field in fields_of(answer):
        if is_list_of_messages(field):
            console.print(_listing(field, getattr(answer, field.name), reading))


def _rows(message: Message, reading: Reading, prefix: str = "") -> Iterator[tuple[str, str]]:
    for field in fields_of(message):
        if is_list_of_messages(field):
            continue
        value = getattr(message, field.name)
        if field.message_type is None or field.is_repeated:
            yield f"{prefix}{field.name}", _text(field, value, reading)
        elif isinstance(value, Timestamp):
            seconds = value.seconds + value.nanos / 1e9 if message.HasField(field.name) else 0.0
            yield f"{prefix}{field.name}", _time(seconds)
        elif message.HasField(field.name):
            yield from _rows(value, reading, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", _NOTHING


def _listing(field: FieldDescriptor, items: Any, reading: Reading) -> Table | str:
    from rich.table import Table
    from rich.text import Text

    if not items:
        return f"{field.name}: none"
    table = Table(box=None, pad_edge=False)
    rows = [dict(_rows(item, reading)) for item in items]
    for name in rows[0]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(value) for value in row.values()))
    return table


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
        return _time(value / 1000)
    return str(value) if value != "" else _NOTHING


def _bytes(value: bytes) -> str:
    if not value:
        return _NOTHING
    start = value[:_BYTES_SHOWN].hex()
    return f"{len(value):,} bytes: {start}{'…' if len(value) > _BYTES_SHOWN else ''}"


def _time(seconds: float) -> str:
    if not seconds:
        return _NOTHING
    moment = datetime.fromtimestamp(seconds, UTC).astimezone()
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
