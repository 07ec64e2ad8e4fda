"""Specs and records as a git revision has them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from codegen.diagnostics import Diagnostic, SpecError
from codegen.language import FILES
from codegen.review.record import FOLDER as RECORDS
from codegen.source.loader import examine
from codegen.source.spec import Spec


class NoRevision(Exception):
    """The revision that was asked for is not there."""


def resolve(root: Path, revision: str) -> str:
    """The commit of a revision."""
    found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found is None:
        raise NoRevision(f"'{revision}' is no revision of the repository at {root}")
    return found.strip()


def spec_at(root: Path, commit: str, system: str) -> Spec | None:
    """The spec of a system at a commit, None if it was not there; SpecError if it cannot be read now."""
    texts = {name: _git(root, "show", f"{commit}:./spec/{system}/{name}.yaml") for name in FILES}
    if not any(texts.values()):
        return None
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "spec" / system
        folder.mkdir(parents=True)
        for name, text in texts.items():
            if text is not None:
                (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        # Its rules were checked when it was written; today's need not hold for it.
        spec, complaints = examine(folder, Path(scratch))
    if spec is None:
        raise SpecError([_as_of(commit, each) for each in complaints])
    return spec


def systems_at(root: Path, commit: str) -> list[str]:
    """The systems that were there at a commit."""
    listed = _git(root, "ls-tree", "-r", "--name-only", commit, "./spec/") or ""
    paths = [Path(line) for line in listed.splitlines()]
    return sorted(path.parts[1] for path in paths if path.name == "system.yaml" and len(path.parts) == 3)


def records_at(root: Path, commit: str) -> set[str]:
    """The names of the records that were there at a commit."""
    listed = _git(root, "ls-tree", "--name-only", commit, f"./{RECORDS}/") or ""
    return {Path(line).stem for line in listed.splitlines()}


def _as_of(commit: str, each: Diagnostic) -> Diagnostic:
    return replace(each, place=replace(each.place, file=f"{commit[:12]}:{each.place.file}"))


def _git(root: Path, *arguments: str) -> str | None:
    """What git says, None if it fails or is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
