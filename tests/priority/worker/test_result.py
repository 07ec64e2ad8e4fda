"""POST /internal/workers/{worker_id}/result: who may report what, and what comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.priority.stack import Queue, Stack, refused, told, wait_until

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.mark.req("PQ-138", "PQ-145", "PQ-079", "PQ-144", "PQ-102")
def test_a_success(queue: Queue) -> None:
    """The task has its result, and the slot is free when the answer arrives."""
    worker = queue.register(capacity=1)
    task, other = queue.submit(), queue.submit()
    given = queue.claim(worker)
    answer = told(queue.report(worker, given, result={"a": [1, None], "ü": "\U0001f4e6"}))
    assert answer == {"task_id": task, "status": "completed"}
    assert queue.claim(worker)["task_id"] == other
    assert queue.get(task)["result"] == {"a": [1, None], "ü": "\U0001f4e6"}


@pytest.mark.req("PQ-139", "PQ-080", "PQ-194", "PQ-081", "PQ-051")
def test_two_kinds_of_failure(queue: Queue) -> None:
    """One is tried again, the other is the end; one that says nothing of it is tried again."""
    worker = queue.register()
    task = queue.submit()
    assert queue.fail(worker, queue.claim(worker), message="broken pipe") == "queued"
    shown = queue.get(task)
    assert (shown["retry_count"], shown["error"]) == (1, {"message": "broken pipe", "retriable": True})
    silent = told(queue.report(worker, queue.claim(worker), "failed", error={"message": "odd"}))
    assert silent["status"] == "queued"
    assert queue.fail(worker, queue.claim(worker), retriable=False) == "failed"
    shown = queue.get(task)
    assert (shown["status"], shown["retry_count"], shown["attempt"]) == ("failed", 2, 3)
    assert queue.queues_of(task) == []


@pytest.mark.req("PQ-140", "PQ-079", "PQ-089")
def test_a_worker_that_does_not_hold_the_task(queue: Queue) -> None:
    """It is refused, and nothing changes."""
    one, other = queue.register(), queue.register()
    task = queue.submit()
    given = queue.claim(one)
    before = queue.hash(task)
    for body in ({"status": "completed"}, {"status": "failed", "error": {"message": "x"}}):
        refused(queue.report(other, given, **body), 409, "STALE_ATTEMPT")
        refused(queue.report(NOBODY, given, **body), 409, "STALE_ATTEMPT")
    assert queue.hash(task) == before


@pytest.mark.req("PQ-141", "PQ-182")
def test_an_earlier_attempt(queue: Queue) -> None:
    """Even of the worker that holds the task again."""
    worker = queue.register()
    task = queue.submit()
    first = queue.claim(worker)
    queue.fail(worker, first)
    second = queue.claim(worker)
    assert (first["attempt"], second["attempt"]) == (1, 2)
    refused(queue.report(worker, first, result={"late": True}), 409, "STALE_ATTEMPT")
    assert queue.status(task) == "executing"
    queue.complete(worker, second)


@pytest.mark.req("PQ-138", "PQ-140", "PQ-142")
def test_a_report_without_an_attempt(queue: Queue) -> None:
    """The worker that has the lease may leave it out; the same report once more has the same answer."""
    worker, other = queue.register(), queue.register()
    task = queue.submit()
    said = {"task_id": task, "status": "completed", "result": {"ok": True}}
    refused(queue.ask(worker, "result", **said), 409, "STALE_ATTEMPT")
    queue.claim(worker)
    before = queue.hash(task)
    refused(queue.ask(other, "result", **said), 409, "STALE_ATTEMPT")
    refused(queue.ask(NOBODY, "result", **said), 409, "STALE_ATTEMPT")
    assert queue.hash(task) == before
    assert told(queue.ask(worker, "result", **said)) == {"task_id": task, "status": "completed"}
    assert queue.get(task)["result"] == {"ok": True}
    assert told(queue.ask(worker, "result", **said)) == {"task_id": task, "status": "completed"}
    refused(queue.ask(worker, "result", task_id=task, status="failed"), 409, "STALE_ATTEMPT")
    refused(queue.ask(worker, "result", **{**said, "task_id": NOBODY}), 404, "TASK_NOT_FOUND")


@pytest.mark.req("PQ-140", "PQ-182")
def test_a_report_without_an_attempt_after_the_lease(queue: Queue) -> None:
    """A task that waits again, is another worker's or was cancelled is not ended by a worker that had it."""
    one, other = queue.register(), queue.register()
    task = queue.submit()
    failed = {"task_id": task, "status": "failed", "error": {"message": "no"}}
    done = {"task_id": task, "status": "completed"}
    queue.claim(one)
    assert told(queue.ask(one, "result", **failed))["status"] == "queued"
    refused(queue.ask(one, "result", **done), 409, "STALE_ATTEMPT")
    assert queue.queues_of(task) == ["medium"]
    queue.claim(other)
    refused(queue.ask(one, "result", **done), 409, "STALE_ATTEMPT")
    assert queue.get(task)["assigned_worker_id"] == other
    queue.cancel(task)
    refused(queue.ask(other, "result", **done), 409, "STALE_ATTEMPT")
    assert queue.status(task) == "cancelled"
    again = queue.submit()
    queue.fail(one, queue.claim(one))
    assert queue.claim(one)["attempt"] == 2
    assert told(queue.ask(one, "result", task_id=again, status="completed"))["status"] == "completed"


