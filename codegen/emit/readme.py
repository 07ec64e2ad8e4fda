"""The parts of README.md that come from the specs, between markers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from codegen.emit import tables
from codegen.emit.artefact import Artefact, fill
from codegen.spec import Spec


class MarkerMissing(Exception):
    """README.md has no place for a generated part."""


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
    return {
        name: "\n".join(fill(f"docs/readme_{name}.md.j2", spec, tables=tables) for spec in specs)
        for name in ("endpoints", "variables")
    }


def spliced(text: str, name: str, part: str) -> str:
    """The text with one generated part renewed."""
    first, last = f"<!-- generated:{name} -->", f"<!-- /generated:{name} -->"
    new, found = re.subn(
        f"{re.escape(first)}.*?{re.escape(last)}",
        lambda _: f"{first}\n\n{part.strip()}\n\n{last}",
        text,
        flags=re.DOTALL,
    )
    if found != 1:
        raise MarkerMissing(f"README.md needs one '{first}' and one '{last}', and has {found} such pairs.")
    return new
