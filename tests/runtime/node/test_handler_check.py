"""Missing handlers: reported with their place in the spec and a hint, before anything starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.__main__ import main
from runtime.node.handler_check import find_problems
from runtime.node.systems import load_system, system_names
from tests.support.codegen.projects import LOCKER, ROOT, edit, project

KIOSK = "locker.kiosk"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of one system with everything that is generated for it."""
    root = project(tmp_path_factory.mktemp("project"), [LOCKER])
    assert main(["generate", "--root", str(root)]) == 0
    return root


@pytest.fixture
def handlers(generated: Path) -> Path:
    """Its handlers, as they should be."""
    folder = generated / "handlers"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "tests/specs/locker_handlers", folder / "locker")
    (folder / "__init__.py").touch()
    (folder / "locker/__init__.py").touch()
    return folder / "locker"


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(root), str(ROOT)))
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", *arguments]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)


def complaints(root: Path) -> str:
    """The message of a node and of a launcher about the handlers, which is the same; neither starts."""
    node = run(root, "runtime.serve", f"{KIOSK}.kiosk")
    assert node.returncode == 2, node.stdout + node.stderr
    (line,) = map(json.loads, node.stdout.splitlines())
    assert (line["event"], line["message"]) == ("start_failed", node.stderr.strip())
    launcher = run(root, "runtime.launch", "up", KIOSK, "--ports", "auto", "--tls", "off")
    assert launcher.returncode == 2, launcher.stdout + launcher.stderr
    said = " ".join((launcher.stdout + launcher.stderr).split())
    assert " ".join(node.stderr.split()) in said
    return node.stderr.strip()


def test_a_module_with_another_name(generated: Path, handlers: Path) -> None:
    (handlers / "desk.py").rename(handlers / "desks.py")
    assert complaints(generated) == (
        "spec/locker/services.yaml:3:3: error: The component 'desk' has no handler: "
        "there is no handlers/locker/desk.py.\n  hint: Did you mean 'desks.py'?"
    )


def test_all_that_is_missing_at_once(generated: Path, handlers: Path) -> None:
    """A module without the class and a class without two methods, each by its own line of the spec."""
    edit(handlers / "vault.py", "class Vault", "class Vaults")
    text = (handlers / "desk.py").read_text(encoding="utf-8")
    text = text.replace("async def find_parcel(", "async def find_parcels(")
    (handlers / "desk.py").write_text(text.replace("async def store_parcel(", "async def put_away("))
    lines = (generated / "spec/locker/services.yaml").read_text(encoding="utf-8").splitlines()
    places = {name: lines.index(f"      {name}:") + 1 for name in ("StoreParcel", "FindParcel")}
    assert complaints(generated) == (
        f"spec/locker/services.yaml:{places['StoreParcel']}:7: error: 'desk' serves DeskService.StoreParcel, "
        "but Desk in handlers/locker/desk.py has no method store_parcel.\n"
        "  hint: Did you mean 'return_parcel'?\n"
        f"spec/locker/services.yaml:{places['FindParcel']}:7: error: 'desk' serves DeskService.FindParcel, "
        "but Desk in handlers/locker/desk.py has no method find_parcel.\n"
        "  hint: Did you mean 'find_parcels'?\n"
        "spec/locker/services.yaml:4:3: error: The component 'vault' has no handler: "
        "handlers/locker/vault.py has no class Vault.\n  hint: Did you mean 'Vaults'?"
    )


def test_nothing_at_all(generated: Path, handlers: Path) -> None:
    """Where no name is near, it is said what to write."""
    shutil.rmtree(handlers)
    found = complaints(generated)
    assert found.count("hint: Create it, with a class") == 2
    assert "there is no handlers/locker/vault.py.\n  hint: Create it, with a class Vault." in found


def test_a_module_that_cannot_be_imported(generated: Path, handlers: Path) -> None:
    """A failed import in a handler is reported with its line, and not as a missing handler."""
    (handlers / "vault.py").write_text("import json\nimport no_such_library\n", encoding="utf-8")
    assert complaints(generated) == (
        "spec/locker/services.yaml:4:3: error: The handler of 'vault' cannot be imported: "
        "ModuleNotFoundError: No module named 'no_such_library' (handlers/locker/vault.py:2)."
    )


@pytest.mark.parametrize("name", system_names())
def test_every_component_has_its_handler(name: str) -> None:
    """Those of the systems here have all that their specs name."""
    system = load_system(name)
    components = {
        component
        for each in system.deployments.values()
        for node in each.nodes.values()
        for component in node.hosts
    }
    assert [each for component in sorted(components) for each in find_problems(system, component)] == []