@pytest.mark.req("PQ-142")
@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"status": "completed", "result": {"b": 1, "a": 2}}, "completed"),
        ({"status": "completed"}, "completed"),
        ({"status": "failed", "error": {"message": "x", "retriable": False}}, "failed"),
        ({"status": "failed", "error": {"message": "x", "retriable": True}}, "queued"),
    ],
)
def test_the_same_report_once_more(queue: Queue, said: dict[str, Any], status: str) -> None:
    """It has the same answer and no effect; another one is refused."""
    worker = queue.register()
    task = queue.submit()
    given = queue.claim(worker)
    first = told(queue.report(worker, given, **said))
    before = queue.hash(task)
    assert told(queue.report(worker, given, **said)) == first == {"task_id": task, "status": status}
    assert queue.hash(task) == before
    other = "failed" if status == "completed" else "completed"
    refused(queue.report(worker, given, other), 409, "STALE_ATTEMPT")
    assert queue.hash(task) == before


@pytest.mark.req("PQ-185", "PQ-082", "PQ-142")
def test_the_last_failure_once_more(queue: Queue) -> None:
    """A dead letter is answered as such."""
    worker = queue.register()
    queue.submit(max_retries=0)
    given = queue.claim(worker)
    assert [queue.fail(worker, given) for _ in range(2)] == ["dead_letter", "dead_letter"]
    assert queue.redis.zcard("queue:dlq") == 1


@pytest.mark.req("PQ-143", "PQ-086")
def test_a_task_that_does_not_run(queue: Queue) -> None:
    """Queued, cancelled, dead, ended or unknown."""
    worker = queue.register()
    dead = queue.bury(worker)
    queued, cancelled = queue.submit(), queue.submit()
    queue.cancel(cancelled)
    for task in (queued, cancelled, dead):
        before = queue.hash(task)
        refused(queue.report(worker, {"task_id": task, "attempt": 1}), 409, "STALE_ATTEMPT")
        assert queue.hash(task) == before
    refused(queue.report(worker, {"task_id": NOBODY, "attempt": 1}), 404, "TASK_NOT_FOUND")


