"""Tools of developers besides nox: hooks for commits, recipes for `just`, and a container."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_project import ROOT, SESSIONS

TOOLS = Path(sys.executable).parent
CONTAINER = ROOT / ".devcontainer"


def list_hooks() -> list[dict[str, Any]]:
    """List the hooks of pre-commit."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    return [hook for repo in config["repos"] for hook in repo["hooks"]]


def test_hooks_fetch_nothing() -> None:
    """All are local ones that run what is installed."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    assert {hook["language"] for hook in list_hooks()} == {"system"}
    assert all(hook.keys() >= {"id", "name", "entry"} for hook in list_hooks())


@pytest.mark.parametrize("hook", list_hooks(), ids=lambda hook: hook["id"])
def test_every_hook_is_a_command_that_exists(hook: dict[str, Any]) -> None:
    """Each is a tool of the environment for tests, which the session `tool` runs."""
    *nox, tool = shlex.split(hook["entry"])[:5]
    assert nox == ["nox", "-s", "tool", "--"]
    assert "tool" in SESSIONS
    assert (TOOLS / tool).is_file()
    re.compile(hook.get("files", ""))


def test_hooks_run_the_first_checks_of_the_tests() -> None:
    """Linters, formatter and the freshness of generated files; a failure there is a failure here, too."""
    entries = {
        " ".join(shlex.split(hook["entry"])[4:]).removesuffix(" --force-exclude") for hook in list_hooks()
    }
    assert entries == {"ruff check", "ruff format", "buf lint", "python -m codegen generate --check"}


def test_every_recipe_is_a_session() -> None:
    """`just` reads the file, and each command of nox in it is there."""
    summary = subprocess.run(
        (TOOLS / "just", "--justfile", ROOT / "justfile", "--summary"),
        check=True,
        capture_output=True,
        text=True,
    )
    assert {"bench", "chaos", "demo", "fix", "generate", "lint", "test", "up"} <= set(summary.stdout.split())
    named = set(re.findall(r"nox -s (\w+)", (ROOT / "justfile").read_text(encoding="utf-8")))
    assert named and named <= SESSIONS


def test_the_container_has_what_the_lock_names() -> None:
    """Its image is one that needs no registry's name, and its two tools are the locked ones."""
    container = json.loads((CONTAINER / "devcontainer.json").read_text(encoding="utf-8"))
    text = (CONTAINER / container["build"]["dockerfile"]).read_text(encoding="utf-8")
    assert re.findall(r"^FROM (.+)$", text, re.MULTILINE) == ["python:3.11-slim"]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = re.findall(r"[a-z-]+==[0-9.]+", text)
    assert len(pinned) == 2
    assert all(re.search(rf"^{re.escape(each)} ", lock, re.MULTILINE) for each in pinned)
    assert container["postCreateCommand"].split()[2] in SESSIONS


def test_hadolint_accepts_the_container() -> None:
    """The linter for Dockerfiles accepts it."""
    done = subprocess.run((TOOLS / "hadolint", CONTAINER / "Dockerfile"), check=False, capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
