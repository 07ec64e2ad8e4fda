"""Results on standard output: tables for people, JSON for programs, nothing that moves a cursor."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDE = 10_000
STYLES = {
    "Pending": "yellow",
    "Running": "cyan",
    "Completed": "green",
    "Failed": "red",
    "Archived": "dim",
    "active": "green",
    "stale": "red",
    "ok": "green",
    "wrong": "red",
}


def print_json(value: Any) -> None:
    """One JSON value on one line."""
    import orjson

    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


def print_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A row on a line; into a pipe nothing is cut off or wrapped."""
    from rich.table import Table

    console = _console()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title, no_wrap=not console.is_terminal, overflow="fold")
    for row in rows:
        table.add_row(*(_text(cell) for cell in row))
    _print(table, console)


def print_fields(fields: Mapping[str, object]) -> None:
    """Names and values, one below the other."""
    from rich.table import Table

    console = _console()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        table.add_row(name, _text(value))
    _print(table, console)


def say(message: str) -> None:
    """Something that is no result."""
    click.echo(message, err=True)


def short(value: object) -> str:
    """A value as people read it: JSON on one line, nothing as a dash."""
    if value is None or value == "":
        return "-"
    if isinstance(value, str):
        return value
    import orjson

    return orjson.dumps(value).decode()


def printable(value: object) -> str:
    """The same without what would move the cursor or begin a new line."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in short(value))


def ago(moment: str | None) -> str:
    """How long a time is past, or still ahead."""
    if not moment:
        return "-"
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if abs(seconds) >= size:
            return _directed(f"{abs(seconds) / size:.0f}{unit}", seconds)
    return _directed(f"{abs(seconds):.0f}s", seconds)


def _directed(span: str, seconds: float) -> str:
    return f"{span} ago" if seconds >= 0 else f"in {span}"


def _text(value: object) -> Any:
    from rich.text import Text

    shown = printable(value)
    return Text(shown, style=STYLES.get(shown, ""))


def _print(table: Table, console: Console) -> None:
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDE)
