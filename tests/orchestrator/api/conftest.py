"""What several modules of this folder need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.orchestrator.sql_session import Sql


@pytest.fixture
def nothing_stored(sql: Sql) -> Iterator[None]:
    """What is refused leaves no row behind."""
    before = sql.count()
    yield
    assert sql.count() == before
