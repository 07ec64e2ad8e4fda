"""Queues whose jobs are on a server: several at once, and killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from generated.queuey.system import SYSTEM
from runtime.launch.embedded.redis import EmbeddedRedis
from tests.support.chaos import Chaos
from tests.support.eventually import wait_until
from tests.support.plain_http import NO_TLS
from tests.support.queuey.processes import Process

ENGINES = ("postgres", "redis")
BRIEF = {"ABANDONED_AGE": "1", "SWEEP_INTERVAL": "0.05", "MAX_ATTEMPTS": "1000"}
"""Settings under which a job is abandoned while a test waits."""


class Queues:
    """Two queues with the same jobs."""

    def __init__(self, folder: Path, engine: str, settings: dict[str, str]) -> None:
        shared = {"LOG_LEVEL": "ERROR", "SWEEP_INTERVAL": "3600", **settings}
        names = ("first", "second")
        self.processes = [Process(folder, "queue", each, {**shared}, engine).begin() for each in names]
        self.http = httpx.Client(timeout=30, verify=NO_TLS)

    def post(self, queue: int, path: str, **body: Any) -> httpx.Response:
        """Call one of them."""
        return self.http.post(f"{self.processes[queue].url}{path}", json=body)

    def create(self, **body: Any) -> str:
        """Create a job at the first."""
        answer = self.post(0, "/jobs/create", binary_addr="b", **body)
        assert answer.status_code == 200, answer.text
        job_id: str = answer.json()["job_id"]
        return job_id

    def status(self, job_id: str) -> str:
        """The status of a job as the second knows it."""
        return str(self.http.get(f"{self.processes[1].url}/jobs/{job_id}").json()["status"])


@pytest.fixture(params=ENGINES)
def deployment(request: pytest.FixtureRequest) -> str:
    """The engine of a test."""
    name: str = request.param
    return name


@pytest.fixture
def queues(deployment: str, variables: dict[str, str], tmp_path: Path) -> Iterator[Queues]:
    """Both are ready."""
    queues = Queues(tmp_path, deployment, variables)
    for each in queues.processes:
        each.wait()
    yield queues
    queues.http.close()
    for each in queues.processes:
        each.kill()


def test_the_interfaces_are_those_of_the_system() -> None:
    own = SYSTEM.deployments["local"].nodes
    for engine in ENGINES:
        for name, other in SYSTEM.deployments[engine].nodes.items():
            for interface in ("serves", "http", "port_variable", "finds", "announced"):
                assert getattr(other, interface) == getattr(own[name], interface)


def test_a_key_names_one_job(queues: Queues) -> None:
    """Whichever of them is asked."""
    body = {"binary_addr": "b", "idempotency_key": "one"}
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(queues.post, number % 2, "/jobs/create", **body) for number in range(8)]
        assert len({each.result().json()["job_id"] for each in asked}) == 1


def test_no_job_is_claimed_twice(queues: Queues) -> None:
    ids = [queues.create() for _ in range(40)]
    with ThreadPoolExecutor(8) as pool:
        claims = [pool.submit(claim_all, queues, number % 2, f"r{number}") for number in range(8)]
        claimed = Counter(job for each in claims for job in each.result())
    assert claimed == Counter(ids)


def test_accepted_jobs_outlive_a_killed_queue(queues: Queues) -> None:
    """Those that wait, and one that runs: its lease holds at the other queue, and at the same one later."""
    ids = [queues.create() for _ in range(5)]
    active = queues.post(0, "/jobs/claim", runner_id="r").json()["job_id"]
    queues.processes[0].kill()
    assert {queues.status(each) for each in ids} == {"pending", "active"}
    other = queues.post(1, "/jobs/claim", runner_id="s").json()["job_id"]
    queues.processes[0].begin().wait()
    end = {"status": "completed", "output_addr": "o"}
    stranger = queues.post(0, f"/jobs/{active}/complete", **end, runner_id="s")
    assert stranger.status_code == 409, stranger.text
    for job, runner in ((active, "r"), (other, "s")):
        answer = queues.post(0, f"/jobs/{job}/complete", **end, runner_id=runner)
        assert answer.status_code == 200, answer.text
    assert Counter(map(queues.status, ids)) == {"completed": 2, "pending": 3}


def claim_all(queues: Queues, queue: int, runner: str) -> list[str]:
    """Claim jobs until there are none."""
    claimed: list[str] = []
    while (answer := queues.post(queue, "/jobs/claim", runner_id=runner)).status_code == 200:
        claimed.append(answer.json()["job_id"])
    assert answer.status_code == 204, answer.text
    return claimed


class RedisQueue:
    """A queue around a Redis, which has on disk what it acknowledges."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.server = EmbeddedRedis(folder / "redis", settings={"appendfsync": "always"})
        self.server.start()
        self.process = Process(folder, "queue", "queue", {"REDIS_URL": self.server.url, **settings}, "redis")
        self.process.begin().wait()
        self.http = httpx.Client(timeout=60, verify=NO_TLS)

    def ask(self, path: str, **body: str) -> dict[str, str]:
        answer = self.http.post(f"{self.process.url}{path}", json=body)
        assert answer.status_code in (200, 204), answer.text
        found: dict[str, str] = answer.json() if answer.status_code == 200 else {}
        return found

    def create(self, key: str) -> str:
        return self.ask("/jobs/create", binary_addr="b", idempotency_key=key)["job_id"]

    def claim(self, runner: str) -> str:
        """Claim a job; return its id, or nothing."""
        return self.ask("/jobs/claim", runner_id=runner).get("job_id", "")

    def run_one(self, runner: str) -> str:
        """Claim a job and complete it; return its id, or nothing if it was abandoned meanwhile."""
        if not (job := self.claim(runner)):
            return ""
        body = {"status": "completed", "output_addr": "o", "runner_id": runner}
        answer = self.http.post(f"{self.process.url}/jobs/{job}/complete", json=body)
        return job if answer.status_code == 200 else ""

    def status(self, job_id: str) -> str:
        found: str = self.http.get(f"{self.process.url}/jobs/{job_id}").json()["status"]
        return found


@pytest.fixture
def redis_queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisQueue]:
    """A queue, with the settings of the test."""
    queue = RedisQueue(tmp_path, **getattr(request, "param", {}))
    yield queue
    queue.http.close()
    queue.process.kill()
    queue.server.remove()


@pytest.mark.chaos
@pytest.mark.parametrize("redis_queue", [BRIEF], indirect=True, ids=[""])
def test_what_was_acknowledged_outlives_queue_and_server(redis_queue: RedisQueue, chaos: Chaos) -> None:
    """Both are killed; jobs that waited wait, one that ran is abandoned, and a key still names its job."""
    queue = redis_queue
    acknowledged: dict[str, str] = {}
    for number, _ in enumerate(chaos.rounds(2)):
        acknowledged |= {key: queue.create(key) for key in (f"{number}.{each}" for each in range(5))}
        held = queue.claim("lost")
        queue.process.kill()
        queue.server.kill()
        queue.server.start()
        queue.process.begin().wait()
        assert {key: queue.create(key) for key in acknowledged} == acknowledged
        assert held in acknowledged.values()
        wait_until(lambda job=held: queue.status(job), wanted=lambda seen: seen == "pending")  # type: ignore[misc]
        assert queue.status(wait_until(lambda: queue.run_one("heir"))) == "completed"
    chaos.count(jobs=len(acknowledged), lost=0)
