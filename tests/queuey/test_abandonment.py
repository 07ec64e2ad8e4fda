"""Abandoned jobs, whose runners send no heartbeats: when, how often, and by which sweep."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from generated.queuey.settings import VARIABLES, QueueSettings
from tests.support.eventually import eventually
from tests.support.queuey.in_process_queue import House

AGE_MS = 300_000


def set_attempts(house: House, count: int, job_id: str) -> None:
    """Set the attempts of an active job."""
    house.sql("UPDATE jobs SET run_attempts = ? WHERE job_id = ?", count, job_id)


@pytest.mark.req("QQ-023", "QQ-024")
def test_the_constants_have_their_defaults() -> None:
    assert (VARIABLES["ABANDONED_AGE"].default, VARIABLES["MAX_ATTEMPTS"].default) == ("300", "3")
    assert {"abandoned_age", "max_attempts"} <= set(QueueSettings.__struct_fields__)


@pytest.mark.req("QQ-023", "QQ-025", "QQ-027", "QQ-028", "QQ-030", "QQ-031", "QQ-032", "QQ-033")
async def test_a_job_is_abandoned_a_millisecond_after_its_age(house: House) -> None:
    house.world.freeze()
    job = await house.create_active()
    house.world.step(AGE_MS)
    assert await house.get(job["job_id"]) == job
    house.world.step(1)
    abandoned = await house.get(job["job_id"])
    assert (abandoned["status"], abandoned["runner_id"], abandoned["run_attempts"]) == ("pending", None, 2)
    assert abandoned["updated_at"] == house.world.at_ms
    assert abandoned["created_at"] == job["created_at"]


@pytest.mark.req("QQ-033", "QQ-034", "QQ-046", "QQ-031")
@pytest.mark.parametrize(("count", "status"), [(2, "pending"), (3, "failed"), (7, "failed")])
async def test_the_attempts_decide_the_next_status(house: House, count: int, status: str) -> None:
    house.world.freeze()
    job = await house.create_active()
    set_attempts(house, count, job["job_id"])
    house.world.step(AGE_MS + 1)
    ended = await house.get(job["job_id"])
    assert (ended["status"], ended["run_attempts"]) == (status, count + 1)
    assert (ended["runner_id"], ended["completed_at"]) == (None, None)


@pytest.mark.req("QQ-007", "QQ-024", "QQ-035", "QQ-086")
async def test_a_job_runs_twice_by_default(house: House) -> None:
    house.world.freeze()
    job = await house.create()
    path = []
    for _ in range(2):
        claimed = await house.claim()
        assert claimed is not None
        path.append((claimed["status"], claimed["run_attempts"]))
        house.world.step(AGE_MS + 1)
        abandoned = await house.get(job["job_id"])
        path.append((abandoned["status"], abandoned["run_attempts"]))
    assert path == [("active", 1), ("pending", 2), ("active", 3), ("failed", 4)]
    assert await house.claim() is None


@pytest.mark.req("QQ-026", "QQ-036")
@pytest.mark.parametrize(("most", "runs"), [(1, 1), (2, 2), (3, 2), (5, 3), (7, 4)])
async def test_the_number_of_runs_by_max_attempts(house: House, most: int, runs: int) -> None:
    await house.close()
    await house.open(MAX_ATTEMPTS=str(most), ABANDONED_AGE="60")
    house.world.freeze()
    await house.create()
    count = 0
    while await house.claim() is not None:
        count += 1
        house.world.step(60_001)
    assert count == runs


@pytest.mark.req("QQ-026")
@pytest.mark.parametrize(
    "setting",
    [{"ABANDONED_AGE": "x"}, {"ABANDONED_AGE": "0"}, {"MAX_ATTEMPTS": "-1"}, {"MAX_ATTEMPTS": "1.5"}],
)
async def test_invalid_settings_stop_the_start(tmp_path: Path, setting: dict[str, str]) -> None:
    with pytest.raises(Exception, match=next(iter(setting))):
        await House(tmp_path / "q.db", **setting).open()


@pytest.mark.req("QQ-029")
@pytest.mark.parametrize("status", ["pending", "completed", "failed"])
async def test_only_active_jobs_are_abandoned(house: House, status: str) -> None:
    house.world.freeze()
    job = await house.create_in_status(status)
    house.world.step(24 * 3600 * 1000)
    await house.sweep()
    assert await house.get(job["job_id"]) == job


@pytest.mark.req("QQ-037")
@pytest.mark.parametrize("runner", ["the same", "another"])
async def test_any_runner_may_claim_an_abandoned_job(house: House, runner: str) -> None:
    house.world.freeze()
    job = await house.create_active("the same")
    house.world.step(AGE_MS + 1)
    again = await house.claim(runner)
    assert again is not None
    assert (again["job_id"], again["runner_id"], again["run_attempts"]) == (job["job_id"], runner, 3)


@pytest.mark.req("QQ-038", "QQ-089")
async def test_heartbeats_prevent_abandonment(house: House) -> None:
    house.world.freeze()
    job = await house.create_active()
    for _ in range(5):
        house.world.step(AGE_MS - 1)
        assert (await house.tickle(job["job_id"])).status_code == 200
    renewed = await house.get(job["job_id"])
    assert {**renewed, "updated_at": 0} == {**job, "updated_at": 0}


@pytest.mark.req("QQ-039", "QQ-080")
async def test_a_claim_restarts_the_age(house: House) -> None:
    house.world.freeze()
    job = await house.create()
    house.world.step(3600 * 1000)
    claimed = await house.claim()
    assert claimed is not None
    assert claimed["updated_at"] == house.world.at_ms
    await house.sweep()
    assert (await house.get(job["job_id"]))["status"] == "active"


@pytest.mark.req("QQ-027", "QQ-040")
async def test_the_sweep_needs_no_request(tmp_path: Path) -> None:
    async with House(tmp_path / "q.db", ABANDONED_AGE="0.05", SWEEP_INTERVAL="0.05") as house:
        await house.create_active()
        await eventually(lambda: house.sql("SELECT status, run_attempts FROM jobs") == [("pending", 2)])


@pytest.mark.req("QQ-041", "QQ-094", "QQ-105")
async def test_a_late_heartbeat_finds_the_job_abandoned(house: House) -> None:
    house.world.freeze()
    job = await house.create_active()
    house.world.step(AGE_MS + 1)
    late = await house.tickle(job["job_id"], runner_id="runner")
    assert (late.status_code, late.json()["error"]["code"]) == (400, "JOB_NOT_ACTIVE")
    assert (await house.complete(job["job_id"], runner_id="runner")).status_code == 400
    assert (await house.get(job["job_id"]))["status"] == "pending"


@pytest.mark.req("QQ-042")
async def test_an_expiry_is_counted_once(house: House) -> None:
    house.world.freeze()
    job = await house.create_active()
    house.world.step(AGE_MS + 1)
    claimed = await asyncio.gather(
        *(house.claim(f"r{number}") for number in range(20)), *(house.get(job["job_id"]) for _ in range(20))
    )
    assert len([each for each in claimed[:20] if each is not None]) == 1
    assert (await house.get(job["job_id"]))["run_attempts"] == 3


@pytest.mark.req("QQ-043", "QQ-044")
async def test_each_overdue_job_is_swept_by_its_own_attempts(house: House) -> None:
    house.world.freeze()
    jobs = [await house.create_active() for _ in range(30)]
    for number, job in enumerate(jobs):
        set_attempts(house, 1 + number % 4, job["job_id"])
    await house.close()
    house.world.step(AGE_MS + 1)
    await house.open(SWEEP_INTERVAL="0.05")
    await eventually(lambda: not house.sql("SELECT 1 FROM jobs WHERE status = 'active'"))
    found = dict(house.sql("SELECT run_attempts, min(status) FROM jobs GROUP BY run_attempts"))
    assert found == {2: "pending", 3: "pending", 4: "failed", 5: "failed"}


@pytest.mark.req("QQ-044")
async def test_a_grace_period_after_the_start(house: House) -> None:
    house.world.freeze()
    job = await house.create_active()
    await house.close()
    house.world.step(AGE_MS + 1)
    await house.open(STARTUP_GRACE="60")
    assert (await house.get(job["job_id"]))["status"] == "active"
    house.world.step(60_000)
    assert (await house.get(job["job_id"]))["status"] == "pending"


@pytest.mark.req("QQ-007", "QQ-045")
async def test_a_reported_failure_is_final(house: House) -> None:
    job = await house.create_active()
    assert (await house.complete(job["job_id"], "failed")).json()["status"] == "failed"
    assert await house.claim() is None


@pytest.mark.req("QQ-087")
async def test_a_lost_answer_of_a_claim_costs_one_age(house: House) -> None:
    house.world.freeze()
    await house.create()
    reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
    body = b'{"runner_id": "gone"}'
    head = "POST /jobs/claim HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    await writer.drain()
    writer.close()
    del reader
    await eventually(lambda: house.sql("SELECT status FROM jobs") == [("active",)])
    house.world.step(AGE_MS + 1)
    again = await house.claim("next")
    assert again is not None
    assert (again["runner_id"], again["run_attempts"]) == ("next", 3)
