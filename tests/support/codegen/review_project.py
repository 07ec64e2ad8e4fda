"""A scratch project with one system, to run the command as its users do."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codegen.review import main
from codegen.review.record import HEADER
from tests.support import quick_yaml

LOCKER = Path(__file__).parents[2] / "specs" / "locker"
FREEZE = "\nfrozen:\n  since: 2026-02-10\n  decisions: [Parcels have doors.]\n"
BLOCKER = {
    "description": "The door does not open.",
    "why_design_fails": "It has no handle.",
    "scope": "One handle.",
    "impact_on_task": "None.",
}
SHELF = ("environment", "unit: days, default: 7", "unit: days, default: 9")
STORE = ("callers", "[CollectParcel, FindParcel]", "[CollectParcel, FindParcel, StoreParcel]")
"""Two edits of the spec: a default, and a permission."""


@dataclass
class Project:
    """The folder of a project and the output of its commands."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    def review(self, *arguments: str) -> tuple[int, str]:
        """Run the command; return its exit code and its output."""
        code = main([*arguments], self.root)
        printed = self.capsys.readouterr()
        return code, printed.out + printed.err

    def edit(self, file: str, old: str, new: str) -> None:
        """Change a file of the spec in one place."""
        path = self.root / "spec" / "locker" / f"{file}.yaml"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        path.write_text(text.replace(old, new), encoding="utf-8")

    def freeze(self) -> None:
        """Freeze the design."""
        with (self.root / "spec/locker/system.yaml").open("a", encoding="utf-8") as file:
            file.write(FREEZE)

    def record(self, name: str, *covers: str, **words: Any) -> Path:
        """Write a change record."""
        body = {"system": "locker", "title": "T.", "what": "W.", "why": "Y.", "impact": "I.", **words}
        return self.write_record(name, quick_yaml.write({**body, "covers": [*covers]}))

    def write_record(self, name: str, text: str, header: str = HEADER) -> Path:
        path = self.root / "spec" / "changes" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{header}\n{text}", encoding="utf-8")
        return path

    def accept_first(self) -> None:
        """Accept the system as it is."""
        self.record("0001-a-locker", "system.added locker")
        assert self.review("--accept")[0] == 0

    @property
    def accepted(self) -> Any:
        return json.loads((self.root / "spec/accepted/locker.json").read_text(encoding="utf-8"))

    def git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], cwd=self.root, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", ".")
        self.git("commit", "-qm", "A state.")


def make_project(root: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    shutil.copytree(LOCKER, root / "spec" / "locker")
    return Project(root, capsys)
