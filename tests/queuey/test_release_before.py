"""A file that the release before has written: it opens as it is, and what is in it goes on."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.support.queuey.in_process_queue import House

WRITTEN = Path(__file__).parent / "files/release_before.db"
"""Jobs that are completed, failed, released and claimed again, and two that wait; made by release 1."""


def read_schema(path: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        return rows.fetchall()


@pytest.mark.req("QQ-019", "QQ-020")
async def test_a_file_of_the_release_before_opens_and_works(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    shutil.copy(WRITTEN, path)
    before = read_schema(path)
    async with House(path, STARTUP_GRACE="3600") as house:
        assert read_schema(path) == before
        done = (await house.ask("GET", "/jobs/JOB-1")).json()
        assert (done["status"], done["output_addr"], done["run_attempts"]) == ("completed", "out-1", 1)
        report = (await house.ask("GET", "/jobs/JOB-3/report")).json()
        assert [(each["transition"], each["run_attempts"]) for each in report["changes"]] == [
            ("", 0),
            ("claim", 1),
            ("release", 1),
            ("claim", 2),
        ]
        body = {"status": "completed", "output_addr": "out-3", "runner_id": "runner-3", "run_attempts": 2}
        ended = await house.ask("POST", "/jobs/JOB-3/complete", body)
        assert ended.status_code == 200, ended.text
        found = await house.create(idempotency_key="fifth")
        assert found["job_id"] == "JOB-5"
        assert (await house.claim())["job_id"] == "JOB-4"  # type: ignore[index]
        listed = (await house.ask("GET", "/jobs")).json()["jobs"]
        assert [each["job_id"] for each in listed] == [f"JOB-{number}" for number in range(5, 0, -1)]
    assert read_schema(path) == before
