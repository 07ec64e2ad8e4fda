"""Projects to generate into: a folder with copies of specs and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[3]
TASKQUEUE = ROOT / "spec/taskqueue"
LOCKER = ROOT / "tests/specs/locker"
BAKERY = ROOT / "tests/specs/bakery"
"""A system whose entities PostgreSQL keeps; those of the locker live in memory."""
RENTAL = ROOT / "tests/specs/rental"
"""A system whose entities Redis keeps, with every word that there is for it."""
LAUNDRY = ROOT / "tests/specs/laundry"
"""A system whose entities a SQLite file keeps, with every word that there is for it."""


def project(root: Path, specs: Iterable[Path] = (TASKQUEUE,)) -> Path:
    """Create a project with these specs."""
    for spec in specs:
        shutil.copytree(spec, root / "spec" / spec.name)
    return root


def snapshot(root: Path, *, without: Iterable[str] = (".charter",)) -> dict[str, bytes]:
    """Every file of a project with its bytes, without the generator's own notes."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in without
    }


def edit(path: Path, old: str, new: str) -> None:
    """Change one place of a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new), encoding="utf-8")
