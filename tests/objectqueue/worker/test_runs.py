"""How runs end on a real bucket: completed, retried, failed for good, timed out, or with a lost lease."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from generated.objectqueue.messages import FAILED
from generated.objectqueue.records import RetryPolicy
from runtime.worker.config import WorkerConfig
from tests.support.deep import DEEP
from tests.support.eventually import eventually
from tests.support.jobs.pids import wait_until_gone
from tests.support.objectqueue.crew import Crew, Skewed, parse_time
from tests.support.s3.proxy import S3Proxy

SLOW = RetryPolicy(initial_interval_ms=600_000, max_interval_ms=900_000, multiplier=2.0, jitter_percent=0.0)


def list_states(crew: Crew, key: str) -> list[str]:
    return [each["status"] for each in crew.versions(key)]


@pytest.mark.req("OQ-116", "OQ-117", "OQ-033", "OQ-107", "OQ-035", "OQ-130")
async def test_a_task_is_completed(crew: Crew) -> None:
    """Its output and its end are in its object, the lease is gone, and so are all entries."""
    key = await crew.submit("describe")
    await crew.wait_for_hint(key)
    async with crew.worker():
        task = await crew.wait_until_ended(key)
    assert (task["status"], task["worker_id"], task["lease_id"], task["lease_expires_at"]) == (
        "Completed",
        "w",
        None,
        None,
    )
    assert (task["output"]["id"], task["output"]["attempt"], task["output"]["stopping"]) == (key, 1, False)
    assert task["completed_at"] == task["updated_at"]
    pending, running, completed = crew.versions(key)
    assert (pending["attempt"], running["attempt"], completed["attempt"]) == (0, 1, 1)
    assert running["worker_id"] == "w"
    assert running["lease_id"]
    seconds = (parse_time(running["lease_expires_at"]) - parse_time(running["updated_at"])).total_seconds()
    assert seconds == running["timeout_seconds"] == 60
    assert (crew.hints("ready"), crew.hints("leases")) == ([], [])


@pytest.mark.req("OQ-034", "OQ-243")
async def test_any_input_reaches_the_handler(crew: Crew) -> None:
    """Any JSON value is returned unchanged."""
    inputs: list[Any] = [None, 0, "x", [1, {"a": None}], {"ü": "\U0001f600", "n": 1.5}, True, -1e300, ""]
    keys = [await crew.submit("echo", each) for each in inputs]
    async with crew.worker():
        assert [(await crew.wait_until_ended(key))["output"] for key in keys] == inputs


@pytest.mark.req("OQ-118", "OQ-119", "OQ-249", "OQ-041", "OQ-042", "OQ-122", "OQ-103")
async def test_a_failed_run_is_requeued_with_backoff(crew: Crew) -> None:
    """With its error and a backoff; the worker does not wait, but runs other tasks."""
    key = await crew.submit("raise", "other", retry_policy=SLOW)
    await crew.wait_for_hint(key)
    async with crew.worker():
        task = await eventually(lambda: crew.task(key), wanted=lambda each: each["retry_count"] == 1)
        other = await crew.submit("echo", 1)
        assert (await crew.wait_until_ended(other))["status"] == "Completed"
    assert (task["status"], task["last_error"], task["attempt"]) == ("Pending", "KeyError: 'lost'", 1)
    assert (task["worker_id"], task["lease_id"], task["lease_expires_at"]) == (None, None, None)
    waits = (parse_time(task["available_at"]) - parse_time(task["updated_at"])).total_seconds()
    assert waits == 600
    # The entry of the other one may have been written after its run.
    assert [each for each in crew.hints("ready") if each != other] == [key]
    assert crew.hints("leases") == []
    assert crew.task(key) == task


@pytest.mark.req("OQ-120", "OQ-121", "OQ-246", "OQ-038")
async def test_a_task_fails_after_max_retries(crew: Crew) -> None:
    """Three retries are four runs; then it has failed, and is in that index."""
    key = await crew.submit("fail until", 99)
    await crew.wait_for_hint(key)
    async with crew.worker():
        task = await crew.wait_until_ended(key)
        failed = (await crew.tasks.find(states=[FAILED])).records
    assert (task["status"], task["retry_count"], task["attempt"]) == ("Failed", 3, 4)
    assert task["last_error"] == "RuntimeError: run 4 fails"
    assert task["completed_at"] == task["updated_at"]
    assert list_states(crew, key) == ["Pending", "Running"] * 4 + ["Failed"]
    assert [each["retry_count"] for each in crew.versions(key)] == [0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert [each.id for each in failed] == [key]
    assert crew.hints("leases") == []
    # Its entry may have been written anew after it was listed. It is a hint, and goes at the next look at it.
    async with crew.worker():
        await eventually(lambda: crew.hints("ready") == [])


@pytest.mark.req("OQ-124", "OQ-245", "OQ-243", "OQ-248")
async def test_permanent_errors_are_not_retried(crew: Crew) -> None:
    """One run, and no retry."""
    expected = {
        await crew.submit("raise", "fatal"): "this will never work",
        await crew.submit("add", {"left": 1}): "BAD_INPUT: TypeError: ",
        await crew.submit("add", "no object"): "BAD_INPUT: TypeError: an object is needed",
    }
    async with crew.worker():
        for key, error in expected.items():
            task = await crew.wait_until_ended(key)
            assert (task["status"], task["attempt"], task["retry_count"]) == ("Failed", 1, 0)
            assert task["last_error"].startswith(error)


@pytest.mark.req("OQ-115", "OQ-123", "OQ-241", "OQ-248", "OQ-255")
async def test_a_run_is_stopped_at_its_time_limit(crew: Crew, tmp_path: Path) -> None:
    """Plain or async; the worker settles it itself before the monitor has to, and may retry."""
    pid_file = tmp_path / "pids"
    keys = [
        await crew.submit(task_type, input_, timeout_seconds=1, retry_policy=SLOW)
        for task_type, input_ in (("stuck", str(pid_file)), ("sleep", 600))
    ]
    async with crew.worker(QO_CONCURRENCY="2"):
        for key in keys:
            # One whose lease is over before its run begins is given back first, which is no retry.
            task = await eventually(partial(crew.task, key), wanted=lambda each: each["retry_count"] > 0)
            assert (task["status"], task["retry_count"]) == ("Pending", 1)
            assert task["last_error"] == "TIMED_OUT: it took longer than 1 s"
            assert {each["last_error"] for each in crew.versions(key)[:-1]} <= {None, "shutdown"}
        if pid_file.exists():
            await wait_until_gone(*map(int, pid_file.read_text().split()))
        other = await crew.submit("add", {"left": 1, "right": 1})
        assert (await crew.wait_until_ended(other))["output"] == 2


@pytest.mark.req("OQ-129", "OQ-270", "OQ-138")
async def test_a_lease_may_be_renewed(
    crew: Crew, any_clock: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of twice its lease is run once, while a monitor is running."""

    def renew_often(**settings: Any) -> WorkerConfig:
        return WorkerConfig(**{**settings, "renew_s": settings["renew_s"] and 0.2})

    # After a third of the lease would last long; this tests whether it is done at all.
    monkeypatch.setattr("handlers.objectqueue.worker.WorkerConfig", renew_often)
    world, gate, lease_s = Skewed(0), tmp_path / "gate", 600
    key = await crew.submit("gate", str(gate), timeout_seconds=lease_s)
    async with (
        crew.monitor(world, QO_MAX_CLOCK_SKEW_MS="0"),
        crew.worker(world=world, QO_RENEW_LEASES="true"),
    ):
        running = await crew.wait_for_state(key, "Running")
        for _ in range(3):
            world.ahead_s += 0.7 * lease_s
            soon = parse_time(running["lease_expires_at"]) + timedelta(seconds=0.6 * lease_s)
            running = await eventually(
                lambda: crew.task(key),
                wanted=lambda each: parse_time(each["lease_expires_at"] or each["updated_at"]) > soon,  # noqa: B023
            )
        gate.touch()
        task = await crew.wait_until_ended(key)
    assert (task["status"], task["attempt"]) == ("Completed", 1)
    leased = [each for each in crew.versions(key) if each["status"] == "Running"]
    assert parse_time(task["completed_at"]) - parse_time(leased[0]["updated_at"]) > timedelta(
        seconds=2 * lease_s
    )
    assert len({each["lease_expires_at"] for each in leased}) >= 3
    assert len({each["lease_id"] for each in leased}) == 1


