"""The end of a worker: stopped, stopped twice, killed, or frozen until its leases expired."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.jobs.pids import wait_until_gone
from tests.support.objectqueue.crew import Crew, Process, Skewed, parse_time
from tests.support.s3.proxy import S3Proxy


async def wait_for_pids(crew: Crew, pid_file: Path) -> list[int]:
    """The processes of a handler that has begun."""
    text = await eventually(lambda: pid_file.read_text() if pid_file.exists() else "")
    return [int(each) for each in text.split()]


async def request_stop(process: Process) -> None:
    """Signal a worker to stop, and wait until it has begun: two signals at a time would be one to it."""
    process.signal(signal.SIGTERM)
    await eventually(lambda: process.events("service_stopping"))


@pytest.mark.req("OQ-159", "OQ-160", "OQ-165")
async def test_running_tasks_end_and_no_new_one_is_claimed(crew: Crew, tmp_path: Path) -> None:
    """The running one is completed, the waiting one is not touched, and the exit is clean."""
    gate = tmp_path / "gate"
    running = await crew.submit("gate", str(gate))
    process: Process = await crew.process("ending").wait_until_ready()
    await crew.wait_for_state(running, "Running")
    waiting = await crew.submit("echo", 1)
    await request_stop(process)
    gate.touch()
    assert await process.wait_for_exit() == 0
    assert crew.task(running)["status"] == "Completed"
    assert crew.task(waiting)["status"] == "Pending"
    assert [each["status"] for each in crew.versions(waiting)] == ["Pending"]
    assert crew.worker_object("ending") is None


@pytest.mark.req("OQ-161", "OQ-162", "OQ-163", "OQ-119", "OQ-165")
async def test_a_task_that_outlasts_the_grace_is_released(crew: Crew, tmp_path: Path) -> None:
    """Its handler is gone; it is free at once for another worker, and no retry is used up."""
    pid_file = tmp_path / "pids"
    key = await crew.submit("stuck", str(pid_file))
    await crew.wait_for_hint(key)
    process = await crew.process("short", QO_SHUTDOWN_GRACE="0.3").wait_until_ready()
    pids = await wait_for_pids(crew, pid_file)
    process.signal(signal.SIGTERM)
    assert await process.wait_for_exit() == 0
    await wait_until_gone(*pids)
    task = crew.task(key)
    assert (task["status"], task["retry_count"], task["attempt"]) == ("Pending", 0, 1)
    assert (task["worker_id"], task["lease_id"], task["lease_expires_at"]) == (None, None, None)
    assert (task["last_error"], task["available_at"]) == ("shutdown", task["updated_at"])
    assert (crew.hints("ready"), crew.hints("leases")) == ([key], [])
    pid_file.unlink()
    async with crew.worker("other", QO_SHUTDOWN_GRACE="0"):
        await wait_for_pids(crew, pid_file)
        assert crew.task(key)["attempt"] == 2


@pytest.mark.req("OQ-161", "OQ-163")
async def test_a_shutdown_does_not_count_as_a_failure(crew: Crew, tmp_path: Path) -> None:
    """No retry is used up, each stop is a version of its own, and the task succeeds in the end."""
    gate, stops = tmp_path / "gate", 3
    key = await crew.submit("gate", str(gate), max_retries=0, timeout_seconds=600)
    for attempt in range(1, stops + 1):
        process = await crew.process(f"deploy-{attempt}", QO_SHUTDOWN_GRACE="0").wait_until_ready()
        await crew.wait_for_state(key, "Running")
        process.signal(signal.SIGTERM)
        assert await process.wait_for_exit() == 0
        task = crew.task(key)
        assert (task["status"], task["retry_count"], task["attempt"]) == ("Pending", 0, attempt)
    gate.touch()
    async with crew.worker("last"):
        await crew.wait_for_state(key, "Completed")
    reasons = [each for each in crew.versions(key) if each["status"] == "Pending" and each["attempt"]]
    assert [each["last_error"] for each in reasons] == ["shutdown"] * stops


@pytest.mark.req("OQ-163")
async def test_a_task_that_is_lost_during_the_stop_is_not_released(crew: Crew) -> None:
    """Another client cancels the task before its release: it stays cancelled."""
    key = await crew.submit("sleep", 600, timeout_seconds=600)
    process = await crew.process("late", QO_SHUTDOWN_GRACE="0").wait_until_ready()
    await crew.wait_for_state(key, "Running")
    # It is signalled to stop, and releases only after the cancel.
    process.signal(signal.SIGSTOP)
    process.signal(signal.SIGTERM)
    assert (await crew.tasks.transition(key, "cancel_running", crew.call())).applied
    process.signal(signal.SIGCONT)
    assert await process.wait_for_exit() == 0
    assert crew.task(key)["status"] == "Failed"
    assert process.events("lease_lost")


@pytest.mark.req("OQ-130")
async def test_a_handler_is_notified_of_the_stop(crew: Crew) -> None:
    """It uses the grace to come to an end of its own."""
    key = await crew.submit("until stopping")
    process = await crew.process("polite").wait_until_ready()
    await eventually(lambda: crew.task(key), wanted=lambda task: bool(task["progress"]))
    process.signal(signal.SIGTERM)
    assert await process.wait_for_exit() == 0
    assert (crew.task(key)["status"], crew.task(key)["output"]) == ("Completed", "told to stop")


@pytest.mark.req("OQ-166", "OQ-112", "OQ-133", "OQ-134", "OQ-137")
async def test_a_second_signal_ends_it_at_once(crew: Crew, tmp_path: Path, later: Skewed) -> None:
    """The handler ends with it; the lease expires, and the monitor requeues the task and logs it."""
    pid_file = tmp_path / "pids"
    key = await crew.submit("stuck", str(pid_file), timeout_seconds=600)
    process = await crew.process("hasty").wait_until_ready()
    pids = await wait_for_pids(crew, pid_file)
    await request_stop(process)
    process.signal(signal.SIGTERM)
    assert await process.wait_for_exit() == 1
    await wait_until_gone(pids[0])
    with suppress(ProcessLookupError):
        os.kill(pids[1], signal.SIGKILL)
    assert crew.task(key)["status"] == "Running"
    async with crew.monitor(later, QO_MAX_CLOCK_SKEW_MS="0") as monitor:
        task = await crew.wait_for_state(key, "Pending")
        (lines,) = await eventually(lambda: monitor.events("lease_expired"))
    assert (task["retry_count"], task["last_error"]) == (1, "lease expired (worker hasty, attempt 1)")
    assert task["worker_id"] is None
    assert (lines["id"], lines["attempt"], lines["worker_id"]) == (key, 1, "hasty")
    assert crew.worker_object("hasty") is not None


@pytest.mark.req("OQ-125", "OQ-126", "OQ-247", "OQ-254")
async def test_a_frozen_worker_detects_its_lost_lease(crew: Crew, tmp_path: Path, later: Skewed) -> None:
    """Another one has run the task meanwhile: the outcome of the first is dropped."""
    gate = tmp_path / "gate"
    key = await crew.submit("gate", str(gate), timeout_seconds=600)
    zombie = await crew.process("zombie", QO_HEARTBEAT_SECONDS="0.3").wait_until_ready()
    await crew.wait_for_state(key, "Running")
    zombie.signal(signal.SIGSTOP)
    gate.touch()
    async with crew.monitor(later, QO_MAX_CLOCK_SKEW_MS="0"), crew.worker("heir", later):
        completed = await crew.wait_until_ended(key)
    assert (completed["status"], completed["worker_id"], completed["attempt"]) == ("Completed", "heir", 2)
    zombie.signal(signal.SIGCONT)
    await eventually(lambda: zombie.events("lease_lost"))
    seen = await eventually(
        lambda: crew.worker_object("zombie") or {}, wanted=lambda each: each["leases_lost"] == 1
    )
    assert (seen["tasks_completed"], seen["tasks_failed"]) == (0, 0)
    assert crew.task(key) == completed


@pytest.mark.req("OQ-167", "OQ-141", "OQ-255")
async def test_a_killed_worker_is_logged_and_its_task_requeued(
    proxied_crew: Crew, s3_proxy: S3Proxy, later: Skewed
) -> None:
    """Its object stays without heartbeats; only the expiry of the lease frees the task."""
    crew = proxied_crew
    key = await crew.submit("sleep", 600, timeout_seconds=600)
    process = await crew.process("victim").wait_until_ready()
    running = await crew.wait_for_state(key, "Running")
    process.kill()

    def count_checks() -> int:
        prefixes = [each.query["prefix"] for each in s3_proxy.asked("ListObjectsV2")]
        return min(prefixes.count("workers/"), sum(each.startswith("leases/") for each in prefixes))

    settings = {"QO_MONITOR_WORKER_HEALTH_THRESHOLD": "0.5", "QO_MAX_CLOCK_SKEW_MS": "0"}
    async with crew.monitor(**settings) as monitor:
        (dead,) = await eventually(lambda: monitor.events("worker_dead"))
        assert (dead["worker_id"], dead["level"]) == ("victim", "WARNING")
        s3_proxy.forget()
        await eventually(count_checks, wanted=lambda seen: seen > 3)
        assert len(monitor.events("worker_dead")) == 1, "logged once"
    assert crew.task(key) == running
    async with crew.monitor(later, **settings):
        task = await crew.wait_for_state(key, "Pending")
    assert parse_time(task["updated_at"]) >= parse_time(running["lease_expires_at"])
    assert crew.worker_object("victim") is not None
