"""Remembers the last run, so that a run with nothing to do is over at once.

This module is all that such a run imports, so it leans on the standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

INPUTS = ("spec", "codegen", "requirements.lock")
OUTPUTS = ("proto", "generated", "docs", "spec/schema")
_CACHE = ".charter/last-run.json"


def is_fresh(root: Path) -> bool:
    """Whether nothing at all has changed since the last complete run."""
    try:
        return bool(json.loads((root / _CACHE).read_bytes()) == _state(root))
    except (OSError, ValueError):
        return False


def remember(root: Path) -> None:
    """Notes that inputs and outputs now fit together."""
    path = root / _CACHE
    path.parent.mkdir(exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(_state(root)))
    scratch.replace(path)


def _state(root: Path) -> dict[str, str]:
    return {"inputs": digest(root, INPUTS), "outputs": digest(root, OUTPUTS)}


def digest(root: Path, places: Iterable[str]) -> str:
    """A hash of the names and contents of all files in some places."""
    total = hashlib.sha256()
    for place in places:
        for path in _files(f"{root}/{place}"):
            with open(path, "rb") as file:  # noqa: PTH123  pathlib costs more than the reading
                content = file.read()
            total.update(f"{path}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()


def _files(place: str) -> Iterator[str]:
    if os.path.isfile(place):  # noqa: PTH113
        yield place
        return
    for directory, subfolders, files in os.walk(place):
        subfolders[:] = sorted(name for name in subfolders if name != "__pycache__")
        for name in sorted(files):
            yield f"{directory}/{name}"
