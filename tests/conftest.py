"""What holds for all tests."""

from __future__ import annotations

import pytest

LONGEST = ("test_equivalence.py", "test_failure_windows.py", "test_fuzz.py", "test_nothing_unseen.py")
"""Modules that take long. They go first, so that no worker is left alone with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest modules first; the rest keeps its order."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
