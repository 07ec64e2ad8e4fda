"""Many results, a line each, with a bar beside them where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.progress import Progress


class Results:
    """Where results go. On a terminal that shows the bar too, they go above it."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._is_above = progress is not None and sys.stdout.isatty()

    def line(self, text: str) -> None:
        """A result."""
        if self._progress is not None and self._is_above:
            self._progress.console.out(text, highlight=False)
        else:
            click.echo(text)

    def json(self, value: Any) -> None:
        """A result as JSON."""
        import orjson

        self.line(orjson.dumps(value).decode())

    def say(self, text: str) -> None:
        """Something that is no result."""
        if self._progress is not None:
            self._progress.console.out(text, highlight=False)
        else:
            click.echo(text, err=True)

    def advance(self) -> None:
        """One more is done."""
        if self._progress is not None:
            self._progress.advance(self._progress.task_ids[0])


@contextmanager
def looking() -> Iterator[None]:
    """Shows that something is going on that may take long, where somebody watches."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("looking through the tasks"):
        yield


@contextmanager
def results(total: int | None) -> Iterator[Results]:
    """Results of which there will be so many; the bar is on standard error, if that is a terminal."""
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
