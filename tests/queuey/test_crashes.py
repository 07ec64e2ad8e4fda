"""A killed queue, a full disk, a locked file: no acknowledged change is lost."""

from __future__ import annotations

import resource
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.chaos import Chaos
from tests.support.eventually import wait_until
from tests.support.plain_http import NO_TLS
from tests.support.queuey.processes import Process

CLAIMERS, JOBS = 20, 200


class LoneQueue:
    """A queue without runners, and its acknowledged changes."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.path = folder / "q.db"
        settings_ = {"DB_PATH": str(self.path), "SWEEP_INTERVAL": "3600", "LOG_LEVEL": "ERROR"}
        self.process = Process(folder, "queue", "queue", {**settings_, **settings})
        self.http = httpx.Client(timeout=30, limits=httpx.Limits(max_connections=100), verify=NO_TLS)

    def start(self) -> None:
        self.process.begin().wait()

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(f"{self.process.url}{path}", json=body)

    def create(self) -> str:
        answer = self.post("/jobs/create", binary_addr="b")
        assert answer.status_code == 200, answer.text
        job_id: str = answer.json()["job_id"]
        return job_id

    def sql(self, statement: str) -> list[Any]:
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def statuses(self) -> dict[str, str]:
        return dict(self.sql("SELECT job_id, status FROM jobs"))

    def check(self) -> None:
        """The file is consistent, and its counters are right."""
        assert self.sql("PRAGMA integrity_check") == [("ok",)]
        counted = dict(self.sql("SELECT status, entities FROM jobs_in_state WHERE entities > 0"))
        assert counted == dict(self.sql("SELECT status, count(*) FROM jobs GROUP BY status"))


@pytest.fixture
def lone_queue(tmp_path: Path) -> Iterator[LoneQueue]:
    queue = LoneQueue(tmp_path)
    queue.start()
    yield queue
    queue.http.close()
    queue.process.kill()


class Burst:
    """Threads that create, claim and complete until the queue is killed, and record the answers."""

    def __init__(self, queue: LoneQueue) -> None:
        self._queue = queue
        self.acknowledged: dict[str, str] = {}
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work, args=(f"r{number}",)) for number in range(4)]
        for each in self._threads:
            each.start()

    def over(self) -> dict[str, str]:
        for each in self._threads:
            each.join()
        return self.acknowledged

    def _work(self, name: str) -> None:
        with httpx.Client(base_url=self._queue.process.url, timeout=30, verify=NO_TLS) as http:
            try:
                while True:
                    self._record(http.post("/jobs/create", json={"binary_addr": "b"}))
                    claimed = http.post("/jobs/claim", json={"runner_id": name})
                    self._record(claimed)
                    end = {"status": "completed", "output_addr": "o", "runner_id": name}
                    self._record(http.post(f"/jobs/{claimed.json()['job_id']}/complete", json=end))
            except httpx.HTTPError:
                return

    def _record(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        job = answer.json()
        with self._lock:
            order = ("pending", "active", "completed")
            known = self.acknowledged.get(job["job_id"], "pending")
            self.acknowledged[job["job_id"]] = max(known, job["status"], key=order.index)


@pytest.mark.chaos
@pytest.mark.req("QQ-019", "QQ-020", "QQ-021")
def test_acknowledged_changes_survive_kill_9(lone_queue: LoneQueue, chaos: Chaos) -> None:
    """Every acknowledged change, or a later one, is there after each kill; nothing is reset."""
    order = ("pending", "active", "completed")
    acknowledged: dict[str, str] = {}
    for chance in chaos.rounds(2):
        if chaos.counted:
            lone_queue.start()
        burst = Burst(lone_queue)
        wait_until(lambda burst=burst: burst.acknowledged)  # type: ignore[misc]
        time.sleep(chance.uniform(0.05, 0.6))
        lone_queue.process.kill()
        acknowledged |= burst.over()
        lone_queue.check()
        found = lone_queue.statuses()
        assert acknowledged.keys() <= found.keys()
        behind = {
            key: (status, found[key])
            for key, status in acknowledged.items()
            if order.index(found[key]) < order.index(status)
        }
        assert behind == {}
    before = lone_queue.sql("SELECT * FROM jobs ORDER BY number")
    lone_queue.start()
    assert lone_queue.sql("SELECT * FROM jobs ORDER BY number") == before
    chaos.count(kills=chaos.counted["rounds"], jobs=len(acknowledged), lost=0)
    assert acknowledged


@pytest.mark.req("QQ-113")
def test_a_full_disk_is_an_error_and_nothing_is_half_written(lone_queue: LoneQueue) -> None:
    """The kernel refuses every write beyond the beginning of a file, as it does where a disk is full."""
    jobs = [lone_queue.create() for _ in range(40)]
    process = lone_queue.process.process
    assert process is not None
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (64 * 1024, resource.RLIM_INFINITY))
    before = lone_queue.statuses()
    for path, body in (
        ("/jobs/create", {"binary_addr": "b"}),
        ("/jobs/claim", {"runner_id": "r"}),
        (f"/jobs/{jobs[0]}/cancel", {}),
    ):
        answer = lone_queue.post(path, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "STORE_UNAVAILABLE")
        assert answer.headers["retry-after"] == "1"
        assert "disk" not in answer.text
    assert lone_queue.http.get(f"{lone_queue.process.url}/jobs/{jobs[0]}").json()["status"] == "pending"
    assert lone_queue.statuses() == before
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert lone_queue.post("/jobs/claim", runner_id="r").json()["job_id"] == jobs[0]
    assert len(lone_queue.statuses() | {lone_queue.create(): ""}) == 41
    lone_queue.process.kill()
    lone_queue.check()


@pytest.mark.req("QQ-113")
def test_an_unwritable_path_stops_the_start(tmp_path: Path) -> None:
    queue = Process(tmp_path, "queue", "queue", {"DB_PATH": "/proc/q.db"}).begin()
    assert queue.process is not None
    assert queue.process.wait(60) != 0
    assert "/proc/q.db" in (tmp_path / "queue.log").read_text()


@pytest.mark.req("QQ-083")
def test_a_second_queue_on_the_same_file_is_refused(lone_queue: LoneQueue, tmp_path: Path) -> None:
    second = Process(tmp_path, "queue", "second", {"DB_PATH": str(lone_queue.path)}).begin()
    assert second.process is not None
    assert second.process.wait(60) != 0
    assert lone_queue.process.process is not None
    text = (tmp_path / "second.log").read_text()
    assert f"is in use by process {lone_queue.process.process.pid}" in text
    assert "Traceback" not in text
    lone_queue.create()


@pytest.mark.req("QQ-X11")
def test_a_clean_stop_closes_the_journal(lone_queue: LoneQueue) -> None:
    job = lone_queue.create()
    assert lone_queue.process.stop() == 0
    assert not lone_queue.path.with_name("q.db-wal").exists()
    assert lone_queue.statuses() == {job: "pending"}
    lone_queue.start()


@pytest.mark.chaos
@pytest.mark.req("QQ-042", "QQ-068", "QQ-083", "QQ-107")
def test_concurrent_claims_get_each_job_once(lone_queue: LoneQueue, chaos: Chaos) -> None:
    """Among processes, and with an end for each job: no job twice, none missing."""
    jobs, claimed = list[str](), list[str]()
    with ThreadPoolExecutor(CLAIMERS) as pool:

        def work(name: str) -> list[str]:
            own = []
            while (answer := lone_queue.post("/jobs/claim", runner_id=name)).status_code == 200:
                own.append(answer.json()["job_id"])
                ends = ({"status": "completed", "output_addr": name}, {"status": "failed"})
                for end in ends if len(own) % 2 else ends[::-1]:
                    lone_queue.post(f"/jobs/{own[-1]}/complete", runner_id=name, **end)
            assert answer.status_code == 204
            return own

        for _ in chaos.rounds(1):
            jobs += pool.map(lambda _: lone_queue.create(), range(JOBS))
            for own in pool.map(work, (f"r{n}" for n in range(CLAIMERS))):
                claimed += own
    assert sorted(claimed) == sorted(jobs)
    assert set(lone_queue.statuses().values()) == {"completed", "failed"}
    changes = lone_queue.sql("SELECT count(*) FROM job_changes GROUP BY job_id")
    assert changes == [(3,)] * len(jobs)
    chaos.count(jobs=len(jobs), claimed_twice=0)
    lone_queue.check()


@pytest.mark.req("QQ-040", "QQ-044")
def test_active_jobs_of_a_killed_queue_are_abandoned_in_time(tmp_path: Path) -> None:
    queue = LoneQueue(tmp_path, ABANDONED_AGE="0.5", SWEEP_INTERVAL="0.1")
    queue.start()
    try:
        job = queue.create()
        assert queue.post("/jobs/claim", runner_id="r").status_code == 200
        queue.process.kill()
        ((claimed_ms,),) = queue.sql("SELECT updated_at FROM jobs")
        wait_until(lambda: time.time() * 1000 > claimed_ms + 500, "it is overdue")
        queue.start()
        wait_until(queue.statuses, wanted=lambda seen: seen[job] == "pending")
    finally:
        queue.http.close()
        queue.process.kill()
