"""What is checked of several specs together."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codegen.generate import generate
from tests.support.codegen.projects import LOCKER, project, snapshot


def test_two_specs_may_not_claim_the_same_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of a spec is told off for its name and its protos, and nothing is written."""
    root = project(tmp_path, [LOCKER])
    shutil.copytree(LOCKER, root / "spec" / "second")
    before = snapshot(root)
    assert generate(root) == 1
    told = capsys.readouterr().out
    assert "error E811: The name 'locker' is that of spec/locker already." in told
    assert "E811: The proto file" in told
    assert "E811: The proto package" in told
    assert snapshot(root) == before
