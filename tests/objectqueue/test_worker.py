"""A worker on a real bucket: what it runs, how runs end, and what it counts."""

from __future__ import annotations

import pytest

from tests.objectqueue.crew import Crew


@pytest.mark.req("OQ-116", "OQ-117")
async def test_a_task_is_done(crew: Crew) -> None:
    """Its output and its end are in its object, the lease and its entry are gone."""
    key = await crew.submit("echo", {"a": [1]})
    async with crew.worker() as _works:
        task = await crew.ended(key)
    assert (task["status"], task["output"]) == ("Completed", {"a": [1]})
