"""Import systems of tests/specs as `generated.<name>` and `handlers.<name>`, generated once per session.

The engine knows no system by name, so its tests use these systems and not those that are shipped. They are
not on the path of the package `generated`, so that no list of systems has them.
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import pytest

import generated
import handlers
from runtime.node.systems import system_names

SYSTEMS = ("bakery", "nursery", "studio")
ROOT = Path(__file__).parents[3]
SPECS = ROOT / "tests/specs"
FOLDER = "CHARTER_NEUTRAL_SPECS"
"""The variable with the folder of the session, for all of its processes."""
_NAME = re.compile(rf"(generated|handlers)\.(?:{'|'.join(SYSTEMS)})(?:_[a-z0-9_]+)?")


class NeutralFinder:
    """Finds the packages of neutral systems, and the messages beside them."""

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        matched = _NAME.fullmatch(name)
        return PathFinder.find_spec(name, [str(project() / matched[1])]) if matched else None


def open_session() -> str | None:
    """Make neutral systems importable; return the folder of the session, if it is not another process's."""
    if not any(isinstance(each, NeutralFinder) for each in sys.meta_path):
        sys.meta_path.append(NeutralFinder())
    if FOLDER in os.environ:
        return None
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="charter-specs-")
    return os.environ[FOLDER]


@cache
def project() -> Path:
    """Return the root of a project with all neutral systems, which the first process that asks generates."""
    root = Path(os.environ[FOLDER])
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "generated").exists():
            _generate(root)
    return root


def environment() -> dict[str, str]:
    """Return the variables of a process that has the neutral systems and no others."""
    # Its Python must not look into the folder that it is started in.
    return {"PYTHONPATH": os.pathsep.join((str(project()), str(ROOT))), "PYTHONSAFEPATH": "1"}


@contextmanager
def replace_systems() -> Iterator[None]:
    """Have the neutral systems instead of the shipped ones, here and in processes that are started."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        patch.setattr(generated, "__path__", [str(project() / "generated")])
        patch.setattr(handlers, "__path__", [str(project() / "handlers")])
        system_names.cache_clear()
        yield
    system_names.cache_clear()


def _generate(root: Path) -> None:
    from codegen.__main__ import main as codegen

    for name in SYSTEMS:
        shutil.copytree(SPECS / name, root / "spec" / name, dirs_exist_ok=True)
        if (written := SPECS / f"{name}_handlers").exists():
            shutil.copytree(written, root / "handlers" / name, dirs_exist_ok=True)
    (root / "handlers/__init__.py").touch()
    with redirect_stdout(io.StringIO()) as output:
        assert codegen(["generate", "--root", str(root)]) == 0, output.getvalue()
