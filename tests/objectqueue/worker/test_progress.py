"""How often the progress of a run is written: each write is a version of its task."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.objectqueue.crew import Crew, Hurried


@pytest.mark.req("OQ-X04", "OQ-153")
async def test_progress_of_a_longer_run_is_written_less_often(crew: Crew, tmp_path: Path) -> None:
    """However often it reports, pauses double up to the interval of heartbeats."""
    world, gate = Hurried(), tmp_path / "gate"
    key = await crew.submit("progress until", str(gate), timeout_seconds=600)
    async with crew.worker(world=world, QO_HEARTBEAT_SECONDS="12"):
        await eventually(lambda: world.slept.count(12.0) > 0 and len(crew.versions(key)) > 8)
        written = len(crew.versions(key)) - 2
        paused = [each for each in world.slept if each in (2.0, 4.0, 8.0)]
        assert paused == [2.0, 4.0, 8.0], "each length once, then the longest for good"
        assert world.slept.count(12.0) >= written - 5
        gate.touch()
        completed = await crew.wait_until_ended(key)
    assert completed["status"] == "Completed" and completed["output"] >= 1
