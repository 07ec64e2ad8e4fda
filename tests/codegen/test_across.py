"""What is checked of several specs together, and of the page that shows them all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codegen.generate import generate
from tests.support.codegen.projects import LOCKER, edit, project, snapshot


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


@pytest.mark.parametrize("missing", ["<!-- generated:endpoints -->", "<!-- /generated:variables -->"])
def test_a_readme_without_its_markers_is_told_off(
    missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The complaint says which part has no place and what to put there."""
    root = project(tmp_path, [LOCKER])
    marked = [
        f"<!-- {slash}generated:{name} -->" for name in ("endpoints", "variables") for slash in ("", "/")
    ]
    (root / "README.md").write_text("\n".join(marked), encoding="utf-8")
    assert generate(root) == 0
    edit(root / "README.md", missing, "")
    capsys.readouterr()
    assert generate(root) == 1
    assert "README.md:1:1: error E812: README.md has 0 places" in capsys.readouterr().out
