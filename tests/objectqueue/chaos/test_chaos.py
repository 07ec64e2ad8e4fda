"""Random kills of workers and the store, clock skew, races: every task ends, no attempt has two workers."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from tests.support.chaos import Chaos
from tests.support.deep import DEEP
from tests.support.eventually import eventually
from tests.support.objectqueue.crew import Crew, Process, Skewed
from tests.support.objectqueue.verdict import verify
from tests.support.s3.fixtures import Bucket, raw_client
from tests.support.s3.proxy import S3Proxy

LIMIT_S = 4


@pytest.mark.chaos
@pytest.mark.req("OQ-252", "OQ-253", "OQ-254", "OQ-255", "OQ-256", "OQ-240", "OQ-002", "OQ-113")
async def test_every_task_ends_whatever_is_killed(
    own_s3: EmbeddedSeaweedfs, tmp_path: Path, chaos: Chaos
) -> None:
    """Workers are killed at random and the store once; the versions of all tasks form legal chains."""
    tasks, crews, kills = chaos.size(16, 200), 3, chaos.size(2, 3)
    raw = raw_client(own_s3)
    raw.create_bucket(Bucket="chaos")
    raw.put_bucket_versioning(Bucket="chaos", VersioningConfiguration={"Status": "Enabled"})
    crew, ledger = Crew(Bucket("chaos", own_s3.url, raw), tmp_path), tmp_path / "ledger"
    settings = {
        "QO_NO_MONITOR": "false",
        "QO_MONITOR_CHECK_INTERVAL": "0.5",
        "QO_MONITOR_SWEEP_INTERVAL": "1",
        "QO_MONITOR_WORKER_HEALTH_THRESHOLD": "1",
        "QO_CONCURRENCY": "2",
    }
    input_ = {"ledger": str(ledger), "seconds": 0.15}
    keys = await crew.submit_all("note", tasks, input_, timeout_seconds=LIMIT_S, max_retries=50)
    numbers = iter(range(10_000))

    def start_worker() -> Process:
        return crew.process(f"worker-{next(numbers)}", **settings)

    def list_running() -> list[int]:
        # A worker that finds no store when it starts logs it and ends: its supervisor starts it again.
        for place, each in enumerate(workers):
            if each.process.poll() is not None:
                workers[place] = start_worker()
        return [place for place, each in enumerate(workers) if each.events("worker_started")]

    def read_next_open() -> dict[str, Any] | None:
        list_running()
        tasks_now = (_read_task(crew, key) for key in reversed(keys))
        return next((each for each in tasks_now if each["status"] != "Completed"), None)

    workers = [start_worker() for _ in range(crews)]
    try:
        for chance in chaos.rounds(1):
            for number in range(kills):
                await asyncio.sleep(chance.uniform(0.3, 1.2))
                workers[chance.choice(await eventually(list_running))].kill()
                if number == kills // 2:
                    own_s3.kill()
                    await asyncio.sleep(0.5)
                    await asyncio.to_thread(own_s3.restart)
            chaos.count(kills_of_worker=kills, kills_of_store=1)
        await eventually(read_next_open, wanted=lambda seen: seen is None, patience=300)
        for each in workers:
            each.kill()
        at_once = crews * int(settings["QO_CONCURRENCY"])
        count = verify(crew, keys, ledger, unacknowledged=chaos.counted["kills_of_store"] * at_once)
    finally:
        await crew.close()
        raw.close()
    assert count.completed == tasks
    assert count.repeated == count.requeued
    chaos.count(tasks=tasks, lost=0, run_twice=count.repeated)


def _read_task(crew: Crew, key: str) -> dict[str, Any]:
    try:
        return crew.task(key)
    except Exception as error:
        return {"id": key, "status": f"away: {error!r}"}  # The store is being started again.


@pytest.mark.chaos
@pytest.mark.req("OQ-253", "OQ-113", "OQ-109", "OQ-256")
async def test_many_workers_race_for_tasks(crew: Crew, chaos: Chaos) -> None:
    """Each task is claimed once, by one of them; as many versions as winners."""
    workers, tasks = chaos.size(5, 8), chaos.size(40, 200)
    keys = await crew.submit_all("noop", tasks)
    async with AsyncExitStack() as stack:
        for number in range(workers):
            await stack.enter_async_context(crew.worker(f"racer-{number}", QO_CONCURRENCY="2"))
        for key in keys:
            await crew.wait_until_ended(key, s=600)
    count = verify(crew, keys, None)
    assert (count.completed, count.runs, count.requeued) == (tasks, tasks, 0)
    assert all(len(crew.versions(key)) == 3 for key in keys[:20])
    chaos.count(tasks=tasks, workers=workers, claimed_twice=0)


@pytest.mark.req("OQ-148", "OQ-044", "OQ-255")
async def test_clock_skew_within_the_limit_does_no_harm(crew: Crew, tmp_path: Path) -> None:
    """Workers and monitors are minutes apart: nothing is cut short, and nothing is run twice."""
    settings = {"QO_MAX_CLOCK_SKEW_MS": "1200000", "QO_LOG": "debug"}
    gate = tmp_path / "gate"
    crew.world = Skewed(-1000)  # They are due by every clock.
    # By the clock that is ahead a lease of the other worker is over when it begins.
    keys = await crew.submit_all("gate", 4, str(gate), timeout_seconds=600)
    async with (
        crew.worker("ahead", Skewed(400), QO_CONCURRENCY="2", **settings),
        crew.worker("behind", Skewed(-400), QO_CONCURRENCY="2", **settings),
        crew.monitor(Skewed(400), **settings) as ahead,
        crew.monitor(Skewed(-400), **settings) as behind,
    ):
        for key in keys:
            await crew.wait_for_state(key, "Running")
        for each in (ahead, behind):
            before = len(each.events("sweep"))
            await eventually(lambda each=each, before=before: len(each.events("sweep")) > before + 6)  # type: ignore[misc]
        gate.touch()
        for key in keys:
            await crew.wait_until_ended(key)
    assert {crew.task(key)["worker_id"] for key in keys} == {"ahead", "behind"}
    count = verify(crew, keys, None)
    assert (count.completed, count.runs) == (4, 4)


@pytest.mark.req("OQ-257", "OQ-114")
async def test_a_claim_is_one_read_and_one_write(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """Their duration is measured by the benchmark."""
    count = 1000 if DEEP else 30
    await proxied_crew.submit_all("noop", count)
    tasks, call = proxied_crew.tasks, proxied_crew.call("worker")
    await tasks.claim("first", 1, call)
    s3_proxy.forget()
    for _ in range(count - 1):
        assert len(await tasks.claim("me", 1, call)) == 1
    requests_ = [len(s3_proxy.asked(kind, "^tasks/")) for kind in ("GetObject", "PutObject")]
    assert requests_ == [count - 1, count - 1]