@pytest.mark.req("PQ-139", "PQ-184")
def test_a_task_is_given_back_undone(queue: Queue) -> None:
    """It waits again as it did, without an error or a retry; who gave it back says no more of that run."""
    worker = queue.register()
    task = queue.submit(max_retries=0)
    queue.claim(worker)
    for _ in range(2):  # The same report twice has the same answer.
        back = told(queue.ask(worker, "result", task_id=task, attempt=1, status="queued"))
        assert back == {"task_id": task, "status": "queued"}
    found = queue.get(task)
    assert (found["retry_count"], found.get("error")) == (0, None)
    refused(queue.report(worker, {"task_id": task, "attempt": 1}), 409, "STALE_ATTEMPT")
    assert queue.claim(worker)["attempt"] == 2


@pytest.mark.req("PQ-123", "PQ-139")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"attempt": 1},
        {"attempt": 1, "status": "executing"},
        {"attempt": 1, "status": "cancelled"},
        {"attempt": 0, "status": "completed"},
        {"attempt": 1, "status": "failed", "error": "x"},
    ],
)
def test_bad_reports(queue: Queue, body: dict[str, Any]) -> None:
    """They are refused by the field that is wrong, and the task runs on."""
    worker = queue.register()
    task = queue.submit()
    queue.claim(worker)
    refused(queue.ask(worker, "result", task_id=task, **body), 400, "VALIDATION_ERROR")
    assert queue.status(task) == "executing"


@pytest.mark.req("PQ-X03")
def test_more_time_and_progress(queue: Queue) -> None:
    """Only whoever runs the task in this attempt may say so."""
    worker, other = queue.register(), queue.register()
    task = queue.submit(timeout_seconds=60)
    given = queue.claim(worker)
    said = {"task_id": task, "attempt": 1}
    longer = told(queue.ask(worker, "extend", seconds=600, **said))
    assert longer["deadline_at"] > given["deadline_at"]
    assert queue.get(task)["deadline_at"] == longer["deadline_at"]
    assert told(queue.ask(worker, "progress", progress={"done": 0.5}, **said)) == {
        "task_id": task,
        "status": "executing",
    }
    assert queue.get(task)["progress"] == {"done": 0.5}
    for wrong in ({**said, "attempt": 2}, said):
        stranger = worker if wrong["attempt"] == 2 else other
        refused(queue.ask(stranger, "extend", seconds=9, **wrong), 409, "STALE_ATTEMPT")
        refused(queue.ask(stranger, "progress", progress={}, **wrong), 409, "STALE_ATTEMPT")
    nobody = {"task_id": NOBODY, "attempt": 1}
    refused(queue.ask(worker, "extend", seconds=9, **nobody), 404, "TASK_NOT_FOUND")
    refused(queue.ask(worker, "progress", progress={}, **nobody), 404, "TASK_NOT_FOUND")
    refused(queue.ask(worker, "progress", progress=[], **said), 400, "VALIDATION_ERROR")


@pytest.mark.req("PQ-137", "PQ-175", "PQ-176", "PQ-177", "PQ-178", "PQ-182", "PQ-195")
def test_a_run_that_is_out_of_time(fresh: Stack) -> None:
    """It is queued again although its worker is heard of; another one with more time is left alone."""
    fresh.add("api", TIMEOUT_CHECK_INTERVAL_SECONDS="0.1")
    queue = fresh.queue()
    worker = queue.register()
    long = queue.submit(timeout_seconds=600)
    queue.claim(worker)
    short = queue.submit(timeout_seconds=100)
    given = queue.claim(worker)
    assert told(queue.beat(worker, 2))["stop"] == []
    queue.run_out_of_time(short)
    shown = wait_until(
        lambda: queue.get(short), "it is queued again", lambda seen: seen["status"] == "queued"
    )
    assert (shown["retry_count"], shown["timeout_seconds"]) == (1, 150)
    assert shown["error"] == {"message": "the task ran out of time", "retriable": True}
    assert queue.status(long) == "executing"
    assert told(queue.beat(worker, 2))["stop"] == [short]
    refused(queue.report(worker, given), 409, "STALE_ATTEMPT")
