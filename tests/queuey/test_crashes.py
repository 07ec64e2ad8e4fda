"""A queue that is killed, a full disk, a file that somebody else has: nothing acknowledged is lost."""

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


class Alone:
    """A queue without runners, and what it has acknowledged."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.path = folder / "q.db"
        calm = {"DB_PATH": str(self.path), "SWEEP_INTERVAL": "3600", "LOG_LEVEL": "ERROR"}
        self.process = Process(folder, "queue", "queue", {**calm, **settings})
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
        """The file is whole, and what is counted in it is right."""
        assert self.sql("PRAGMA integrity_check") == [("ok",)]
        counted = dict(self.sql("SELECT status, entities FROM jobs_in_state WHERE entities > 0"))
        assert counted == dict(self.sql("SELECT status, count(*) FROM jobs GROUP BY status"))


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    made = Alone(tmp_path)
    made.start()
    yield made
    made.http.close()
    made.process.kill()


class Burst:
    """Threads that create, claim and complete until the queue is gone, and note what they were told."""

    def __init__(self, queue: Alone) -> None:
        self._queue = queue
        self.told: dict[str, str] = {}
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work, args=(f"r{number}",)) for number in range(4)]
        for each in self._threads:
            each.start()

    def over(self) -> dict[str, str]:
        for each in self._threads:
            each.join()
        return self.told

    def _work(self, name: str) -> None:
        with httpx.Client(base_url=self._queue.process.url, timeout=30, verify=NO_TLS) as http:
            try:
                while True:
                    self._note(http.post("/jobs/create", json={"binary_addr": "b"}))
                    claimed = http.post("/jobs/claim", json={"runner_id": name})
                    self._note(claimed)
                    end = {"status": "completed", "output_addr": "o", "runner_id": name}
                    self._note(http.post(f"/jobs/{claimed.json()['job_id']}/complete", json=end))
            except httpx.HTTPError:
                return

    def _note(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        job = answer.json()
        with self._lock:
            order = ("pending", "active", "completed")
            known = self.told.get(job["job_id"], "pending")
            self.told[job["job_id"]] = max(known, job["status"], key=order.index)


@pytest.mark.chaos
@pytest.mark.req("QQ-019", "QQ-020", "QQ-021")
def test_what_was_acknowledged_outlives_kill_9(alone: Alone, chaos: Chaos) -> None:
    """Whoever was told of a change finds it, or a later one, however the queue ended; nothing is reset."""
    order = ("pending", "active", "completed")
    told: dict[str, str] = {}
    for chance in chaos.rounds(2):
        if chaos.counted:
            alone.start()
        burst = Burst(alone)
        wait_until(lambda burst=burst: burst.told)  # type: ignore[misc]
        time.sleep(chance.uniform(0.05, 0.6))
        alone.process.kill()
        told |= burst.over()
        alone.check()
        found = alone.statuses()
        assert told.keys() <= found.keys()
        behind = {
            key: (said, found[key])
            for key, said in told.items()
            if order.index(found[key]) < order.index(said)
        }
        assert behind == {}
    before = alone.sql("SELECT * FROM jobs ORDER BY number")
    alone.start()
    assert alone.sql("SELECT * FROM jobs ORDER BY number") == before
    chaos.count(kills=chaos.counted["rounds"], jobs=len(told), lost=0)
    assert told


@pytest.mark.req("QQ-113")
def test_a_full_disk_is_told_and_nothing_is_half_there(alone: Alone) -> None:
    """The kernel refuses every write beyond the beginning of a file, as it does where a disk is full."""
    made = [alone.create() for _ in range(40)]
    process = alone.process.process
    assert process is not None
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (64 * 1024, resource.RLIM_INFINITY))
    before = alone.statuses()
    for path, body in (
        ("/jobs/create", {"binary_addr": "b"}),
        ("/jobs/claim", {"runner_id": "r"}),
        (f"/jobs/{made[0]}/cancel", {}),
    ):
        answer = alone.post(path, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "STORE_UNAVAILABLE")
        assert answer.headers["retry-after"] == "1"
        assert "disk" not in answer.text
    assert alone.http.get(f"{alone.process.url}/jobs/{made[0]}").json()["status"] == "pending"
    assert alone.statuses() == before
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert alone.post("/jobs/claim", runner_id="r").json()["job_id"] == made[0]
    assert len(alone.statuses() | {alone.create(): ""}) == 41
    alone.process.kill()
    alone.check()


@pytest.mark.req("QQ-113")
def test_a_place_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    queue = Process(tmp_path, "queue", "queue", {"DB_PATH": "/proc/q.db"}).begin()
    assert queue.process is not None
    assert queue.process.wait(60) != 0
    assert "/proc/q.db" in (tmp_path / "queue.log").read_text()


@pytest.mark.req("QQ-083")
def test_a_second_queue_on_the_same_file_is_refused(alone: Alone, tmp_path: Path) -> None:
    second = Process(tmp_path, "queue", "second", {"DB_PATH": str(alone.path)}).begin()
    assert second.process is not None
    assert second.process.wait(60) != 0
    assert alone.process.process is not None
    text = (tmp_path / "second.log").read_text()
    assert f"is in use by process {alone.process.process.pid}" in text
    assert "Traceback" not in text
    alone.create()


@pytest.mark.req("QQ-X11")
def test_a_clean_stop_leaves_one_file(alone: Alone) -> None:
    made = alone.create()
    assert alone.process.stop() == 0
    assert not alone.path.with_name("q.db-wal").exists()
    assert alone.statuses() == {made: "pending"}
    alone.start()


@pytest.mark.chaos
@pytest.mark.req("QQ-042", "QQ-068", "QQ-083", "QQ-107")
def test_many_claimers_take_each_job_once(alone: Alone, chaos: Chaos) -> None:
    """Among processes, and with an end for each job: no job twice, none left."""
    made, taken = list[str](), list[str]()
    with ThreadPoolExecutor(CLAIMERS) as pool:

        def work(name: str) -> list[str]:
            own = []
            while (answer := alone.post("/jobs/claim", runner_id=name)).status_code == 200:
                own.append(answer.json()["job_id"])
                ends = ({"status": "completed", "output_addr": name}, {"status": "failed"})
                for end in ends if len(own) % 2 else ends[::-1]:
                    alone.post(f"/jobs/{own[-1]}/complete", runner_id=name, **end)
            assert answer.status_code == 204
            return own

        for _ in chaos.rounds(1):
            made += pool.map(lambda _: alone.create(), range(JOBS))
            for own in pool.map(work, (f"r{n}" for n in range(CLAIMERS))):
                taken += own
    assert sorted(taken) == sorted(made)
    assert set(alone.statuses().values()) == {"completed", "failed"}
    changes = alone.sql("SELECT count(*) FROM job_changes GROUP BY job_id")
    assert changes == [(3,)] * len(made)
    chaos.count(jobs=len(made), claimed_twice=0)
    alone.check()


@pytest.mark.req("QQ-040", "QQ-044")
def test_jobs_of_a_queue_that_was_killed_come_back_in_time(tmp_path: Path) -> None:
    queue = Alone(tmp_path, ABANDONED_AGE="0.5", SWEEP_INTERVAL="0.1")
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
