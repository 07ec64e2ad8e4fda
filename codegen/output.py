"""Generated files on disk: what is stale, missing or an orphan, and how to put it right."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

OWNED = ("proto", "generated", "spec/schema")
"""Folders that hold generated files only: whatever else is in there is an orphan."""
SHARED = ("docs",)
"""Folders where generated files stand beside written ones."""
_IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache"}
_SETTINGS_OF_USERS = ".env"
"""Compose reads it from beside the compose file; it is no more ours to delete than to write."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A file that is not as the specs want it."""

    path: str
    kind: str

    def __str__(self) -> str:
        return f"{self.path}: {_SENTENCES[self.kind]} Run `nox -s generate`."


_SENTENCES = {
    "stale": "this generated file differs from what the specs say.",
    "missing": "this generated file is missing.",
    "orphan": "no spec generates this file, and the folder is for generated files only.",
}


def compare(root: Path, wanted: Mapping[str, str], owned: Iterable[str] = OWNED) -> list[Deviation]:
    """What has to change on disk, sorted by path."""
    found = [
        Deviation(path, "missing" if not (root / path).is_file() else "stale")
        for path, text in wanted.items()
        if not _holds(root / path, text)
    ]
    found += [Deviation(path, "orphan") for path in present(root, owned) if path not in wanted]
    return sorted(found, key=lambda each: each.path)


def apply(root: Path, wanted: Mapping[str, str], deviations: Iterable[Deviation]) -> None:
    """Puts every deviation right. New texts are complete on disk before the first file is replaced."""
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


def present(root: Path, folders: Iterable[str] = OWNED) -> Iterator[str]:
    """The files below some folders or at some paths, relative to the root; caches of tools do not count."""
    for folder in folders:
        if (root / folder).is_file():
            yield folder
        for directory, subfolders, files in os.walk(root / folder):
            subfolders[:] = sorted(set(subfolders) - _IGNORED)
            for name in sorted(set(files) - {_SETTINGS_OF_USERS}):
                yield Path(directory, name).relative_to(root).as_posix()


def _holds(path: Path, text: str) -> bool:
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
