"""The modules of specs that a test makes up: what is imported and run, and nothing else."""

from __future__ import annotations

from pathlib import Path

from codegen.diagnostics import render
from codegen.emit import emit_code
from codegen.emit.proto.stubs import compile_protos
from codegen.generate import load_all


def generate_modules(root: Path) -> None:
    """Write the code, the statements and the message classes of all specs of a project.

    A whole run takes five times as long: it formats them, and makes types, pages and manifests as well.
    """
    specs, complaints = load_all(root)
    assert not any(each.severity == "error" for each in complaints), render(complaints, "text")
    code = emit_code(specs)
    protos = [each for each in code if each.path.endswith(".proto")]
    for each in (*code, *compile_protos(protos, typed=False)):
        path = root / each.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(each.text, encoding="utf-8")
