"""Words that could collide with a field's name: all names of generated statements and scripts."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from pathlib import Path

_COMMENT = re.compile(r"--[^\n]*")
_TEXT = re.compile(r"'[^'\n]*'")
_WORD = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)*\b")
_PARAMETER = re.compile(r"[(,] ?([a-z][a-z0-9_]*) ")
_FIELD = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

SQLITE_KEYWORDS = """
abort action add after all alter always analyze and as asc attach autoincrement before begin between by
cascade case cast check collate column commit conflict constraint create cross current current_date
current_time current_timestamp database default deferrable deferred delete desc detach distinct do drop
each else end escape except exclude exclusive exists explain fail filter first following for foreign from
full generated glob group groups having if ignore immediate in index indexed initially inner insert
instead intersect into is isnull join key last left like limit match materialized natural no not nothing
notnull null nulls of offset on or order others outer over partition plan pragma preceding primary query
raise range recursive references regexp reindex release rename replace restrict returning right rollback
row rows savepoint select set table temp temporary then ties to transaction trigger unbounded union
unique update using vacuum values view virtual when where window with without rowid oid strict
""".split()  # noqa: SIM905
"""The keywords of SQLite, and the names that every table has for its rows."""


def words_of(texts: Iterable[str]) -> set[str]:
    """Every name that SQL or Lua has outside of its texts, and every parameter, where it can be a field's."""
    found: set[str] = set()
    for text in texts:
        found |= {name for line in _COMMENT.findall(text) for name in _PARAMETER.findall(line)}
        found |= {*_WORD.findall(_TEXT.sub("", _COMMENT.sub("", text)))}
    return fields_of(found)


def fields_of(words: Iterable[str]) -> set[str]:
    """Those words that the language accepts as the name of a field."""
    return {each for each in words if _FIELD.fullmatch(each) and not keyword.iskeyword(each)}


def texts_below(folder: Path, *endings: str) -> list[str]:
    """The texts of all files in a folder whose names end so."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in endings)
    return [path.read_text(encoding="utf-8") for path in paths]
