"""The generated statements of an entity, read from the SQL file that has them all."""

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
    """One statement: its text, what it takes in order, and texts that it keeps only the beginning of."""

    name: str
    text: str
    takes: Mapping[str, str]
    """Names and types; names in capitals are variables."""
    cuts: Mapping[str, int] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Columns that are not called like their fields, by the latter."""


@cache
def statements(series: str, entity: str) -> Mapping[str, Statement]:
    """Every statement of an entity by its name."""
    return parsed(find_folder(series).joinpath(f"{entity}.sql").read_text(encoding="utf-8"))


def parsed(text: str) -> dict[str, Statement]:
    """The statements of a file; a comment with a name and what it takes begins each."""
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
