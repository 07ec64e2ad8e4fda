"""Markdown that a forge renders: tables and the inside of their cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTHING = ""


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing if it would be empty; columns that no row fills are left out."""
    body = [list(row) for row in rows]
    used = [index for index in range(len(headers)) if any(row[index] for row in body)]
    if not body:
        return NOTHING
    lines = [[headers[index] for index in used], ["---"] * len(used)]
    lines += [[_cell(row[index]) for index in used] for row in body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(value: object) -> str:
    """A value as code, or nothing for an empty one."""
    text = str(value)
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if text else NOTHING


def codes(values: Iterable[object]) -> str:
    return ", ".join(code(value) for value in values)


def prose(text: str | None) -> str:
    """Text from a spec, on one line, that is never taken for HTML."""
    return " ".join((text or NOTHING).replace("&", "&amp;").replace("<", "&lt;").split())


def duration(milliseconds: int) -> str:
    """`1500` -> `1.5 s`."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}".rstrip("0").rstrip(".") + " s"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
