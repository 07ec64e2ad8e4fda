"""The generated statements of an entity, read from the SQL file that has them all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

RECORD, EQUAL = "record_", "equal_"
"""What parameters begin with: fields of the record that are written, and those that are compared."""
_NAME = re.compile(r"^-- ([a-z][a-z0-9_]*)$")


class Statements:
    """The statements of one entity by their names."""

    def __init__(self, text: str) -> None:
        self._named = parse_statements(text)
        self._composed: dict[tuple[str, ...], str] = {}
        select = self._named["get"]
        selected = select[len("SELECT ") : select.index(" FROM ")].split(", ")
        self.columns = tuple(each.strip('"') for each in selected)
        """The fields of a record in the order in which every statement returns them."""
        self._quoted = dict(zip(self.columns, selected, strict=True))

    def __contains__(self, name: object) -> bool:
        return name in self._named

    def __getitem__(self, name: str) -> str:
        return self._named[name]

    def column(self, field: str) -> str:
        """Return the column of a field, as SQL says it."""
        return self._quoted[field]

    def write(self, fields: Iterable[str]) -> str:
        """Return the statement that writes some fields."""
        fields = ("write", *fields)
        composed = self._composed.get(fields)
        if composed is None:
            changes = ", ".join(f"{self._quoted[name]} = :{RECORD}{name}" for name in fields[1:])
            composed = self._composed[fields] = self._named["write"].replace("{changes}", changes)
        return composed

    def find(self, name: str, conditions: Iterable[str]) -> str:
        """Return the statement of a listing under some conditions."""
        return self._named[name].replace("{filters}", " AND ".join(conditions) or "1")


@cache
def read_statements(system: str, entity: str) -> Statements:
    """Read the statements of an entity."""
    path = files(f"generated.{system}").joinpath("sqlite", f"{entity}.sql")
    return Statements(path.read_text(encoding="utf-8"))


def parse_statements(text: str) -> Mapping[str, str]:
    """Parse the statements of a file; a comment with nothing but a name begins each."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if match := _NAME.match(line):
            name = match[1]
            found[name] = []
        elif name and line and not line.startswith("--"):
            found[name].append(line)
    return {name: "\n".join(lines).removesuffix(";") for name, lines in found.items()}
