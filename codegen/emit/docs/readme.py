"""The parts of README.md that come from the specs, between markers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from codegen.diagnostics import Diagnostic, Place
from codegen.emit.artefact import Artefact, fill
from codegen.emit.deploy.wiring import in_containers
from codegen.emit.docs import tables
from codegen.source.spec import Spec

PARTS = ("endpoints", "variables")
"""The parts of README.md that are generated."""


def emit(specs: Sequence[Spec], root: Path) -> Iterator[Artefact]:
    """README.md with its generated parts renewed; a project without one gets none."""
    path = root / "README.md"
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    for name, part in sections(specs).items():
        text = spliced(text, name, part)
    yield Artefact("README.md", text)


def sections(specs: Sequence[Spec]) -> dict[str, str]:
    """The text between `<!-- generated:NAME -->` and `<!-- /generated:NAME -->`, by NAME."""
    return {name: "\n".join(_part(name, spec) for spec in specs) for name in PARTS}


def _part(name: str, spec: Spec) -> str:
    return fill(f"docs/readme_{name}.md.j2", spec, tables=tables, in_containers=in_containers)


def spliced(text: str, name: str, part: str) -> str:
    """The text with one generated part renewed."""
    first, last = _markers(name)
    return re.sub(
        f"{re.escape(first)}.*?{re.escape(last)}",
        lambda _: f"{first}\n\n{part.strip()}\n\n{last}",
        text,
        flags=re.DOTALL,
    )


def missing_markers(root: Path) -> Iterator[Diagnostic]:
    """A complaint for each generated part that README.md has no place for."""
    path = root / "README.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else None
    for name in PARTS if text is not None else ():
        first, last = _markers(name)
        pairs = len(re.findall(f"{re.escape(first)}.*?{re.escape(last)}", text or "", re.DOTALL))
        if pairs != 1:
            message = f"README.md has {pairs} places for its generated {name}; it must be one."
            yield Diagnostic(
                Place("README.md", 1, 1), "E812", message, f"Put '{first}' and '{last}' where they go."
            )


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- generated:{name} -->", f"<!-- /generated:{name} -->"
