"""Conditions as typed exceptions, soft outcomes as data, and log events."""

from __future__ import annotations

import string
from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    conditions = {
        name: (row, parse_placeholders(row.message or "")) for name, row in spec.hard_conditions.items()
    }
    soft = {name: row for name, row in spec.errors.conditions.items() if row.soft is not None}
    yield Artefact(
        f"generated/{spec.name}/errors.py",
        render_template("python/errors.py.j2", spec, conditions=conditions, soft=soft),
    )
    yield Artefact(f"generated/{spec.name}/events.py", render_template("python/events.py.j2", spec))


def parse_placeholders(message: str) -> list[str]:
    """Parse the names in a message template, each once, in their order."""
    return list(dict.fromkeys(name for _, name, _, _ in string.Formatter().parse(message) if name))
