"""Content of the wheel: all modules, with types for the users' type checkers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("runtime", "generated", "handlers")
"""The packages that users import."""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files in a wheel that was built from a copy, so that the project has no build folder afterwards."""
    source, wheels = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    build = (
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(wheels),
        str(source),
    )
    done = subprocess.run(
        (sys.executable, "-m", "pip", "--disable-pip-version-check", *build),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_believe_the_annotations(package: str, names: set[str]) -> None:
    """Without the marker of PEP 561 every import of the package would be a missing stub to its users."""
    assert f"{package}/py.typed" in names


def test_every_module_and_every_stub_is_in_it(names: set[str]) -> None:
    """Compiled messages have stubs beside them; no folder is left out for want of an `__init__.py`."""
    files = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for kind in ("*.py", "*.pyi")
        for path in (ROOT / package).rglob(kind)
    }
    assert files and files - names == set()
    assert {f"{each}i" for each in names if each.endswith(("_pb2.py", "_pb2_grpc.py"))} <= names
