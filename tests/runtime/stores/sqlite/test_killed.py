"""A process that is killed while it writes, again and again on the same file: what it told of is there."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.chaos import Chaos

ORDER = ("pending", "active", "completed")


@pytest.mark.chaos
@pytest.mark.req("QQ-019", "QQ-020")
def test_a_file_outlives_whoever_writes_it(tmp_path: Path, chaos: Chaos) -> None:
    path = tmp_path / "killed.db"
    told: dict[str, str] = {}
    for chance in chaos.rounds(4):
        for line in _killed(path, chance.uniform(0, 0.15)):
            state, key = line.split(" ")
            told[key] = max(told.get(key, "pending"), state, key=ORDER.index)
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = dict(connection.execute("SELECT job_id, status FROM jobs").fetchall())
        counted = connection.execute("SELECT status, entities FROM jobs_in_state WHERE entities > 0")
        real = connection.execute("SELECT status, count(*) FROM jobs GROUP BY status").fetchall()
        assert dict(counted.fetchall()) == dict(real)
        connection.close()
        lost = [key for key, state in told.items() if ORDER.index(found[key]) < ORDER.index(state)]
        assert lost == []
        if len(found) > 5_000:
            # What is whole has been looked at; looking at it again and again takes the time of further kills.
            for each in tmp_path.glob("killed.db*"):
                each.unlink()
            told = {}
            chaos.count(files_made_anew=1)
        chaos.count(kills=1, lost=len(lost))
    assert told or "files_made_anew" in chaos.counted


def _killed(path: Path, after: float) -> list[str]:
    """What a writer told of until it was killed, some time after it told of something first."""
    command = (sys.executable, "-m", "tests.runtime.stores.sqlite.writer", str(path))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        assert first, "the writer ended by itself"
        try:
            writer.wait(after)
        except subprocess.TimeoutExpired:
            writer.kill()
        rest = writer.stdout.read()
    # The last line may be half written.
    return (first + rest).decode().split("\n")[:-1]
