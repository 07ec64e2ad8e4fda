"""A script of an entity as a value, and the text of its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from codegen.emit.artefact import join_lines, render_template
from codegen.emit.redis.redis_entity import GIVEN, RedisEntity
from codegen.emit.redis.script_arguments import Layout, listed, quoted

INDENT = "  "
WIDTH = 110


@dataclass
class Script:
    """One script: where it comes from, what it is handed, and what it does."""

    name: str
    where: str
    doc: str
    template: str
    layout: Layout = field(default_factory=Layout)
    data: dict[str, Any] = field(default_factory=dict)


def text(entity: RedisEntity, script: Script) -> str:
    """The file of a script."""
    body = render_template(
        f"redis/{script.template}.lua.j2",
        entity.spec,
        entity=entity,
        layout=script.layout,
        quoted=quoted,
        GIVEN=GIVEN,
        listed=listed,
        **script.data,
    )
    header = [
        f"-- {entity.spec.folder}/lifecycle.yaml entities.{entity.name}{script.where}",
        f"-- {join_lines(script.doc)}",
        f"-- Generated from it (sha256:{entity.spec.digest[:16]}). Do not edit; run `nox -s generate`.",
        "--",
        *script.layout.header(),
    ]
    names = "\n".join(script.layout.prologue())
    return "\n".join((*header, "", names, laid_out(body), ""))


def laid_out(body: str) -> str:
    """The body with the indentation that its blocks ask for."""
    depth, lines = 0, list[str]()
    for raw in body.strip().splitlines():
        line = raw.strip()
        if not line:
            if lines and lines[-1]:
                lines.append("")
            continue
        closes = line.startswith(("end", "else", "elseif", "}", ")"))
        lines += _wrapped(line, INDENT * (depth - closes))
        depth += _opens(line)
    return "\n".join(lines)


def _wrapped(line: str, indent: str) -> Iterator[str]:
    """A line that is too long, broken after commas that stand in no text."""
    further = indent + INDENT * 2
    while len(indent) + len(line) > WIDTH:
        ends = [at for at in _commas(line) if len(indent) + at + 1 <= WIDTH]
        if not ends:
            break
        yield indent + line[: ends[-1] + 1]
        line, indent = line[ends[-1] + 2 :], further
    yield indent + line


def _commas(line: str) -> Iterator[int]:
    """Where a line has commas outside of texts, each with a blank behind it."""
    quoted_now = False
    for at, letter in enumerate(line):
        if letter == "'" and line[at - 1] != "\\":
            quoted_now = not quoted_now
        elif letter == "," and not quoted_now and line[at + 1 : at + 2] == " ":
            yield at


def _opens(line: str) -> int:
    """By how many blocks the following lines are deeper."""
    if line.startswith("--"):
        return 0
    if line.startswith(("else", "elseif")):
        return 0
    words = line.replace("(", " ( ").replace(")", " ) ").replace(",", " ").split()
    opened = words.count("then") + words.count("do") + words.count("function")
    return opened - words.count("end") - words.count("end)")
