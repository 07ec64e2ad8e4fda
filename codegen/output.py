"""Generated files on disk: find stale, missing and orphan files, and write or delete them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

OWNED = ("proto", "generated", "spec/schema")
"""Folders with generated files only: any other file there is an orphan."""
SHARED = ("docs",)
"""Folders with both generated and hand-written files."""
_IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache"}
_SETTINGS_OF_USERS = ".env"
"""Compose reads it from the folder of the compose file; it belongs to the user."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A file that differs from the generated one: its path, and stale, missing or orphan."""

    path: str
    kind: str

    def __str__(self) -> str:
        return f"{self.path}: {_SENTENCES[self.kind]} Run `nox -s generate`."


_SENTENCES = {
    "stale": "this generated file differs from what the specs say.",
    "missing": "this generated file is missing.",
    "orphan": "no spec generates this file, and the folder is for generated files only.",
}


def find_deviations(root: Path, wanted: Mapping[str, str], owned: Iterable[str] = OWNED) -> list[Deviation]:
    """Find the files that have to change on disk, sorted by path."""
    found = [
        Deviation(path, "missing" if not (root / path).is_file() else "stale")
        for path, text in wanted.items()
        if not _has_content(root / path, text)
    ]
    found += [Deviation(path, "orphan") for path in iter_files(root, owned) if path not in wanted]
    return sorted(found, key=lambda each: each.path)


def apply_deviations(root: Path, wanted: Mapping[str, str], deviations: Iterable[Deviation]) -> None:
    """Write or delete all deviating files. New texts are complete on disk before the first is replaced."""
    deviations = list(deviations)
    for each in deviations:
        _refuse_outside(root, each.path)
    with tempfile.TemporaryDirectory(prefix=".charter-", dir=root) as staging:
        staged: list[tuple[Path, Path]] = []
        for number, each in enumerate(deviations):
            if each.kind != "orphan":
                new = Path(staging, str(number))
                new.write_bytes(wanted[each.path].encode())
                staged.append((new, root / each.path))
        for new, target in staged:
            target.parent.mkdir(parents=True, exist_ok=True)
            new.replace(target)
    for each in deviations:
        if each.kind == "orphan":
            (root / each.path).unlink()
            _remove_empty(root, (root / each.path).parent)


def iter_files(root: Path, folders: Iterable[str] = OWNED) -> Iterator[str]:
    """Iterate over the files below some folders or at some paths, relative to the root, without caches."""
    for folder in folders:
        if (root / folder).is_file():
            yield folder
        for directory, subfolders, files in os.walk(root / folder):
            subfolders[:] = sorted(set(subfolders) - _IGNORED)
            for name in sorted(set(files) - {_SETTINGS_OF_USERS}):
                yield Path(directory, name).relative_to(root).as_posix()


def _has_content(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False


def _refuse_outside(root: Path, path: str) -> None:
    target = (root / path).resolve()
    allowed = [(root / place).resolve() for place in (*OWNED, *SHARED)]
    if not any(target == place or place in target.parents for place in allowed):
        raise ValueError(f"{path} is outside the folders for generated files: {', '.join((*OWNED, *SHARED))}")


def _remove_empty(root: Path, folder: Path) -> None:
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
