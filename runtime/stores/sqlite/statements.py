"""The generated statements of an entity, read from the SQL file that has them all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- ([a-z][a-z0-9_]*)$")


@cache
def statements(system: str, entity: str) -> Mapping[str, str]:
    """Every statement of an entity by its name."""
    path = files(f"generated.{system}").joinpath("sqlite", f"{entity}.sql")
    return parsed(path.read_text(encoding="utf-8"))


def parsed(text: str) -> dict[str, str]:
    """The statements of a file; a comment with nothing but a name begins each."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if match := _NAME.match(line):
            name = match[1]
            found[name] = []
        elif name and line and not line.startswith("--"):
            found[name].append(line)
    return {name: "\n".join(lines).removesuffix(";") for name, lines in found.items()}
