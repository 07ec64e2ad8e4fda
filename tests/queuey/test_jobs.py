"""The fields, statuses, times and ids of jobs."""

from __future__ import annotations

import asyncio
import sqlite3
import time
import uuid
from pathlib import Path

import pytest

from tests.support.queuey.in_process_queue import FIELDS, House

STATUSES = ("pending", "active", "completed", "failed")
EDGES = {("pending", "active"), ("active", "pending"), ("active", "completed"), ("active", "failed")}


@pytest.mark.req("QQ-001", "QQ-002", "QQ-005", "QQ-006", "QQ-017", "QQ-070", "QQ-071")
async def test_a_job_from_its_creation_to_its_result(house: House) -> None:
    created = await house.create(binary_addr="b" * 40, input_addr="i" * 40)
    claimed = await house.claim("runner-1")
    assert claimed is not None
    assert (claimed["job_id"], claimed["binary_addr"], claimed["input_addr"]) == (
        created["job_id"],
        "b" * 40,
        "i" * 40,
    )
    assert (claimed["status"], claimed["runner_id"]) == ("active", "runner-1")
    assert (await house.tickle(created["job_id"])).status_code == 200
    assert (await house.complete(created["job_id"], output_addr="o" * 40)).status_code == 200
    ended = await house.get(created["job_id"])
    assert (ended["status"], ended["runner_id"], ended["run_attempts"]) == ("completed", "runner-1", 1)
    assert ended["output_addr"] == "o" * 40
    assert ended["completed_at"] is not None


@pytest.mark.req("QQ-003", "QQ-008")
@pytest.mark.parametrize("source", STATUSES)
@pytest.mark.parametrize("target", STATUSES)
async def test_the_file_allows_the_edges_of_the_lifecycle_only(
    house: House, source: str, target: str
) -> None:
    job = await house.create_in_status(source)
    change = "UPDATE jobs SET status = ?, runner_id = 'hand' WHERE job_id = ?"
    if source == target or (source, target) in EDGES:
        house.sql(change, target, job["job_id"])
    else:
        with pytest.raises(sqlite3.IntegrityError, match="ILLEGAL_TRANSITION"):
            house.sql(change, target, job["job_id"])


@pytest.mark.req("QQ-003")
async def test_the_file_allows_no_other_status(house: House) -> None:
    job = await house.create()
    with pytest.raises(sqlite3.IntegrityError):
        house.sql("UPDATE jobs SET status = 'paused' WHERE job_id = ?", job["job_id"])
    with pytest.raises(sqlite3.IntegrityError):
        house.sql("INSERT INTO jobs (job_id, binary_addr, status) VALUES ('x', 'y', 'completed')")


@pytest.mark.req("QQ-004", "QQ-009", "QQ-010", "QQ-011", "QQ-015", "QQ-060", "QQ-062", "QQ-063", "QQ-064")
async def test_a_new_job_has_all_its_fields(house: House) -> None:
    job = await house.create()
    assert set(job) == FIELDS
    nothing = ("input_addr", "completed_at", "runner_id", "output_addr")
    assert [job[name] for name in nothing] == [None] * 4
    assert (job["status"], job["run_attempts"]) == ("pending", 0)
    assert job["created_at"] == job["updated_at"]


@pytest.mark.req("QQ-010", "QQ-069")
@pytest.mark.parametrize("status", STATUSES)
async def test_every_status_has_the_same_fields(house: House, status: str) -> None:
    job = await house.create_in_status(status)
    jobs_ = await house.get(job["job_id"])
    assert set(jobs_) == FIELDS
    assert jobs_["status"] == status


@pytest.mark.req("QQ-012", "QQ-066", "QQ-068")
async def test_concurrent_creations_get_ids_of_their_own(house: House) -> None:
    jobs = await asyncio.gather(*(house.create() for _ in range(200)))
    assert len({job["job_id"] for job in jobs}) == 200
    assert {uuid.UUID(job["job_id"]).version for job in jobs} == {4}
    assert len(house.rows()) == 200


@pytest.mark.req("QQ-013")
async def test_ids_are_upper_case_and_accepted_in_any_case(house: House) -> None:
    job = await house.create()
    assert job["job_id"] == job["job_id"].upper()
    assert await house.get(job["job_id"].lower()) == job


@pytest.mark.req("QQ-014", "QQ-018")
async def test_times_are_milliseconds_and_the_first_never_changes(house: House) -> None:
    before = time.time_ns() // 1_000_000
    job = await house.create()
    assert before <= job["created_at"] <= time.time_ns() // 1_000_000
    assert await house.claim() is not None
    await house.tickle(job["job_id"])
    await house.complete(job["job_id"])
    ended = await house.get(job["job_id"])
    assert ended["created_at"] == job["created_at"]
    assert isinstance(ended["completed_at"], int)


@pytest.mark.req("QQ-016")
@pytest.mark.parametrize("name", ["A54FAF6A-8C15-4BC0-8C1D-49EBA31AD550", "plain", "mit Ümlaut 🦀"])
async def test_a_runner_id_is_returned_unchanged(house: House, name: str) -> None:
    assert (await house.create_active(name))["runner_id"] == name


@pytest.mark.req("QQ-019")
async def test_the_file_is_in_wal_mode(house: House) -> None:
    await house.create()
    assert house.sql("PRAGMA journal_mode") == [("wal",)]


@pytest.mark.req("QQ-020", "QQ-021")
async def test_a_restart_changes_nothing(house: House) -> None:
    for status in ("completed", "failed", "active", "pending"):
        await house.create_in_status(status)
    before = house.rows()
    await house.close()
    await house.open()
    assert house.rows() == before
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        house.sql("DELETE FROM jobs")


@pytest.mark.req("QQ-022", "QQ-065")
@pytest.mark.parametrize("address", ["59ae214373240a255f453cc2fa8d26ab60d6b532", "cas:b3/…/x y", "a" * 512])
async def test_addresses_are_stored_unchanged(house: House, address: str) -> None:
    job = await house.create(binary_addr=address, input_addr=address)
    claimed = await house.claim()
    assert claimed is not None
    assert (claimed["binary_addr"], claimed["input_addr"]) == (address, address)
    assert (await house.complete(job["job_id"], output_addr=address)).json()["output_addr"] == address


@pytest.mark.req("QQ-061", "QQ-065", "QQ-110")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"binary_addr": None},
        {"binary_addr": ""},
        {"binary_addr": 7},
        {"binary_addr": "a" * 513},
        {"binary_addr": "line\nbreak"},
        {"binary_addr": "a", "input_addr": ""},
        {"binary_addr": "a", "input_addr": "nul\u0000"},
    ],
)
async def test_an_invalid_job_is_refused(house: House, body: dict[str, object]) -> None:
    answer = await house.ask("POST", "/jobs/create", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    assert answer.json()["error"]["field"] in ("binary_addr", "input_addr")
    assert house.rows() == []


@pytest.mark.req("QQ-X07")
async def test_a_key_finds_the_first_job(house: House) -> None:
    first = await house.create(idempotency_key="k")
    assert await house.create(idempotency_key="k") == first
    assert (await house.create(idempotency_key="l"))["job_id"] != first["job_id"]
    assert len(house.rows()) == 2


@pytest.mark.req("QQ-083")
async def test_one_process_owns_a_file(house: House, tmp_path: Path) -> None:
    second = House(tmp_path / "queue.db")
    with pytest.raises(Exception, match="is in use by process"):
        await second.open()
    assert (await house.create())["status"] == "pending"
