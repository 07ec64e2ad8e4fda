"""Jobs in Redis, where the queue and the server are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from runtime.embedded.redis import EmbeddedRedis
from tests.support.chaos import Chaos
from tests.support.eventually import wait_until
from tests.support.plain_http import NO_TLS
from tests.support.queuey.processes import Process

BRIEF = {"ABANDONED_AGE": "1", "SWEEP_INTERVAL": "0.05", "MAX_ATTEMPTS": "1000"}
"""Settings under which a job is abandoned while a test waits."""


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
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisQueue]:
    """A queue, with the settings of the test."""
    queue = RedisQueue(tmp_path, **getattr(request, "param", {}))
    yield queue
    queue.http.close()
    queue.process.kill()
    queue.server.remove()


@pytest.mark.chaos
@pytest.mark.parametrize("queue", [BRIEF], indirect=True, ids=[""])
def test_what_was_acknowledged_outlives_queue_and_server(queue: RedisQueue, chaos: Chaos) -> None:
    """Both are killed; jobs that waited wait, one that ran is abandoned, and a key still names its job."""
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