@pytest.mark.req("OQ-105")
async def test_a_task_of_an_unknown_type_is_not_claimed(crew: Crew) -> None:
    """It stays as it is, and a worker that knows the type runs it."""
    key = await crew.submit("double", 21)
    async with crew.worker():
        other = await crew.submit("echo", 1)
        await crew.wait_until_ended(other)
        assert crew.task(key)["status"] == "Pending"
        async with crew.worker("other", QO_HANDLERS="tests.support.objectqueue.functions:MORE"):
            assert (await crew.wait_until_ended(key))["output"] == 42
    assert list_states(crew, key) == ["Pending", "Running", "Completed"]


@pytest.mark.req("OQ-244")
async def test_an_unknown_type_fails_if_configured(crew: Crew) -> None:
    """At once, with that reason."""
    key = await crew.submit("nobody knows this")
    async with crew.worker(QO_FAIL_UNKNOWN_TYPES="true"):
        task = await crew.wait_until_ended(key)
    assert (task["status"], task["attempt"]) == ("Failed", 1)
    assert task["last_error"] == "UNKNOWN_TASK_TYPE: nobody knows this"


@pytest.mark.req("OQ-125", "OQ-126", "OQ-247")
async def test_a_lost_lease_writes_and_counts_nothing(crew: Crew, tmp_path: Path) -> None:
    """Another worker has claimed and completed the task meanwhile: its writes stay."""
    gate = tmp_path / "gate"
    key = await crew.submit("gate", str(gate))
    name = f"tasks/{key[0]}/{key}.json"
    async with crew.worker("slow") as works:
        task = await crew.wait_for_state(key, "Running")
        task.update(status="Completed", output="of another", worker_id="other", lease_id=None, attempt=2)
        crew.put_object(name, json.dumps({**task, "lease_expires_at": None, "rev": 9}))
        gate.touch()
        (lost,) = await eventually(lambda: works.events("lease_lost"))
        seen = await eventually(
            lambda: crew.worker_object("slow") or {}, wanted=lambda each: each["leases_lost"] == 1
        )
    assert (lost["id"], lost["attempt"]) == (key, 1)
    assert (seen["tasks_completed"], seen["tasks_failed"]) == (0, 0)
    assert (crew.task(key)["output"], crew.task(key)["rev"]) == ("of another", 9)


