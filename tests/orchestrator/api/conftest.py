"""Fixtures of several modules of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.orchestrator.sql_session import Sql


@pytest.fixture
def nothing_stored(sql: Sql) -> Iterator[None]:
    """A refused request stores no row."""
    before = sql.count()
    yield
    assert sql.count() == before
