"""Specs in, files out: load everything, check everything, render everything, and only then write."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ruff.__main__ import find_ruff_bin

from codegen import cache
from codegen.diagnostics import Diagnostic, render
from codegen.emit import emit_code, emit_rest
from codegen.emit.artefact import Artefact
from codegen.emit.docs import reference
from codegen.emit.proto.stubs import compile_protos
from codegen.output import OWNED, Deviation, apply, compare
from codegen.rules.cross_spec import find_clashes
from codegen.source.loader import examine
from codegen.source.spec import Spec

NOT_SYSTEMS = {"accepted", "changes", "schema"}
"""Folders of spec/ that hold no spec."""
_STAMPED = b"<!-- Generated from spec/"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found and how long its two halves took."""

    diagnostics: Sequence[Diagnostic]
    deviations: Sequence[Deviation]
    files: int = 0
    render_seconds: float = 0.0
    protoc_seconds: float = 0.0


def spec_folders(root: Path) -> list[Path]:
    """Every folder of spec/ that is meant to be a spec."""
    folders = (path for path in sorted((root / "spec").glob("*")) if path.is_dir())
    return [path for path in folders if path.name not in NOT_SYSTEMS and any(path.glob("*.yaml"))]


def load_all(root: Path) -> tuple[list[Spec], list[Diagnostic]]:
    """Every spec and everything that is wrong with them."""
    specs: list[Spec] = []
    complaints: list[Diagnostic] = []
    for folder in spec_folders(root):
        spec, found = examine(folder, root)
        complaints += found
        if spec is not None:
            specs.append(spec)
    return specs, [*complaints, *find_clashes(specs)]


def build(root: Path) -> tuple[dict[str, str], Outcome]:
    """Renders all files of all specs, or nothing when a spec is wrong."""
    started = time.perf_counter()
    specs, complaints = load_all(root)
    if any(each.severity == "error" for each in complaints):
        return {}, Outcome(complaints, ())
    artefacts = _rendered(specs, root)
    rendered = time.perf_counter()
    stubs = list(compile_protos([each for each in artefacts if each.path.endswith(".proto")]))
    compiled = time.perf_counter()
    wanted = {each.path: each.text for each in (*artefacts, *stubs)}
    return wanted, Outcome(complaints, (), len(wanted), rendered - started, compiled - rendered)


def generate(root: Path, *, check: bool = False, style: str = "text") -> int:
    """The whole run; 0 when all is well, 1 when a spec is wrong or, under `check`, a file is not fresh."""
    wanted, outcome = build(root)
    if outcome.diagnostics:
        print(render(outcome.diagnostics, style))
    if any(each.severity == "error" for each in outcome.diagnostics):
        return 1
    deviations = compare(root, wanted, (*OWNED, *_pages(root)))
    if check and deviations:
        for each in deviations:
            print(each)
        print(f"{len(deviations)} of {outcome.files} generated files are not fresh.")
        return 1
    apply(root, wanted, deviations)
    cache.remember(root)
    print(
        f"{outcome.files} files are fresh, {len(deviations)} of them changed: "
        f"rendered in {outcome.render_seconds:.2f} s, protoc took {outcome.protoc_seconds:.2f} s."
    )
    return 0


def _pages(root: Path) -> set[str]:
    """The page of each system and the folder of its pictures, also of a system that is gone."""
    pages = root.glob(f"{reference.FOLDER}/*.md")
    stamped = {path.stem for path in pages if path.read_bytes().startswith(_STAMPED)}
    names = {*stamped, *(folder.name for folder in spec_folders(root))}
    return {f"{reference.FOLDER}/{name}{end}" for name in names for end in (".md", "")}


def _rendered(specs: Sequence[Spec], root: Path) -> list[Artefact]:
    """What needs no compiler. Ruff is a process of its own, so the other artefacts are made beside it."""
    with ThreadPoolExecutor(1) as beside:
        code = beside.submit(formatted, emit_code(specs))
        rest = emit_rest(specs, root)
        return [*code.result(), *rest]


def formatted(artefacts: Sequence[Artefact]) -> list[Artefact]:
    """The artefacts with their Python as ruff writes it."""
    python = [each for each in artefacts if each.path.endswith(".py")]
    with tempfile.TemporaryDirectory(prefix="charter-") as scratch:
        for each in python:
            path = Path(scratch, each.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each.text, encoding="utf-8")
        _ruff(scratch, "check", "--fix-only", "--select", "I,F401,RUF022", "--config", f"src=['{scratch}']")
        _ruff(scratch, "format")
        pretty = {each.path: Path(scratch, each.path).read_text(encoding="utf-8") for each in python}
    return [Artefact(each.path, pretty.get(each.path, each.text)) for each in artefacts]


def _ruff(folder: str, command: str, *options: str) -> None:
    style = [
        "--config",
        "line-length=110",
        "--config",
        "lint.isort.known-first-party=['generated','runtime']",
    ]
    arguments = [find_ruff_bin(), command, "--isolated", "--no-cache", *style, *options, folder]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"A template makes Python that ruff does not accept:\n{done.stdout}{done.stderr}")
