"""Print results on standard output: tables for people, JSON for programs, no cursor movements."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPE_WIDTH = 10_000
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
    """Print one JSON value on one line."""
    import orjson

    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


def print_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, a row on a line; into a pipe nothing is cut off or wrapped."""
    from rich.table import Table

    console = _create_console()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title, no_wrap=not console.is_terminal, overflow="fold")
    for row in rows:
        table.add_row(*(_to_text(cell) for cell in row))
    _print_rows(table, console)


def print_fields(fields: Mapping[str, object]) -> None:
    """Print names and values, one below the other."""
    from rich.table import Table

    console = _create_console()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields.items():
        table.add_row(name, _to_text(value))
    _print_rows(table, console)


def print_message(message: str) -> None:
    """Print a message that is no result on standard error."""
    click.echo(message, err=True)


def format_value(value: object) -> str:
    """Format a value for people: JSON on one line, an empty value as a dash."""
    if value is None or value == "":
        return "-"
    if isinstance(value, str):
        return value
    import orjson

    return orjson.dumps(value).decode()


def format_printable(value: object) -> str:
    """Format a value without control characters, which would move the cursor or begin a new line."""
    return "".join(
        each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in format_value(value)
    )


def format_age(timestamp: str | None) -> str:
    """Format a time relative to now, past or future."""
    if not timestamp:
        return "-"
    seconds = (datetime.now(UTC) - datetime.fromisoformat(timestamp)).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if abs(seconds) >= size:
            return _add_direction(f"{abs(seconds) / size:.0f}{unit}", seconds)
    return _add_direction(f"{abs(seconds):.0f}s", seconds)


def _add_direction(duration: str, seconds: float) -> str:
    return f"{duration} ago" if seconds >= 0 else f"in {duration}"


def _to_text(value: object) -> Any:
    from rich.text import Text

    text = format_printable(value)
    return Text(text, style=STYLES.get(text, ""))


def _print_rows(table: Table, console: Console) -> None:
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _create_console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE_WIDTH)
