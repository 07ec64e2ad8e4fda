"""Checks across several specs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codegen.generate import generate
from tests.support.codegen.projects import LOCKER, project, snapshot


def test_two_specs_may_not_claim_the_same_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of a spec is refused for its name and its protos, and nothing is written."""
    root = project(tmp_path, [LOCKER])
    shutil.copytree(LOCKER, root / "spec" / "second")
    before = snapshot(root)
    assert generate(root) == 1
    complaints_ = capsys.readouterr().out
    assert "error E811: The name 'locker' is that of spec/locker already." in complaints_
    assert "E811: The proto file" in complaints_
    assert "E811: The proto package" in complaints_
    assert snapshot(root) == before
