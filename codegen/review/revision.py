"""Specs and change records of a git revision."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from codegen.diagnostics import Diagnostic, SpecError
from codegen.language import FILES
from codegen.language.moved_storage import move_storage
from codegen.language.renamed_keys import rename_keys
from codegen.review.accepted import AcceptedForm
from codegen.review.record import FOLDER as RECORDS
from codegen.source.loader import examine
from codegen.source.spec import Spec
from codegen.source.yaml_reader import parse


class UnknownRevision(Exception):
    """A revision that the repository does not have."""


def resolve_revision(root: Path, revision: str) -> str:
    """Resolve a revision to its commit."""
    found = _run_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found is None:
        raise UnknownRevision(f"'{revision}' is no revision of the repository at {root}")
    return found.strip()


def load_form_at(root: Path, commit: str, system: str) -> AcceptedForm:
    """Load the spec of a system at a commit, if it was there; raises SpecError if it is not valid now."""
    texts = {name: _run_git(root, "show", f"{commit}:./spec/{system}/{name}.yaml") for name in FILES}
    if not any(texts.values()):
        return AcceptedForm()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "spec" / system
        folder.mkdir(parents=True)
        for name, text in texts.items():
            if text is not None:
                (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        # It was checked by the rules of its time; it need not satisfy those of today.
        spec, complaints = examine(folder, Path(scratch))
    if spec is None:
        raise SpecError([_add_commit(commit, each) for each in complaints])
    return AcceptedForm(spec, (), _list_renamed(spec))


def _list_renamed(spec: Spec) -> dict[str, list[str]]:
    """List the keys that had old names in the files of a spec."""
    texts = {name: parse(source.name, source.text)[0].data for name, source in spec.sources.items()}
    renamed = {name: words for name, data in texts.items() if (words := rename_keys(name, data))}
    for name, words in move_storage(texts).items():
        renamed[name] = [*renamed.get(name, ()), *words]
    return renamed


def list_systems_at(root: Path, commit: str) -> list[str]:
    """List the systems of a commit."""
    listed = _run_git(root, "ls-tree", "-r", "--name-only", commit, "./spec/") or ""
    paths = [Path(line) for line in listed.splitlines()]
    return sorted(path.parts[1] for path in paths if path.name == "system.yaml" and len(path.parts) == 3)


def list_records_at(root: Path, commit: str) -> set[str]:
    """List the names of the change records of a commit."""
    listed = _run_git(root, "ls-tree", "--name-only", commit, f"./{RECORDS}/") or ""
    return {Path(line).stem for line in listed.splitlines()}


def _add_commit(commit: str, each: Diagnostic) -> Diagnostic:
    return replace(each, place=replace(each.place, file=f"{commit[:12]}:{each.place.file}"))


def _run_git(root: Path, *arguments: str) -> str | None:
    """Run git and return its output; None if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
