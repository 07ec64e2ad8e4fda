"""Print many results, a line each, with a progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.progress import Progress


class Results:
    """The output of results. On a terminal that also shows the bar, they go above it."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._prints_above_bar = progress is not None and sys.stdout.isatty()

    def print_line(self, text: str) -> None:
        """Print a result."""
        if self._progress is not None and self._prints_above_bar:
            self._progress.console.out(text, highlight=False)
        else:
            click.echo(text)

    def print_json(self, value: Any) -> None:
        """Print a result as JSON."""
        import orjson

        self.print_line(orjson.dumps(value).decode())

    def print_message(self, text: str) -> None:
        """Print a message that is no result."""
        if self._progress is not None:
            self._progress.console.out(text, highlight=False)
        else:
            click.echo(text, err=True)

    def advance(self) -> None:
        """Advance the bar by one."""
        if self._progress is not None:
            self._progress.advance(self._progress.task_ids[0])


@contextmanager
def show_busy() -> Iterator[None]:
    """Show a spinner during a long operation, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("looking through the tasks"):
        yield


@contextmanager
def open_results(total: int | None) -> Iterator[Results]:
    """Open an output for `total` results; the bar is on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield Results(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("tasks"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False) as progress:
        progress.add_task("tasks", total=total)
        yield Results(progress)