@pytest.mark.req("OQ-127")
async def test_a_foreign_change_that_keeps_the_lease_is_no_loss(crew: Crew, tmp_path: Path) -> None:
    """Another client has added a note; the outcome is written, and the note stays."""
    gate = tmp_path / "gate"
    key = await crew.submit("gate", str(gate))
    async with crew.worker() as works:
        task = await crew.wait_for_state(key, "Running")
        crew.put_object(f"tasks/{key[0]}/{key}.json", json.dumps({**task, "x_note": "hello"}))
        gate.touch()
        task = await crew.wait_until_ended(key)
    assert (task["status"], task["output"], task["x_note"]) == ("Completed", "passed", "hello")
    assert works.events("lease_lost") == []


@pytest.mark.req("OQ-X03")
async def test_a_cancelled_run_is_stopped(crew: Crew, tmp_path: Path) -> None:
    """The worker detects it by itself; the process of the handler is gone, and the task stays failed."""
    pid_file = tmp_path / "pids"
    key = await crew.submit("stuck", str(pid_file))
    async with crew.worker(QO_HEARTBEAT_SECONDS="0.2") as works:
        await eventually(lambda: pid_file.exists() and pid_file.read_text())
        transitioned = await crew.tasks.transition(key, "cancel_running", crew.call())
        assert transitioned.applied
        await eventually(lambda: works.events("lease_lost"))
        await wait_until_gone(*map(int, pid_file.read_text().split()))
        other = await crew.submit("echo", 1)
        await crew.wait_until_ended(other)
    task = crew.task(key)
    assert (task["status"], task["last_error"]) == ("Failed", "cancelled")


