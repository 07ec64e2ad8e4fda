"""The end of a worker: told to stop, told twice, killed, or frozen until it has lost everything."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from generated.objectqueue.messages import FAILED
from tests.objectqueue.worker.test_functions import until_gone
from tests.support.eventually import eventually
from tests.support.objectqueue.crew import Crew, Process, Skewed, at
from tests.support.s3.proxy import S3Proxy


async def begun(crew: Crew, mark: Path) -> list[int]:
    """The processes of a handler that has begun."""
    text = await eventually(lambda: mark.read_text() if mark.exists() else "")
    return [int(each) for each in text.split()]


async def told_to_stop(process: Process) -> None:
    """Tells a worker to stop, and waits until it knows: two signals at a time would be one to it."""
    process.signal(signal.SIGTERM)
    await eventually(lambda: process.events("service_stopping"))


@pytest.mark.req("OQ-159", "OQ-160", "OQ-165")
async def test_what_runs_may_end_and_nothing_new_is_begun(crew: Crew, tmp_path: Path) -> None:
    """The one that runs is completed, the one that waits is not touched, and the exit is clean."""
    gate = tmp_path / "gate"
    running = await crew.submit("gate", str(gate))
    process: Process = await crew.process("ending").ready()
    await crew.task_until(running, "Running")
    waiting = await crew.submit("echo", 1)
    await told_to_stop(process)
    gate.touch()
    assert await process.ended() == 0
    assert crew.task(running)["status"] == "Completed"
    assert crew.task(waiting)["status"] == "Pending"
    assert [each["status"] for each in crew.versions(waiting)] == ["Pending"]
    assert crew.worker_object("ending") is None


@pytest.mark.req("OQ-161", "OQ-162", "OQ-163", "OQ-119", "OQ-165")
async def test_what_takes_too_long_is_stopped_and_put_back(crew: Crew, tmp_path: Path) -> None:
    """Its handler is gone; it is free at once for another worker, and no retry is used up."""
    mark = tmp_path / "pids"
    key = await crew.submit("stuck", str(mark))
    await crew.hinted(key)
    process = await crew.process("short", QO_SHUTDOWN_GRACE="0.3").ready()
    pids = await begun(crew, mark)
    process.signal(signal.SIGTERM)
    assert await process.ended() == 0
    await until_gone(*pids)
    task = crew.task(key)
    assert (task["status"], task["retry_count"], task["attempt"]) == ("Pending", 0, 1)
    assert (task["worker_id"], task["lease_id"], task["lease_expires_at"]) == (None, None, None)
    assert (task["last_error"], task["available_at"]) == ("shutdown", task["updated_at"])
    assert (crew.hints("ready"), crew.hints("leases")) == ([key], [])
    mark.unlink()
    async with crew.worker("other", QO_SHUTDOWN_GRACE="0"):
        await begun(crew, mark)
        assert crew.task(key)["attempt"] == 2


@pytest.mark.req("OQ-161", "OQ-163")
async def test_more_stops_than_retries_fail_no_task(crew: Crew, tmp_path: Path) -> None:
    """No retry is used up, each stop is a version of its own, and the task ends well."""
    gate, stops = tmp_path / "gate", 3
    key = await crew.submit("gate", str(gate), max_retries=0, timeout_seconds=600)
    for attempt in range(1, stops + 1):
        process = await crew.process(f"deploy-{attempt}", QO_SHUTDOWN_GRACE="0").ready()
        await crew.task_until(key, "Running")
        process.signal(signal.SIGTERM)
        assert await process.ended() == 0
        task = crew.task(key)
        assert (task["status"], task["retry_count"], task["attempt"]) == ("Pending", 0, attempt)
    gate.touch()
    async with crew.worker("last"):
        await crew.task_until(key, "Completed")
    told = [each for each in crew.versions(key) if each["status"] == "Pending" and each["attempt"]]
    assert [each["last_error"] for each in told] == ["shutdown"] * stops


@pytest.mark.req("OQ-163")
async def test_what_is_lost_while_it_stops_is_not_put_back(crew: Crew) -> None:
    """Somebody cancels the task before it is given back: that is how it stays."""
    key = await crew.submit("sleep", 600, timeout_seconds=600)
    process = await crew.process("late", QO_SHUTDOWN_GRACE="0").ready()
    await crew.task_until(key, "Running")
    # It is told to stop, and comes to it only after the other one is done.
    process.signal(signal.SIGSTOP)
    process.signal(signal.SIGTERM)
    assert (await crew.tasks.move_to(key, FAILED, crew.call())).applied
    process.signal(signal.SIGCONT)
    assert await process.ended() == 0
    assert crew.task(key)["status"] == "Failed"
    assert process.events("lease_lost")


@pytest.mark.req("OQ-130")
async def test_a_handler_is_told_that_it_had_better_end(crew: Crew) -> None:
    """It uses the grace to come to an end of its own."""
    key = await crew.submit("until stopping")
    process = await crew.process("polite").ready()
    await eventually(lambda: crew.task(key), wanted=lambda task: bool(task["progress"]))
    process.signal(signal.SIGTERM)
    assert await process.ended() == 0
    assert (crew.task(key)["status"], crew.task(key)["output"]) == ("Completed", "told to stop")


@pytest.mark.req("OQ-166", "OQ-112", "OQ-133", "OQ-134", "OQ-137")
async def test_a_second_signal_ends_it_at_once(crew: Crew, tmp_path: Path, later: Skewed) -> None:
    """The handler ends with it; the lease runs out, and the monitor puts the task back and says so."""
    mark = tmp_path / "pids"
    key = await crew.submit("stuck", str(mark), timeout_seconds=600)
    process = await crew.process("hasty").ready()
    pids = await begun(crew, mark)
    await told_to_stop(process)
    process.signal(signal.SIGTERM)
    assert await process.ended() == 1
    await until_gone(pids[0])
    with suppress(ProcessLookupError):
        os.kill(pids[1], signal.SIGKILL)
    assert crew.task(key)["status"] == "Running"
    async with crew.monitor(later, QO_MAX_CLOCK_SKEW_MS="0") as monitor:
        task = await crew.task_until(key, "Pending")
        (told,) = await eventually(lambda: monitor.events("lease_expired"))
    assert (task["retry_count"], task["last_error"]) == (1, "lease expired (worker hasty, attempt 1)")
    assert task["worker_id"] is None
    assert (told["id"], told["attempt"], told["worker_id"]) == (key, 1, "hasty")
    assert crew.worker_object("hasty") is not None


@pytest.mark.req("OQ-125", "OQ-126", "OQ-247", "OQ-254")
async def test_a_worker_that_was_frozen_finds_that_it_has_lost(
    crew: Crew, tmp_path: Path, later: Skewed
) -> None:
    """Another one has done the task meanwhile: what the first comes back with counts for nothing."""
    gate = tmp_path / "gate"
    key = await crew.submit("gate", str(gate), timeout_seconds=600)
    zombie = await crew.process("zombie", QO_HEARTBEAT_SECONDS="0.3").ready()
    await crew.task_until(key, "Running")
    zombie.signal(signal.SIGSTOP)
    gate.touch()
    async with crew.monitor(later, QO_MAX_CLOCK_SKEW_MS="0"), crew.worker("heir", later):
        done = await crew.ended(key)
    assert (done["status"], done["worker_id"], done["attempt"]) == ("Completed", "heir", 2)
    zombie.signal(signal.SIGCONT)
    await eventually(lambda: zombie.events("lease_lost"))
    seen = await eventually(
        lambda: crew.worker_object("zombie") or {}, wanted=lambda each: each["leases_lost"] == 1
    )
    assert (seen["tasks_completed"], seen["tasks_failed"]) == (0, 0)
    assert crew.task(key) == done


@pytest.mark.req("OQ-167", "OQ-141", "OQ-255")
async def test_a_killed_worker_is_pointed_out_and_its_task_comes_back(
    proxied_crew: Crew, s3_proxy: S3Proxy, later: Skewed
) -> None:
    """Its object stays and shows silence; nothing but the end of the lease frees the task."""
    crew = proxied_crew
    key = await crew.submit("sleep", 600, timeout_seconds=600)
    process = await crew.process("victim").ready()
    running = await crew.task_until(key, "Running")
    process.kill()

    def looks() -> int:
        prefixes = [each.query["prefix"] for each in s3_proxy.asked("ListObjectsV2")]
        return min(prefixes.count("workers/"), sum(each.startswith("leases/") for each in prefixes))

    settings = {"QO_MONITOR_WORKER_HEALTH_THRESHOLD": "0.5", "QO_MAX_CLOCK_SKEW_MS": "0"}
    async with crew.monitor(**settings) as monitor:
        (dead,) = await eventually(lambda: monitor.events("worker_dead"))
        assert (dead["worker_id"], dead["level"]) == ("victim", "WARNING")
        s3_proxy.forget()
        await eventually(looks, wanted=lambda seen: seen > 3)
        assert len(monitor.events("worker_dead")) == 1, "told once"
    assert crew.task(key) == running
    async with crew.monitor(later, **settings):
        task = await crew.task_until(key, "Pending")
    assert at(task["updated_at"]) >= at(running["lease_expires_at"])
    assert crew.worker_object("victim") is not None
