"""Recipes for developers, and documents for users."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JUST = Path(sys.executable).with_name("just")
RECIPES = {"ci", "help", "install-tools", "licenses", "lint", "test"}


def just(*arguments: str) -> str:
    return subprocess.run([JUST, *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.req("QQ-115")
def test_the_recipes_are_there() -> None:
    """Each is listed with its description, and can be run."""
    listed = dict(re.findall(r"^    (\S+)(?: \*\w+)? +# (.+)$", just("--list"), re.MULTILINE))
    assert set(listed) >= RECIPES
    sessions = just("--dry-run", *sorted(RECIPES - {"help"}))
    assert sessions == ""  # A dry run prints to standard error.


@pytest.mark.req("QQ-115")
@pytest.mark.parametrize("recipe", ["lint", "licenses", "test"])
def test_recipes_are_sessions_of_nox(recipe: str) -> None:
    """Each recipe runs one session of nox, and nothing else."""
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    for session in re.findall(r"nox -s (\w+)", just("--show", recipe)):
        assert f"def {session}(session: nox.Session)" in text


@pytest.mark.req("QQ-116")
def test_documents_for_users_are_linked() -> None:
    """The README links to the pages of the system, and these to each other."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in ("docs/how-to/use-queuey.md", "docs/reference/queuey.md"):
        assert f"({page})" in readme
        assert (ROOT / page).is_file()
    assert "(../reference/queuey.md)" in (ROOT / "docs/how-to/use-queuey.md").read_text(encoding="utf-8")