@pytest.mark.req("OQ-X04")
async def test_progress_is_visible_while_a_task_runs(crew: Crew) -> None:
    """The progress of a handler, plain or async, is in its task, and the outcome comes after it."""
    expected = {
        await crew.submit("steps", 1): {"done": 1, "of": 2},
        await crew.submit("until stopping"): {"phase": "waiting"},
    }
    async with crew.worker(QO_CONCURRENCY="2"):
        for key, progress in expected.items():
            task = await eventually(partial(crew.task, key), wanted=lambda each: bool(each["progress"]))
            assert task["progress"] == progress
    for key in expected:
        assert (await crew.wait_until_ended(key))["status"] == "Completed"


@pytest.mark.req("OQ-128", "OQ-008")
async def test_a_large_output_is_written_before_the_task(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """It has an object of its own, which is written first and is referenced with its version."""
    crew, text = proxied_crew, "x" * 70_000
    key = await crew.submit("echo", text)
    async with crew.worker():
        task = await crew.wait_until_ended(key)
    assert task["output"] is None
    ref = task["output_ref"]
    assert ref["key"] == f"data/{key[0]}/{key}/output.json"
    body = crew.bucket.raw.get_object(Bucket=crew.bucket.name, Key=ref["key"], VersionId=ref["version"])
    assert json.loads(body["Body"].read()) == text
    written = [each.key for each in s3_proxy.asked("PutObject", "output.json|tasks/")]
    assert written.index(f"data/{key[0]}/{key}/output.json") < len(written) - 1


@pytest.mark.req("OQ-242", "OQ-109", "OQ-254")
async def test_a_lost_race_is_no_error(crew: Crew) -> None:
    """Two workers race for two dozen tasks: each task is run once, no worker logs an error."""
    keys = await crew.submit_all("echo", 24, 1)
    async with (
        crew.worker("a", QO_CONCURRENCY="4") as first,
        crew.worker("b", QO_CONCURRENCY="4") as second,
    ):
        for key in keys:
            await crew.wait_until_ended(key)
    for key in keys:
        assert list_states(crew, key) == ["Pending", "Running", "Completed"]
    assert first.events("lease_lost") == second.events("lease_lost") == []


@pytest.mark.req("OQ-258")
async def test_a_small_task_needs_few_requests(proxied_crew: Crew, s3_proxy: S3Proxy) -> None:
    """One worker, one task at a time; their rate is measured by the benchmark."""
    count = 300 if DEEP else 50
    await proxied_crew.submit_all("noop", count)
    s3_proxy.forget()
    async with proxied_crew.worker():
        await eventually(
            lambda: proxied_crew.worker_object("w") or {},
            wanted=lambda each: each["tasks_completed"] == count,
        )
    requests_ = [len(s3_proxy.asked(kind, "^tasks/")) for kind in ("GetObject", "PutObject")]
    # One that the worker has claimed already may be read once more, when a listing still has it.
    assert requests_[1] == 2 * count
    assert count <= requests_[0] < 1.5 * count
    # It need not look round between one task and the next, so there is nothing that it waits for. At the
    # end it does, the more often the longer it takes until its last heartbeat.
    kinds = [each.kind for each in s3_proxy.asked(key="^(tasks/.*)?$")]
    half = [place for place, kind in enumerate(kinds) if kind == "PutObject"][count - 1]
    assert kinds[:half].count("ListObjectsV2") < count / 2


@pytest.mark.req("OQ-X02")
async def test_the_concurrency_is_respected(crew: Crew, tmp_path: Path) -> None:
    """Of six tasks three run at the same time, and never four: each waits until three have begun."""
    keys = await crew.submit_all("meet", 6, [str(tmp_path / "met"), 3])
    async with crew.worker(QO_CONCURRENCY="3"):
        met = [(await crew.wait_until_ended(key))["output"] for key in keys]
    assert max(met) == 3
