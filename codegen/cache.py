"""Cache of the state of the last run, so that a run with nothing to do ends at once.

Such a run imports only this module, which therefore imports only the standard library.
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
    """Whether neither inputs nor outputs have changed since the last complete run."""
    try:
        return bool(json.loads((root / _CACHE).read_bytes()) == _compute_state(root))
    except (OSError, ValueError):
        return False


def save_state(root: Path) -> None:
    """Save the hashes of inputs and outputs after a complete run."""
    path = root / _CACHE
    path.parent.mkdir(exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(_compute_state(root)))
    scratch.replace(path)


def _compute_state(root: Path) -> dict[str, str]:
    return {"inputs": compute_digest(root, INPUTS), "outputs": compute_digest(root, OUTPUTS)}


def compute_digest(root: Path, paths: Iterable[str]) -> str:
    """Compute a hash of the names and contents of all files below some paths."""
    total = hashlib.sha256()
    for base in paths:
        for path in _iter_files(f"{root}/{base}"):
            with open(path, "rb") as file:  # noqa: PTH123  pathlib costs more than the reading
                content = file.read()
            total.update(f"{path}\0{len(content)}\0".encode())
            total.update(content)
    return total.hexdigest()


def _iter_files(base: str) -> Iterator[str]:
    if os.path.isfile(base):  # noqa: PTH113
        yield base
        return
    for directory, subfolders, files in os.walk(base):
        subfolders[:] = sorted(name for name in subfolders if name != "__pycache__")
        for name in sorted(files):
            yield f"{directory}/{name}"
