"""Loader of the generated statements of an entity, from its SQL file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from msgspec import Struct, field

from runtime.stores.postgres.schema.series import find_folder

_NAME = re.compile(r"^-- ([a-z][a-z0-9_]*)\((.*)\)$")
_CUT = re.compile(r"^-- cuts (\w+) to (\d+) bytes$")
_RENAMED = re.compile(r"^-- stores (\w+) as (\w+)$")


class Statement(Struct, frozen=True):
    """One statement: its text, its parameters in order, and the fields that it truncates."""

    name: str
    text: str
    takes: Mapping[str, str]
    """Names and types of parameters; names in capitals are variables."""
    cuts: Mapping[str, int] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Columns by field, where the names differ."""


@cache
def load_statements(series: str, entity: str) -> Mapping[str, Statement]:
    """Load the statements of an entity by name."""
    return parse_statements(find_folder(series).joinpath(f"{entity}.sql").read_text(encoding="utf-8"))


def parse_statements(text: str) -> dict[str, Statement]:
    """Parse a file of statements; a comment with the name and the parameters begins each."""
    found: dict[str, Statement] = {}
    name, takes, cuts, renamed, lines = "", "", dict[str, int](), dict[str, str](), list[str]()
    for line in [*text.splitlines(), "-- end()"]:
        if match := _NAME.match(line):
            if name:
                body = "\n".join(lines).strip().removesuffix(";")
                parameters = dict(part.split(" ", 1) for part in takes.split(", ") if part)
                found[name] = Statement(name, f"-- {name}\n{body}", parameters, cuts, renamed)
            name, takes, cuts, renamed, lines = match[1], match[2], {}, {}, []
        elif match := _CUT.match(line):
            cuts[match[1]] = int(match[2])
        elif match := _RENAMED.match(line):
            renamed[match[1]] = match[2]
        elif not line.startswith("--"):
            lines.append(line)
    return found
