"""What is seen of a worker: its object while it works, and that no task depends on it."""

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
from tests.support.objectqueue.crew import PATIENCE_S, Crew, Process, at
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
async def test_a_worker_shows_itself_when_it_starts(crew: Crew) -> None:
    """Under its name, with all shards, and nothing done so far."""
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
    """A name is made up where there is none; only some shards are shown where only some are looked after."""
    settings = {**crew.settings, "QO_SHARDS": "0, A,0"}
    async with crew.node("worker", settings) as works:
        (started,) = await eventually(lambda: works.events("worker_started"))
        seen = crew.worker_object(started["worker_id"])
    assert seen is not None
    assert seen["shards"] == ["0", "a"]
    assert seen["worker_id"]


@pytest.mark.req("OQ-050", "OQ-117", "OQ-158", "OQ-108")
async def test_the_task_that_runs_is_shown(crew: Crew, tmp_path: Path) -> None:
    """While it runs, and no longer than that; its end is counted."""
    gate = tmp_path / "gate"
    key = await crew.submit("gate", str(gate))
    async with crew.worker():
        seen = await eventually(
            lambda: crew.worker_object("w") or {}, wanted=lambda each: bool(each["current_task"])
        )
        assert (seen["current_task"], seen["current_tasks"]) == (key, [key])
        gate.touch()
        await crew.ended(key)
        seen = await eventually(
            lambda: crew.worker_object("w") or {}, wanted=lambda each: each["current_task"] is None
        )
        assert (seen["current_tasks"], seen["tasks_completed"]) == ([], 1)


@pytest.mark.req("OQ-X02")
async def test_several_at_a_time_are_all_shown(crew: Crew, tmp_path: Path) -> None:
    """The first is the one that it has had longest."""
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
async def test_what_it_has_done_is_counted(crew: Crew) -> None:
    """Every failed run counts, also one that is tried again; a new worker counts from nothing."""
    good = [await crew.submit("echo", number) for number in range(3)]
    bad = [await crew.submit("raise", "fatal") for _ in range(2)]
    twice = await crew.submit("fail until", 3)

    def counts() -> tuple[int, int]:
        seen = crew.worker_object("w") or {}
        return seen["tasks_completed"], seen["tasks_failed"]

    async with crew.worker():
        for key in (*good, *bad, twice):
            await crew.ended(key)
        await eventually(counts, wanted=lambda each: each == (4, 4))
    async with crew.worker():
        assert counts() == (0, 0)


