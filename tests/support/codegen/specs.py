"""The specs of the emitters' tests, and helpers to change them."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from codegen.emit.artefact import Artefact
from codegen.language import FILES
from codegen.source.loader import load
from codegen.source.spec import Spec
from tests.support import quick_yaml

ROOT = Path(__file__).parents[3]
FOLDERS = sorted(
    path.parent.relative_to(ROOT).as_posix()
    for pattern in ("spec/*/system.yaml", "tests/specs/*/system.yaml")
    for path in ROOT.glob(pattern)
)
"""Every spec: the output of emitters must be right for any of them."""


@cache
def spec(folder: str) -> Spec:
    return load(ROOT / folder, ROOT)


def texts(emit: Callable[[Spec], Iterator[Artefact]], of: Spec) -> dict[str, str]:
    """The output of an emitter, by path."""
    return {artefact.path: artefact.text for artefact in emit(of)}


def list_container_deployments(of: Spec) -> list[str]:
    """The deployments of a spec that containers can run."""
    return [name for name, row in of.deployments.root.items() if row.in_containers]


def change_spec(of: Spec, file: str, change: Callable[[Any], None]) -> Spec:
    """A spec with a change in one file."""
    data = quick_yaml.read((ROOT / of.folder / f"{file}.yaml").read_text(encoding="utf-8"))
    change(data)
    parts: dict[str, Any] = {file: FILES[file].model_validate(data, strict=False)}
    return dataclasses.replace(of, **parts).at_home()


def run(
    *command: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command; the test checks its output and exit code."""
    return subprocess.run(command, cwd=cwd, env=env, check=False, capture_output=True, text=True)
