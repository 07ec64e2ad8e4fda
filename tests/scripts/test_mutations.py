"""Mutations of the stores: each still has something to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.mutations.__main__ import ENGINES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_each_mutation_changes_one_place(engine: str) -> None:
    """What the code has no more, or twice, would be left out of the proof."""
    counts = {
        (each.word, each.old): (ROOT / each.path).read_text(encoding="utf-8").count(each.old)
        for each in ENGINES[engine]
    }
    assert {what: count for what, count in counts.items() if count != 1} == {}
