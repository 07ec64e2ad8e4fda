"""The quick form of the suite tries the same examples in every run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.deep import DEEP

WORDS = {f"word {number}" for number in range(500)}


def test_examples_do_not_depend_on_loaded_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is loaded before adds none of its texts, unless `--deep` looks for new ones."""
    drawn: set[str] = set()

    @settings(max_examples=500, database=None, derandomize=True)
    @given(st.text())
    def draw(text: str) -> None:
        drawn.add(text)

    (tmp_path / "newly_loaded.py").write_text(f"WORDS = {sorted(WORDS)!r}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("newly_loaded")
    draw()
    monkeypatch.delitem(sys.modules, "newly_loaded")
    assert len(drawn) > 100
    assert DEEP or not drawn & WORDS