@pytest.mark.req("OQ-158", "OQ-054")
async def test_it_is_heard_of_regularly_while_a_task_runs(crew: Crew) -> None:
    """Signs of life come one after the other whatever runs."""
    key = await crew.submit("until stopping", timeout_seconds=600)
    async with crew.worker(QO_HEARTBEAT_SECONDS="0.2"):
        await crew.task_until(key, "Running")
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
async def test_changes_are_told_at_most_once_a_second(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """Thirty tasks in a second or two are no thirty signs of life; an idle worker gives few."""
    crew = proxied_crew
    keys = await crew.submit_all("noop", 30)
    async with crew.worker():
        for key in keys:
            await crew.ended(key)
        beats = len(s3_proxy.asked("PutObject", "workers/"))
        seconds = at((crew.worker_object("w") or {})["last_heartbeat"]) - at(
            (crew.worker_object("w") or {})["started_at"]
        )
    assert beats <= 3 + seconds.total_seconds()


@pytest.mark.req("OQ-053")
async def test_no_task_depends_on_it(crew: Crew, tmp_path: Path) -> None:
    """It is removed, then something else stands there, in the middle of the work; all tasks are done."""
    gate = tmp_path / "gate"
    keys = await crew.submit_all("gate", 6, str(gate))
    async with crew.worker(QO_HEARTBEAT_SECONDS="0.1", QO_CONCURRENCY="2") as works:

        def spoilt() -> bool:
            # The store does not order this write among the conditional ones of the worker: it may be lost.
            crew.put("workers/w.json", "no JSON")
            return bool(works.events("heartbeat_failed"))

        await eventually(lambda: [key for key in keys if crew.task(key)["status"] == "Running"])
        crew.bucket.raw.delete_object(Bucket=crew.bucket.name, Key="workers/w.json")
        await eventually(lambda: crew.worker_object("w"))
        await eventually(spoilt)
        gate.touch()
        for key in keys:
            assert (await crew.ended(key))["status"] == "Completed"


@pytest.mark.req("OQ-054")
async def test_a_worker_that_cannot_show_itself_goes_on(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """It warns once; the tasks are done."""
    crew = proxied_crew
    async with crew.worker(QO_HEARTBEAT_SECONDS="0.1") as works:
        s3_proxy.rule(kind="PutObject", key="workers/", status=503, times=None)
        await eventually(lambda: works.events("heartbeat_failed"))
        key = await crew.submit("echo", 1)
        assert (await crew.ended(key))["status"] == "Completed"
        (warned,) = works.events("heartbeat_failed")
        assert warned["level"] == "WARNING"
        s3_proxy.rules.clear()


@pytest.mark.req("OQ-156")
async def test_a_second_worker_of_the_same_name_is_refused(crew: Crew) -> None:
    """It ends at once with a reason, and the first does not notice."""
    async with crew.worker("twin") as works:
        second: Process = crew.process("twin")
        assert await second.ended() == 1
        assert "A worker twin lives already" in str(second.events("background_fault"))
        key = await crew.submit("echo", 1)
        assert (await crew.ended(key))["status"] == "Completed"
        assert crew.worker_object("twin") is not None
        assert works.events("heartbeat_failed") == []


@pytest.mark.req("OQ-156", "OQ-167")
async def test_what_a_dead_worker_left_is_taken_over(crew: Crew) -> None:
    """It was killed; after the time of its silence another one may have its name."""
    first = await crew.process("again").ready()
    first.kill()
    left = crew.worker_object("again")
    assert left is not None, "kill -9 leaves the object behind"
    silent = timedelta(seconds=0.2)
    await eventually(lambda: datetime.now(UTC) - at(left["last_heartbeat"]) > silent)
    async with crew.worker("again", QO_MONITOR_WORKER_HEALTH_THRESHOLD="0.2"):
        seen = crew.worker_object("again")
        assert seen is not None
        assert seen["started_at"] > left["started_at"]
        key = await crew.submit("echo", 1)
        assert (await crew.ended(key))["worker_id"] == "again"


NEVER_S = "86400"


@pytest.mark.req("OQ-156", "OQ-167")
async def test_a_killed_worker_starts_again_at_once_under_its_name(crew: Crew) -> None:
    """Its process is gone from this machine, so nobody waits for its silence."""
    first = await crew.process("again").ready()
    first.kill()
    left = crew.worker_object("again")
    assert left is not None, "kill -9 leaves the object behind"
    second = await crew.process("again", QO_MONITOR_WORKER_HEALTH_THRESHOLD=NEVER_S).ready()
    seen = crew.worker_object("again")
    assert seen is not None and seen["instance"] != left["instance"]
    assert second.events("worker_name_taken_over")
    key = await crew.submit("echo", 1)
    assert (await crew.ended(key))["worker_id"] == "again"


def from_elsewhere(crew: Crew, name: str) -> dict[str, Any]:
    """Has a worker seem to be one of another machine."""
    seen = {**(crew.worker_object(name) or {}), "process": "other-machine/pid:[1]/2/3"}
    crew.put(f"workers/{name}.json", json.dumps(seen))
    return seen


@pytest.mark.req("OQ-156")
async def test_a_worker_of_another_machine_is_given_the_time_to_be_heard_of(crew: Crew) -> None:
    """One that is heard of once more lives, and the second is refused; a silent one loses its name."""
    (await crew.process("far").ready()).kill()
    seen = from_elsewhere(crew, "far")
    second = crew.process("far", QO_MONITOR_WORKER_HEALTH_THRESHOLD=NEVER_S)
    await eventually(lambda: second.events("worker_name_in_use"))
    crew.put("workers/far.json", json.dumps({**seen, "last_heartbeat": "2999-01-01T00:00:00.000000Z"}))
    assert await second.ended() == 1
    assert "A worker far lives already" in str(second.events("background_fault"))
    crew.put("workers/far.json", json.dumps(seen))
    third = await crew.process("far", QO_MONITOR_WORKER_HEALTH_THRESHOLD="0.5").ready()
    assert third.events("worker_name_taken_over")


@pytest.mark.req("OQ-156")
async def test_a_worker_that_waits_for_its_name_can_be_stopped(crew: Crew) -> None:
    """It leaves the object of the other one alone."""
    (await crew.process("far").ready()).kill()
    seen = from_elsewhere(crew, "far")
    second = crew.process("far", QO_MONITOR_WORKER_HEALTH_THRESHOLD=NEVER_S)
    await eventually(lambda: second.events("worker_name_in_use"))
    second.signal(signal.SIGTERM)
    assert await second.ended() == 0
    assert crew.worker_object("far") == seen


@pytest.mark.req("OQ-156", "OQ-053")
async def test_who_has_lost_its_name_gives_back_what_it_holds_and_stops(crew: Crew, tmp_path: Path) -> None:
    """It neither writes nor removes the object of the one that has the name now."""
    key = await crew.submit("gate", str(tmp_path / "gate"))
    first = await crew.process("old", QO_HEARTBEAT_SECONDS="0.2", QO_SHUTDOWN_GRACE="0").ready()
    await crew.task_until(key, "Running")
    other = {**(crew.worker_object("old") or {}), "instance": "another", "tasks_completed": 77}
    ended = asyncio.create_task(first.ended())
    while not ended.done():
        # The store does not order this write among the conditional ones of the worker: it may be lost.
        if crew.worker_object("old") != other:
            crew.put("workers/old.json", json.dumps(other))
        await asyncio.sleep(0.1)
    assert await ended == 1
    assert first.events("worker_superseded")
    assert crew.worker_object("old") == other
    assert (await crew.task_until(key, "Pending"))["retry_count"] == 0


@pytest.mark.req("OQ-164", "OQ-165", "OQ-155")
async def test_it_is_gone_when_the_worker_has_stopped(crew: Crew) -> None:
    """After an orderly end there is nothing to be seen of it, and the exit code says so."""
    process = await crew.process("leaving").ready()
    assert crew.worker_object("leaving") is not None
    process.signal(signal.SIGINT)
    assert await process.ended() == 0
    assert crew.worker_object("leaving") is None
    assert process.events("worker_stopped")
