"""The parts of the README that come from specs: where nodes are found, and what they are told."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.emit import tables
from codegen.emit.artefact import fill
from codegen.spec import Spec


def sections(specs: Sequence[Spec]) -> dict[str, str]:
    """The text between `<!-- generated:NAME -->` and `<!-- /generated:NAME -->`, by NAME."""
    return {
        name: "\n".join(fill(f"docs/readme_{name}.md.j2", spec, tables=tables) for spec in specs)
        for name in ("endpoints", "variables")
    }
