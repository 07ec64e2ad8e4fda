"""Claims, heartbeats (tickles) and ends of jobs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handlers.queuey.queue import Queue
from tests.support.eventually import eventually
from tests.support.queuey.in_process_queue import House

UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.mark.req("QQ-067", "QQ-074", "QQ-075", "QQ-076", "QQ-077", "QQ-079", "QQ-084")
async def test_the_oldest_job_is_claimed_first(house: House) -> None:
    created = [(await house.create())["job_id"] for _ in range(3)]
    for number, job_id in enumerate(created):
        claimed = await house.claim("r")
        assert claimed is not None
        assert claimed["job_id"] == job_id
        assert (claimed["status"], claimed["runner_id"], claimed["run_attempts"]) == (
            "active",
            "r",
            1,
        )
        assert claimed == await house.get(job_id)
        assert len(house.sql("SELECT 1 FROM jobs WHERE status = 'active'")) == number + 1


@pytest.mark.req("QQ-078")
@pytest.mark.parametrize("body", [{}, {"runner_id": None}, {"runner_id": ""}, {"runner_id": 5}])
async def test_a_claim_needs_a_runner_id(house: House, body: dict[str, object]) -> None:
    await house.create()
    answer = await house.ask("POST", "/jobs/claim", body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "runner_id")
    assert house.sql("SELECT status FROM jobs") == [("pending",)]


@pytest.mark.req("QQ-059", "QQ-081")
async def test_a_claim_without_pending_jobs(house: House) -> None:
    for status in ("active", "completed", "failed"):
        await house.create_in_status(status)
    before = house.rows()
    answer = await house.ask("POST", "/jobs/claim", {"runner_id": "r"})
    assert (answer.status_code, answer.content) == (204, b"")
    assert house.rows() == before


@pytest.mark.req("QQ-082")
async def test_equal_times_are_claimed_in_order_and_an_abandoned_job_keeps_its_position(house: House) -> None:
    house.world.freeze()
    created = [(await house.create())["job_id"] for _ in range(20)]
    assert (await house.claim())["job_id"] == created[0]  # type: ignore[index]
    house.world.step(300_001)
    claimed = [(await house.claim())["job_id"] for _ in created]  # type: ignore[index]
    assert claimed == created


@pytest.mark.req("QQ-083")
async def test_no_job_is_claimed_twice(house: House) -> None:
    await asyncio.gather(*(house.create() for _ in range(20)))
    claimed = await asyncio.gather(*(house.claim(f"r{number}") for number in range(50)))
    ids = [job["job_id"] for job in claimed if job is not None]
    assert (len(ids), len(set(ids))) == (20, 20)


@pytest.mark.req("QQ-085")
async def test_a_runner_may_claim_several_jobs(house: House) -> None:
    first, second = await house.create_active("r"), await house.create_active("r")
    assert first["job_id"] != second["job_id"]
    assert (await house.get(first["job_id"]))["status"] == "active"


@pytest.mark.req("QQ-X12")
async def test_a_claim_may_wait_for_a_job(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    look_until = Queue._poll_until

    async def note_waits(self: Queue, look: Any, news: Any, wait_ms: int) -> Any:
        def wait(seconds: float) -> Any:
            waits.append(seconds)
            return news(seconds)

        return await look_until(self, look, wait, wait_ms)

    monkeypatch.setattr(Queue, "_poll_until", note_waits)
    waiting = [
        asyncio.create_task(house.ask("POST", "/jobs/claim", {"runner_id": f"r{n}", "wait_ms": 20000}))
        for n in range(3)
    ]
    await eventually(lambda: len(waits) >= 3, "all have looked in vain")
    created = {(await house.create())["job_id"] for _ in range(3)}
    answers = await asyncio.gather(*waiting)
    assert {each.json()["job_id"] for each in answers} == created


@pytest.mark.req("QQ-088", "QQ-089", "QQ-092")
@pytest.mark.parametrize("body", [None, {}])
async def test_a_heartbeat_changes_the_time_only(house: House, body: dict[str, object] | None) -> None:
    house.world.freeze()
    job = await house.create_active()
    house.world.step(5)
    answer = await house.ask("POST", f"/jobs/{job['job_id']}/tickle", body)
    assert answer.status_code == 200
    assert answer.json() == {**job, "updated_at": job["updated_at"] + 5}


@pytest.mark.req("QQ-072", "QQ-090", "QQ-102")
@pytest.mark.parametrize("job_id", [UNKNOWN, "no-uuid", "create", "claim", "%00", "..%2f"])
async def test_an_unknown_job_is_not_found(house: House, job_id: str) -> None:
    for method, path, body in (
        ("GET", f"/jobs/{job_id}", None),
        ("POST", f"/jobs/{job_id}/tickle", {}),
        ("POST", f"/jobs/{job_id}/complete", {"status": "failed"}),
        ("POST", f"/jobs/{job_id}/cancel", None),
        ("GET", f"/jobs/{job_id}/report", None),
    ):
        answer = await house.ask(method, path, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "JOB_NOT_FOUND"), path


@pytest.mark.req("QQ-091", "QQ-102", "QQ-114")
@pytest.mark.parametrize("status", ["pending", "completed", "failed"])
async def test_a_job_that_is_not_active_cannot_be_ended(house: House, status: str) -> None:
    job = await house.create_in_status(status)
    sign = await house.tickle(job["job_id"])
    end = await house.complete(job["job_id"], output_addr="another")
    assert {each.status_code for each in (sign, end)} == {400}
    assert {each.json()["error"]["code"] for each in (sign, end)} == {"JOB_NOT_ACTIVE"}
    assert await house.get(job["job_id"]) == job


@pytest.mark.req("QQ-093", "QQ-103")
async def test_a_runner_without_the_lease_is_refused(house: House) -> None:
    house.world.freeze()
    job = await house.create_active("a")
    house.world.step(300_001)
    reclaimed = await house.claim("b")
    assert reclaimed is not None
    for answer in (
        await house.tickle(job["job_id"], runner_id="a"),
        await house.complete(job["job_id"], runner_id="a"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "NOT_OWNER")
    assert await house.get(job["job_id"]) == reclaimed
    assert (await house.tickle(job["job_id"])).status_code == 200
    assert (await house.complete(job["job_id"], runner_id="b")).status_code == 200


@pytest.mark.req("QQ-104")
async def test_an_earlier_attempt_of_the_same_runner_is_refused(house: House) -> None:
    house.world.freeze()
    job = await house.create_active("a")
    house.world.step(300_001)
    assert await house.claim("a") is not None
    stale = await house.complete(job["job_id"], runner_id="a", run_attempts=job["run_attempts"])
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "STALE_ATTEMPT")
    assert (await house.complete(job["job_id"], runner_id="a", run_attempts=3)).status_code == 200


@pytest.mark.req("QQ-103")
async def test_runner_ids_may_be_required(house: House) -> None:
    await house.close()
    await house.open(REQUIRE_RUNNER_ID="true")
    job = await house.create_active("a")
    for answer in (await house.tickle(job["job_id"]), await house.complete(job["job_id"])):
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "runner_id")
    assert (await house.complete(job["job_id"], runner_id="a")).status_code == 200


@pytest.mark.req("QQ-095", "QQ-110")
@pytest.mark.parametrize("status", ["pending", "active", "COMPLETED", None, "done", 3])
async def test_no_other_status_ends_a_job(house: House, status: object) -> None:
    job = await house.create_active()
    answer = await house.ask(
        "POST", f"/jobs/{job['job_id']}/complete", {"status": status, "output_addr": "o"}
    )
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "status")
    assert (await house.ask("POST", f"/jobs/{job['job_id']}/complete", {})).status_code == 400
    assert await house.get(job["job_id"]) == job


@pytest.mark.req("QQ-096", "QQ-097", "QQ-098", "QQ-100", "QQ-101", "QQ-108")
@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_a_completed_job_has_its_fields(house: House, status: str) -> None:
    house.world.freeze()
    job = await house.create_active("r")
    house.world.step(7)
    answer = (await house.complete(job["job_id"], status, output_addr="o")).json()
    now = house.world.at_ms
    assert answer == {**job, "status": status, "output_addr": "o", "completed_at": now, "updated_at": now}
    assert answer == await house.get(job["job_id"])


@pytest.mark.req("QQ-099")
async def test_completed_needs_an_output_and_failed_does_not(house: House) -> None:
    job = await house.create_active()
    without = await house.ask("POST", f"/jobs/{job['job_id']}/complete", {"status": "completed"})
    assert (without.status_code, without.json()["error"]["field"]) == (400, "output_addr")
    failed = await house.complete(job["job_id"], "failed")
    assert (failed.status_code, failed.json()["output_addr"]) == (200, None)


@pytest.mark.req("QQ-106")
async def test_a_repeated_end_has_the_same_answer(house: House) -> None:
    house.world.freeze()
    job = await house.create_active("r")
    first = await house.complete(job["job_id"], runner_id="r")
    house.world.step(10)
    again = await house.complete(job["job_id"], runner_id="r")
    assert (again.status_code, again.json()) == (200, first.json())
    for other in ({"output_addr": "else"}, {"status": "failed"}, {"runner_id": "s"}):
        assert (await house.complete(job["job_id"], **{"runner_id": "r", **other})).status_code == 400


@pytest.mark.req("QQ-107")
async def test_of_two_concurrent_ends_one_counts(house: House) -> None:
    for _ in range(25):
        job = await house.create_active()
        one, other = await asyncio.gather(
            house.complete(job["job_id"]), house.complete(job["job_id"], "failed")
        )
        assert sorted((one.status_code, other.status_code)) == [200, 400]
        winner = one if one.status_code == 200 else other
        assert (await house.get(job["job_id"]))["status"] == winner.json()["status"]


@pytest.mark.req("QQ-X06")
@pytest.mark.parametrize("status", ["pending", "active"])
async def test_a_job_can_be_cancelled(house: House, status: str) -> None:
    job = await house.create_in_status(status)
    ended = (await house.ask("POST", f"/jobs/{job['job_id']}/cancel")).json()
    assert ended["status"] == "failed"
    assert await house.claim() is None
    assert (await house.tickle(job["job_id"])).status_code == 400
    report = (await house.ask("GET", f"/jobs/{job['job_id']}/report")).json()
    assert report["reason"] == "CANCELED"
    assert (await house.ask("POST", f"/jobs/{job['job_id']}/cancel")).status_code == 400


@pytest.mark.req("QQ-X06")
async def test_a_failed_job_can_be_retried(house: House) -> None:
    failed = await house.create_in_status("failed")
    again = (await house.ask("POST", f"/jobs/{failed['job_id']}/retry")).json()
    assert again["job_id"] != failed["job_id"]
    assert (again["status"], again["binary_addr"]) == ("pending", failed["binary_addr"])
    refused = await house.ask("POST", f"/jobs/{again['job_id']}/retry")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "JOB_NOT_FAILED")


@pytest.mark.req("QQ-X11")
async def test_a_runner_releases_a_job(house: House) -> None:
    job = await house.create_active("r")
    back = await house.ask("POST", f"/jobs/{job['job_id']}/release", {"runner_id": "r", "run_attempts": 1})
    assert (back.json()["status"], back.json()["runner_id"], back.json()["run_attempts"]) == (
        "pending",
        None,
        1,
    )


async def claim_attempts(house: House) -> int:
    """Claim a job; return its attempts."""
    job = await house.claim("r")
    assert job is not None
    return int(job["run_attempts"])


@pytest.mark.req("QQ-X11", "QQ-032", "QQ-033", "QQ-034", "QQ-104")
async def test_a_release_counts_no_attempt_and_fences(house: House) -> None:
    """However often that is done; a runner that cannot run it counts, and an old lease is refused."""
    job = await house.create_active("r")
    path = f"/jobs/{job['job_id']}/release"
    for attempt in range(1, 7):
        lease = {"runner_id": "r", "run_attempts": attempt}
        back = (await house.ask("POST", path, lease)).json()
        assert (back["status"], back["run_attempts"]) == ("pending", attempt)
        late = {**lease, "status": "completed", "output_addr": "o"}
        stale = await house.ask("POST", f"/jobs/{job['job_id']}/complete", late)
        assert stale.json()["error"]["code"] == "JOB_NOT_ACTIVE"
        assert await claim_attempts(house) == attempt + 1
        stale = await house.ask("POST", path, lease)
        assert (stale.status_code, stale.json()["error"]["code"]) == (409, "STALE_ATTEMPT")
    # One claim and one abandonment count, as with a job that was never released.
    troubled = {"runner_id": "r", "run_attempts": 7, "abandoned": True}
    assert (await house.ask("POST", path, troubled)).json()["status"] == "pending"
    assert await claim_attempts(house) == 9
    ended = (await house.ask("POST", path, {**troubled, "run_attempts": 9})).json()
    assert (ended["status"], ended["run_attempts"]) == ("failed", 10)


@pytest.mark.req("QQ-X05")
async def test_jobs_are_listed_and_counted(house: House) -> None:
    created = [
        await house.create_in_status(status) for status in ("completed", "failed", "active", "pending")
    ]
    counts = (await house.ask("GET", "/counts")).json()
    assert counts == {"pending": 1, "active": 1, "completed": 1, "failed": 1}
    listed = (await house.ask("GET", "/jobs")).json()
    assert listed["jobs"] == created[::-1]
    some = (await house.ask("GET", "/jobs?status=failed&status=active")).json()["jobs"]
    assert [job["status"] for job in some] == ["active", "failed"]
    assert (await house.ask("GET", "/jobs?runner_id=nobody")).json()["jobs"] == []
    first = (await house.ask("GET", "/jobs?page_size=3")).json()
    rest = (await house.ask("GET", f"/jobs?page_size=3&page_token={first['next_page_token']}")).json()
    assert [*first["jobs"], *rest["jobs"]] == created[::-1]
    assert rest["next_page_token"] == ""


@pytest.mark.req("QQ-073")
async def test_reads_change_nothing(house: House) -> None:
    for status in ("completed", "active", "pending"):
        await house.create_in_status(status)
    before = house.rows()
    jobs = (await house.ask("GET", "/jobs")).json()["jobs"]
    for job in jobs:
        assert await house.get(job["job_id"]) == await house.get(job["job_id"])
    assert house.rows() == before
