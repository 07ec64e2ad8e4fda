"""The worker as a process: it runs its tasks concurrently, drains and deregisters."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.priority.conftest import NewServers
from tests.support.orchestrator.worker_processes import wait_for_exit
from tests.support.priority.stack import BRISK, TOKENS, Queue, Stack, expect_success, wait_until

STAGED = "tests.support.priority.staged_node"
INTERVALS = {**BRISK, "WORKER_DEAD_SECONDS": "3600"}
"""No worker counts as dead that a test has not silenced, however busy the machine is."""


@pytest.fixture(scope="module")
def crew(new_servers: NewServers, logs: Path) -> Iterator[Stack]:
    """An API and a worker that is connected to Redis itself."""
    with Stack(new_servers(), logs) as stack:
        stack.node("api", intervals=INTERVALS).begin()
        stack.node("worker", intervals=INTERVALS, program=STAGED, WORKER_CAPABILITIES="gpu, disk").begin()
        for node in stack.nodes:
            node.wait()
        yield stack


def wait_until_ended(queue: Queue, task: str) -> dict[str, Any]:
    """A task once it has ended."""
    over = ("completed", "failed", "cancelled", "dead_letter")
    return wait_until(lambda: queue.get(task), f"{task} has ended", lambda seen: seen["status"] in over)


def wait_until_executing(queue: Queue, task: str) -> dict[str, Any]:
    return wait_until(lambda: queue.get(task), "it runs", lambda seen: seen["status"] == "executing")


@pytest.mark.req("PQ-X06", "PQ-038", "PQ-050")
def test_functions_are_run(crew: Stack) -> None:
    """Each task ends as its function does, also those that are no coroutines."""
    queue = crew.queue()
    tasks = {
        "echo": queue.submit(parameters={"a": [1, "ü"]}, required_capabilities=["disk", "gpu"]),
        "blocking": queue.submit("blocking"),
        "fatal": queue.submit("fatal"),
        "fail": queue.submit("fail", max_retries=1),
        "unknown": queue.submit("no-such-type", max_retries=0),
    }
    found = {name: wait_until_ended(queue, task) for name, task in tasks.items()}
    assert (found["echo"]["status"], found["echo"]["result"]) == ("completed", {"a": [1, "ü"]})
    assert found["blocking"]["status"] == "completed"
    assert (found["fatal"]["status"], found["fatal"]["error"]["retriable"]) == ("failed", False)
    assert (found["fail"]["status"], found["fail"]["attempt"]) == ("dead_letter", 2)
    assert found["unknown"]["error"]["message"] == "UNKNOWN_TASK_TYPE: no-such-type"


@pytest.mark.req("PQ-050")
@pytest.mark.parametrize(
    ("kind", "why"), [("nul", "RESULT_NOT_JSON"), ("large", "RESULT_TOO_LARGE"), ("no json", "TypeError")]
)
def test_results_that_cannot_be_stored(crew: Stack, kind: str, why: str) -> None:
    """They fail their own task and no other."""
    queue = crew.queue()
    odd = queue.submit("odd", parameters={"what": kind}, max_retries=0)
    other = queue.submit()
    assert wait_until_ended(queue, odd)["error"]["message"].startswith(why)
    assert wait_until_ended(queue, other)["status"] == "completed"


@pytest.mark.req("PQ-X03")
def test_progress_and_extensions(crew: Stack, tmp_path: Path) -> None:
    """A function reports its progress; one that may last longer than its task has its deadline extended."""
    queue, gate = crew.queue(), tmp_path / "gate"
    patient = queue.submit("patient", parameters={"gate": str(gate)}, timeout_seconds=600)
    steps = queue.submit("stepwise", parameters={"gate": str(gate)})
    wait_until(lambda: queue.get(steps)["progress"], "it reports", lambda seen: seen == {"step": 1})

    def read_deadline() -> int:
        stored = queue.read_hash(patient)
        return int(stored.get("deadline_at", 0)) - int(stored.get("started_at", 0))

    wait_until(read_deadline, "it is given the time of its function", lambda seen: seen >= 3600 * 1_000_000)
    gate.touch()
    found = wait_until_ended(queue, steps)
    assert (found["progress"], found["result"]) == ({"step": 2}, {"attempt": 1})
    waited = wait_until_ended(queue, patient)
    assert (waited["status"], waited["attempt"]) == ("completed", 1)


@pytest.mark.req("PQ-X06", "PQ-064")
def test_concurrent_tasks(crew: Stack, tmp_path: Path) -> None:
    """As many as its capacity, and a task starts as soon as it comes."""
    queue, gate = crew.queue(), tmp_path / "gate"
    tasks = [queue.submit("gate", parameters={"gate": str(gate)}) for _ in range(5)]
    wait_until(lambda: queue.stats()["workers"]["used_capacity"], "all of them run", lambda seen: seen == 5)
    gate.touch()
    spans = [wait_until_ended(queue, task) for task in tasks]
    latest_start = max(each["started_at"] for each in spans)
    assert latest_start < min(each["completed_at"] for each in spans)


@pytest.mark.req("PQ-108", "PQ-150", "PQ-175")
def test_a_cancelled_run_is_stopped(crew: Stack) -> None:
    """The worker learns of it by its heartbeat, and its slot is free again."""
    queue = crew.queue()
    tasks = [queue.submit("sleep", parameters={"seconds": 600}) for _ in range(5)]
    for task in tasks:
        wait_until_executing(queue, task)
    for task in tasks:
        expect_success(queue.cancel(task))
    assert wait_until_ended(queue, queue.submit())["status"] == "completed"
    wait_until(
        lambda: {line["task_id"] for line in crew.nodes[1].lines() if line["event"] == "lease_lost"},
        "it has reported all of them",
        lambda seen: seen >= set(tasks),
    )


@pytest.mark.req("PQ-177")
def test_a_run_past_its_timeout_is_stopped(crew: Stack) -> None:
    """By the worker itself, or by the detector if that is faster."""
    queue = crew.queue()
    task = queue.submit("sleep", parameters={"seconds": 600}, timeout_seconds=1, max_retries=0)
    found = wait_until_ended(queue, task)
    assert found["status"] == "dead_letter"
    assert found["error"]["message"].startswith(("TIMED_OUT", "the task ran out of time"))


@pytest.mark.req("PQ-260", "PQ-076", "PQ-069", "PQ-X06")
def test_a_worker_drains_when_it_is_stopped(fresh: Stack, tmp_path: Path) -> None:
    """It claims nothing new, ends its tasks, and deregisters without counting as dead."""
    fresh.node("api", intervals=INTERVALS).begin()
    worker = fresh.node("worker", intervals=INTERVALS, program=STAGED, SHUTDOWN_GRACE_SECONDS="20").begin()
    for node in fresh.nodes:
        node.wait()
    queue, gate = fresh.queue(), tmp_path / "gate"
    short = queue.submit("gate", parameters={"gate": str(gate)})
    wait_until_executing(queue, short)
    worker.signal(signal.SIGTERM)
    wait_until(lambda: [line for line in worker.lines() if line["event"] == "service_stopping"], "it knows")
    waiting = queue.submit()
    gate.touch()
    assert wait_for_exit(worker) == 0
    assert queue.get(short)["status"] == "completed"
    assert queue.status(waiting) == "queued"
    workers = queue.stats()["workers"]
    assert (workers["active"], workers["draining"], workers["dead"]) == (0, 0, 0)
    assert fresh.nodes[0].stop() == 0


@pytest.mark.req("PQ-260", "PQ-076", "PQ-X06")
def test_a_task_that_outlasts_the_grace_is_released(fresh: Stack, tmp_path: Path) -> None:
    """Beside a run that has ended: it waits again without a failure, and its worker is not dead."""
    fresh.node("api", intervals=INTERVALS).begin()
    worker = fresh.node("worker", intervals=INTERVALS, program=STAGED, SHUTDOWN_GRACE_SECONDS="0.1").begin()
    for node in fresh.nodes:
        node.wait()
    queue, gate = fresh.queue(), tmp_path / "gate"
    short = queue.submit("gate", parameters={"gate": str(gate)})
    long = queue.submit("sleep", parameters={"seconds": 3600})
    wait_until_executing(queue, short), wait_until_executing(queue, long)
    gate.touch()
    assert wait_until_ended(queue, short)["status"] == "completed"
    assert worker.stop() == 0
    released = queue.get(long)
    assert (released["status"], released["retry_count"]) == ("queued", 0)
    assert released.get("error") is None
    workers = queue.stats()["workers"]
    assert (workers["active"], workers["draining"], workers["dead"]) == (0, 0, 0)


@pytest.mark.req("PQ-170", "PQ-172", "PQ-075")
def test_a_worker_that_was_stopped_for_a_while(fresh: Stack, tmp_path: Path) -> None:
    """Its task is run by another one; when it is back, it registers anew and works on."""
    fresh.node("api", intervals=INTERVALS).begin()
    for _ in range(2):
        fresh.node("worker", intervals=INTERVALS, program=STAGED, WORKER_CAPACITY="1").begin()
    for node in fresh.nodes:
        node.wait()
    queue, gate = fresh.queue(), tmp_path / "gate"
    task = queue.submit("gate", parameters={"gate": str(gate)})
    holder = wait_until_executing(queue, task)["assigned_worker_id"]
    (node,) = wait_until(
        lambda: [each for each in fresh.nodes[1:] if holder in each.log.read_text()],
        "one reports that it runs",
    )
    node.signal(signal.SIGSTOP)

    def count_dead() -> int:
        # A heartbeat in flight may come after the first time.
        queue.silence(holder, 3601)
        return int(queue.stats()["workers"]["dead"])

    wait_until(count_dead, "it is given up", lambda seen: seen == 1)
    claimed = wait_until(lambda: queue.get(task), "another one runs it", lambda seen: seen["attempt"] == 2)
    assert claimed["assigned_worker_id"] != holder
    node.signal(signal.SIGCONT)
    gate.touch()
    assert wait_until_ended(queue, task)["status"] == "completed"
    wait_until(lambda: queue.stats()["workers"]["active"], "it is back", lambda seen: seen == 2)
    wait_until(lambda: any(line["event"] == "worker_lost" for line in node.lines()), "it is logged")
    assert queue.get(task)["attempt"] == 2


@pytest.mark.req("PQ-X14", "PQ-260", "PQ-X05")
def test_a_worker_over_the_network(fresh: Stack) -> None:
    """It calls the API alone, and waits for an API that is down."""
    api = fresh.add("api", deployment="compose", intervals=INTERVALS)
    fresh.add("scheduler", deployment="compose", intervals=INTERVALS)
    worker = fresh.add(
        "worker",
        deployment="compose",
        intervals=INTERVALS,
        MANAGER_ADDR=api.address,
        CALLER_TOKEN=TOKENS["worker"],
    )
    assert "REDIS_URL" not in worker.system.deployments["compose"].nodes["worker"].variables
    queue = fresh.queue()
    assert wait_until_ended(queue, queue.submit(parameters={"n": 1}))["result"] == {"n": 1}
    assert wait_until_ended(queue, queue.submit())["status"] == "completed"
    api.kill()
    api.start()
    again = fresh.queue(api)
    assert wait_until_ended(again, again.submit())["status"] == "completed"
    assert worker.stop() == 0
    wait_until(lambda: again.stats()["workers"]["active"], "it has left", lambda seen: seen == 0)


@pytest.mark.req("PQ-184", "PQ-185", "PQ-X06", "PQ-X13")
def test_a_shutdown_does_not_count_as_a_failure(fresh: Stack, tmp_path: Path) -> None:
    """No retry is counted, the history has every stop, and the task succeeds in the end."""
    fresh.node("api", intervals=BRISK).begin().wait()
    queue, gate, stops = fresh.queue(), tmp_path / "gate", 3
    task = queue.submit("gate", parameters={"gate": str(gate)}, max_retries=0, timeout_seconds=600)
    for _ in range(stops):
        worker = fresh.node("worker", intervals=BRISK, program=STAGED, SHUTDOWN_GRACE_SECONDS="0").begin()
        worker.wait()
        wait_until_executing(queue, task)
        assert worker.stop() == 0
        found = queue.get(task)
        assert (found["status"], found["retry_count"], found["timeout_seconds"]) == ("queued", 0, 600)
    worker = fresh.node("worker", intervals=BRISK, program=STAGED).begin()
    gate.touch()
    found = wait_until_ended(queue, task)
    assert (found["status"], found["retry_count"]) == ("completed", 0)
    # A poll in flight may return a task that the worker has just released, and it releases that, too.
    again = found["attempt"] - 1
    assert again >= stops

    def list_reasons() -> list[str]:
        answer = expect_success(queue.admin.get(f"/api/v1/admin/tasks/{task}/history"))
        return [each["reason"] for each in answer["changes"] if each.get("reason")]

    wait_until(list_reasons, "the history has it", lambda seen: seen == ["given_back"] * again)
    assert worker.stop() == 0
