"""Tables for a terminal of 80 columns: the first column wraps, numbers stay whole."""

from __future__ import annotations

from rich.table import Column, Table


def narrow_table(first: str, *numbers: str, title: str | None = None) -> Table:
    """Make a table without a frame, with one column of text and short columns of numbers."""
    return Table(
        Column(first, overflow="fold"),
        *(Column(name, justify="right", no_wrap=True) for name in numbers),
        title=title,
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
