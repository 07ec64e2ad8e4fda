"""Markdown of GitHub and GitLab: tables and the content of their cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTHING = ""


def format_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table, or nothing if it has no rows; columns that are empty in every row are left out."""
    body = [list(row) for row in rows]
    used = [index for index in range(len(headers)) if any(row[index] for row in body)]
    if not body:
        return NOTHING
    lines = [[headers[index] for index in used], ["---"] * len(used)]
    lines += [[_escape_cell(row[index]) for index in used] for row in body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(value: object) -> str:
    """Format a value as code, or nothing for an empty one."""
    text = str(value)
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if text else NOTHING


def codes(values: Iterable[object]) -> str:
    return ", ".join(code(value) for value in values)


def prose(text: str | None) -> str:
    """Format a text of a spec on one line, with HTML escaped."""
    return " ".join((text or NOTHING).replace("&", "&amp;").replace("<", "&lt;").split())


def format_duration(milliseconds: int) -> str:
    """Format `1500` as `1.5 s`."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}".rstrip("0").rstrip(".") + " s"


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
