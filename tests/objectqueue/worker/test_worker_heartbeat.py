"""The heartbeat object of a worker while it works; no task depends on it."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.objectqueue.crew import PATIENCE_S, Crew, Process, parse_time
from tests.support.s3.proxy import S3Proxy

FIELDS = {
    "worker_id",
    "started_at",
    "last_heartbeat",
    "shards",
    "current_task",
    "tasks_completed",
    "tasks_failed",
}
ALL = list("0123456789abcdef")


@pytest.mark.req("OQ-048", "OQ-049", "OQ-157", "OQ-155", "OQ-007")
async def test_a_worker_writes_its_object_when_it_starts(crew: Crew) -> None:
    """Under its name, with all shards, and all counters zero."""
    async with crew.worker("mine", QO_HEARTBEAT_SECONDS="30"):
        seen = crew.worker_object("mine")
    assert seen is not None
    assert seen.keys() >= FIELDS
    assert (seen["worker_id"], seen["shards"], seen["current_task"]) == ("mine", ALL, None)
    assert (seen["tasks_completed"], seen["tasks_failed"], seen["leases_lost"]) == (0, 0, 0)
    assert seen["started_at"] == seen["last_heartbeat"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", seen["started_at"])
    assert "echo" in seen["task_types"]


@pytest.mark.req("OQ-049", "OQ-155")
async def test_its_name_and_its_shards(crew: Crew) -> None:
    """A name is generated if there is none; only its own shards are listed if it has some."""
    settings = {**crew.settings, "QO_SHARDS": "0, A,0"}
    async with crew.node("worker", settings) as works:
        (started,) = await eventually(lambda: works.events("worker_started"))
        seen = crew.worker_object(started["worker_id"])
    assert seen is not None
    assert seen["shards"] == ["0", "a"]
    assert seen["worker_id"]


@pytest.mark.req("OQ-050", "OQ-117", "OQ-158", "OQ-108")
async def test_the_running_task_is_in_the_object(crew: Crew, tmp_path: Path) -> None:
    """While it runs, and no longer than that; its end is counted."""
    gate = tmp_path / "gate"
    key = await crew.submit("gate", str(gate))
    async with crew.worker():
        seen = await eventually(
            lambda: crew.worker_object("w") or {}, wanted=lambda each: bool(each["current_task"])
        )
        assert (seen["current_task"], seen["current_tasks"]) == (key, [key])
        gate.touch()
        await crew.wait_until_ended(key)
        seen = await eventually(
            lambda: crew.worker_object("w") or {}, wanted=lambda each: each["current_task"] is None
        )
        assert (seen["current_tasks"], seen["tasks_completed"]) == ([], 1)


@pytest.mark.req("OQ-X02")
async def test_all_concurrent_tasks_are_in_the_object(crew: Crew, tmp_path: Path) -> None:
    """The first is the oldest."""
    gate = tmp_path / "gate"
    keys = await crew.submit_all("gate", 3, str(gate))
    async with crew.worker(QO_CONCURRENCY="3"):
        seen = await eventually(
            lambda: crew.worker_object("w") or {}, wanted=lambda each: len(each["current_tasks"]) == 3
        )
        assert set(seen["current_tasks"]) == set(keys)
        assert seen["current_task"] == seen["current_tasks"][0]
        gate.touch()


@pytest.mark.req("OQ-051", "OQ-052")
async def test_runs_are_counted(crew: Crew) -> None:
    """Every failed run counts, also one that is retried; a new worker counts from zero."""
    good = [await crew.submit("echo", number) for number in range(3)]
    bad = [await crew.submit("raise", "fatal") for _ in range(2)]
    twice = await crew.submit("fail until", 3)

    def read_counts() -> tuple[int, int]:
        seen = crew.worker_object("w") or {}
        return seen["tasks_completed"], seen["tasks_failed"]

    async with crew.worker():
        for key in (*good, *bad, twice):
            await crew.wait_until_ended(key)
        await eventually(read_counts, wanted=lambda each: each == (4, 4))
    async with crew.worker():
        assert read_counts() == (0, 0)


@pytest.mark.req("OQ-158", "OQ-054")
async def test_heartbeats_are_regular_while_a_task_runs(crew: Crew) -> None:
    """One heartbeat after the other whatever runs."""
    key = await crew.submit("until stopping", timeout_seconds=600)
    async with crew.worker(QO_HEARTBEAT_SECONDS="0.2"):
        await crew.wait_for_state(key, "Running")
        beats: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(beats) < 5:
                seen = (crew.worker_object("w") or {})["last_heartbeat"]
                if seen not in beats:
                    beats.append(seen)
                await asyncio.sleep(0.02)
        assert crew.task(key)["status"] == "Running"
    assert crew.task(key)["status"] == "Completed"


@pytest.mark.req("OQ-158", "OQ-094")
async def test_changes_are_written_at_most_once_a_second(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """Thirty tasks in a second or two are no thirty heartbeats; an idle worker writes few."""
    crew = proxied_crew
    keys = await crew.submit_all("noop", 30)
    async with crew.worker():
        for key in keys:
            await crew.wait_until_ended(key)
        beats = len(s3_proxy.asked("PutObject", "workers/"))
        seconds = parse_time((crew.worker_object("w") or {})["last_heartbeat"]) - parse_time(
            (crew.worker_object("w") or {})["started_at"]
        )
    assert beats <= 3 + seconds.total_seconds()


@pytest.mark.req("OQ-053")
async def test_no_task_depends_on_it(crew: Crew, tmp_path: Path) -> None:
    """It is removed, then replaced by garbage, in the middle of the work; all tasks are run."""
    gate = tmp_path / "gate"
    keys = await crew.submit_all("gate", 6, str(gate))
    async with crew.worker(QO_HEARTBEAT_SECONDS="0.1", QO_CONCURRENCY="2") as works:

        def has_been_spoilt() -> bool:
            # The store does not order this write among the conditional ones of the worker: it may be lost.
            crew.put_object("workers/w.json", "no JSON")
            return bool(works.events("heartbeat_failed"))

        await eventually(lambda: [key for key in keys if crew.task(key)["status"] == "Running"])
        crew.bucket.raw.delete_object(Bucket=crew.bucket.name, Key="workers/w.json")
        await eventually(lambda: crew.worker_object("w"))
        await eventually(has_been_spoilt)
        gate.touch()
        for key in keys:
            assert (await crew.wait_until_ended(key))["status"] == "Completed"


@pytest.mark.req("OQ-054")
async def test_a_worker_that_cannot_write_its_object_works_on(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """It warns once; the tasks are run."""
    crew = proxied_crew
    async with crew.worker(QO_HEARTBEAT_SECONDS="0.1") as works:
        s3_proxy.rule(kind="PutObject", key="workers/", status=503, times=None)
        await eventually(lambda: works.events("heartbeat_failed"))
        key = await crew.submit("echo", 1)
        assert (await crew.wait_until_ended(key))["status"] == "Completed"
        (warned,) = works.events("heartbeat_failed")
        assert warned["level"] == "WARNING"
        s3_proxy.rules.clear()


@pytest.mark.req("OQ-156")
async def test_a_second_worker_of_the_same_name_is_refused(crew: Crew) -> None:
    """It ends at once with a reason, and the first is not affected."""
    async with crew.worker("twin") as works:
        second: Process = crew.process("twin")
        assert await second.wait_for_exit() == 1
        assert "A worker twin lives already" in str(second.events("background_fault"))
        key = await crew.submit("echo", 1)
        assert (await crew.wait_until_ended(key))["status"] == "Completed"
        assert crew.worker_object("twin") is not None
        assert works.events("heartbeat_failed") == []


@pytest.mark.req("OQ-156", "OQ-167")
async def test_the_name_of_a_dead_worker_is_reused(crew: Crew) -> None:
    """It was killed; after the time of its silence another one may have its name."""
    first = await crew.process("again").wait_until_ready()
    first.kill()
    stale = crew.worker_object("again")
    assert stale is not None, "kill -9 does not remove the object"
    silent = timedelta(seconds=0.2)
    await eventually(lambda: datetime.now(UTC) - parse_time(stale["last_heartbeat"]) > silent)
    async with crew.worker("again", QO_MONITOR_WORKER_HEALTH_THRESHOLD="0.2"):
        seen = crew.worker_object("again")
        assert seen is not None
        assert seen["started_at"] > stale["started_at"]
        key = await crew.submit("echo", 1)
        assert (await crew.wait_until_ended(key))["worker_id"] == "again"


NEVER_S = "86400"


@pytest.mark.req("OQ-156", "OQ-167")
async def test_a_killed_worker_restarts_at_once_under_its_name(crew: Crew) -> None:
    """Its process does not exist on this machine, so that the silence is not awaited."""
    first = await crew.process("again").wait_until_ready()
    first.kill()
    stale = crew.worker_object("again")
    assert stale is not None, "kill -9 does not remove the object"
    second = await crew.process("again", QO_MONITOR_WORKER_HEALTH_THRESHOLD=NEVER_S).wait_until_ready()
    seen = crew.worker_object("again")
    assert seen is not None and seen["instance"] != stale["instance"]
    assert second.events("worker_name_taken_over")
    key = await crew.submit("echo", 1)
    assert (await crew.wait_until_ended(key))["worker_id"] == "again"


def pretend_other_machine(crew: Crew, name: str) -> dict[str, Any]:
    """Make the object of a worker look like one of another machine."""
    seen = {**(crew.worker_object(name) or {}), "process": "other-machine/pid:[1]/2/3"}
    crew.put_object(f"workers/{name}.json", json.dumps(seen))
    return seen


@pytest.mark.req("OQ-156")
async def test_the_name_of_a_worker_of_another_machine_is_awaited(crew: Crew) -> None:
    """With one more heartbeat it is alive, and the second is refused; a silent one loses its name."""
    (await crew.process("far").wait_until_ready()).kill()
    seen = pretend_other_machine(crew, "far")
    second = crew.process("far", QO_MONITOR_WORKER_HEALTH_THRESHOLD=NEVER_S)
    await eventually(lambda: second.events("worker_name_in_use"))
    crew.put_object("workers/far.json", json.dumps({**seen, "last_heartbeat": "2999-01-01T00:00:00.000000Z"}))
    assert await second.wait_for_exit() == 1
    assert "A worker far lives already" in str(second.events("background_fault"))
    crew.put_object("workers/far.json", json.dumps(seen))
    third = await crew.process("far", QO_MONITOR_WORKER_HEALTH_THRESHOLD="0.5").wait_until_ready()
    assert third.events("worker_name_taken_over")


@pytest.mark.req("OQ-156")
async def test_a_worker_that_waits_for_its_name_can_be_stopped(crew: Crew) -> None:
    """It does not touch the object of the other one."""
    (await crew.process("far").wait_until_ready()).kill()
    seen = pretend_other_machine(crew, "far")
    second = crew.process("far", QO_MONITOR_WORKER_HEALTH_THRESHOLD=NEVER_S)
    await eventually(lambda: second.events("worker_name_in_use"))
    second.signal(signal.SIGTERM)
    assert await second.wait_for_exit() == 0
    assert crew.worker_object("far") == seen


@pytest.mark.req("OQ-156", "OQ-053")
async def test_a_worker_that_lost_its_name_releases_its_tasks_and_stops(crew: Crew, tmp_path: Path) -> None:
    """It neither writes nor removes the object of the worker that has the name now."""
    key = await crew.submit("gate", str(tmp_path / "gate"))
    first = await crew.process("old", QO_HEARTBEAT_SECONDS="0.2", QO_SHUTDOWN_GRACE="0").wait_until_ready()
    await crew.wait_for_state(key, "Running")
    other = {**(crew.worker_object("old") or {}), "instance": "another", "tasks_completed": 77}
    ended = asyncio.create_task(first.wait_for_exit())
    while not ended.done():
        # The store does not order this write among the conditional ones of the worker: it may be lost.
        if crew.worker_object("old") != other:
            crew.put_object("workers/old.json", json.dumps(other))
        await asyncio.sleep(0.1)
    assert await ended == 1
    assert first.events("worker_superseded")
    assert crew.worker_object("old") == other
    assert (await crew.wait_for_state(key, "Pending"))["retry_count"] == 0


@pytest.mark.req("OQ-164", "OQ-165", "OQ-155")
async def test_the_object_is_removed_when_the_worker_stops(crew: Crew) -> None:
    """After an orderly end there is no object, and the exit code is 0."""
    process = await crew.process("leaving").wait_until_ready()
    assert crew.worker_object("leaving") is not None
    process.signal(signal.SIGINT)
    assert await process.wait_for_exit() == 0
    assert crew.worker_object("leaving") is None
    assert process.events("worker_stopped")
