"""Generation: load, check and render all specs, and only then write."""

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
from codegen.output import OWNED, Deviation, apply_deviations, find_deviations
from codegen.rules.cross_spec import find_clashes
from codegen.source.loader import examine
from codegen.source.spec import Spec

NOT_SYSTEMS = {"accepted", "changes", "schema"}
"""Folders of spec/ that are no specs."""
_STAMPED = b"<!-- Generated from spec/"


@dataclass(frozen=True, slots=True)
class GenerationResult:
    """The result of a run, and the time of its two halves."""

    diagnostics: Sequence[Diagnostic]
    deviations: Sequence[Deviation]
    files: int = 0
    render_seconds: float = 0.0
    protoc_seconds: float = 0.0


def list_spec_folders(root: Path) -> list[Path]:
    """List the folders of spec/ that are specs."""
    folders = (path for path in sorted((root / "spec").glob("*")) if path.is_dir())
    return [path for path in folders if path.name not in NOT_SYSTEMS and any(path.glob("*.yaml"))]


def load_all(root: Path) -> tuple[list[Spec], list[Diagnostic]]:
    """Load all specs and list all complaints about them."""
    specs: list[Spec] = []
    complaints: list[Diagnostic] = []
    for folder in list_spec_folders(root):
        spec, found = examine(folder, root)
        complaints += found
        if spec is not None:
            specs.append(spec)
    return specs, [*complaints, *find_clashes(specs)]


def build(root: Path) -> tuple[dict[str, str], GenerationResult]:
    """Render all files of all specs, or nothing if a spec is invalid."""
    started = time.perf_counter()
    specs, complaints = load_all(root)
    if any(each.severity == "error" for each in complaints):
        return {}, GenerationResult(complaints, ())
    artefacts = _render_artefacts(specs, root)
    rendered = time.perf_counter()
    stubs = list(compile_protos([each for each in artefacts if each.path.endswith(".proto")]))
    compiled = time.perf_counter()
    wanted = {each.path: each.text for each in (*artefacts, *stubs)}
    return wanted, GenerationResult(complaints, (), len(wanted), rendered - started, compiled - rendered)


def generate(root: Path, *, check: bool = False, style: str = "text") -> int:
    """Run the generator; returns 1 if a spec is invalid or, under `check`, a file is not fresh, else 0."""
    wanted, result = build(root)
    if result.diagnostics:
        print(render(result.diagnostics, style))
    if any(each.severity == "error" for each in result.diagnostics):
        return 1
    deviations = find_deviations(root, wanted, (*OWNED, *_list_pages(root)))
    if check and deviations:
        for each in deviations:
            print(each)
        print(f"{len(deviations)} of {result.files} generated files are not fresh.")
        return 1
    apply_deviations(root, wanted, deviations)
    cache.save_state(root)
    print(
        f"{result.files} files are fresh, {len(deviations)} of them changed: "
        f"rendered in {result.render_seconds:.2f} s, protoc took {result.protoc_seconds:.2f} s."
    )
    return 0


def _list_pages(root: Path) -> set[str]:
    """List the page and the folder of diagrams of each system, also of a removed one."""
    pages = root.glob(f"{reference.FOLDER}/*.md")
    stamped = {path.stem for path in pages if path.read_bytes().startswith(_STAMPED)}
    names = {*stamped, *(folder.name for folder in list_spec_folders(root))}
    return {f"{reference.FOLDER}/{name}{end}" for name in names for end in (".md", "")}


def _render_artefacts(specs: Sequence[Spec], root: Path) -> list[Artefact]:
    """Render all artefacts that need no protoc; ruff formats the code in parallel with the others."""
    with ThreadPoolExecutor(1) as executor:
        code = executor.submit(format_python, emit_code(specs))
        rest = emit_rest(specs, root)
        return [*code.result(), *rest]


def format_python(artefacts: Sequence[Artefact]) -> list[Artefact]:
    """Format the Python of artefacts with ruff."""
    python = [each for each in artefacts if each.path.endswith(".py")]
    with tempfile.TemporaryDirectory(prefix="charter-") as scratch:
        for each in python:
            path = Path(scratch, each.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each.text, encoding="utf-8")
        _run_ruff(
            scratch, "check", "--fix-only", "--select", "I,F401,RUF022", "--config", f"src=['{scratch}']"
        )
        _run_ruff(scratch, "format")
        formatted = {each.path: Path(scratch, each.path).read_text(encoding="utf-8") for each in python}
    return [Artefact(each.path, formatted.get(each.path, each.text)) for each in artefacts]


def _run_ruff(folder: str, command: str, *options: str) -> None:
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
