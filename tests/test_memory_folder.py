"""The folder for temporary files of tests, in memory where that can be."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support import memory_folder
from tests.support.memory_folder import has_room, use_memory


def test_child_processes_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test starts puts its temporary files there, too."""
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", "")
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(memory_folder, "ROOM", 1)
    made = use_memory(tmp_path)
    child = (sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())")
    assert subprocess.run(child, check=True, capture_output=True, text=True).stdout.strip() == str(made)
    assert made is not None and made.parent == tmp_path


def test_a_chosen_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR has the last word."""
    monkeypatch.setenv("TMPDIR", "elsewhere")
    assert use_memory(tmp_path) is None
    assert os.environ["TMPDIR"] == "elsewhere"


def test_without_room_nothing_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is missing or too small is none."""
    monkeypatch.setattr(memory_folder, "ROOM", 1)
    assert has_room(tmp_path)
    assert not has_room(tmp_path / "missing")
    monkeypatch.setattr(memory_folder, "ROOM", 1 << 62)
    assert not has_room(tmp_path)
