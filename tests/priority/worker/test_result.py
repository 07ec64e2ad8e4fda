"""POST /internal/workers/{worker_id}/result: permitted reports and their effects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.priority.probes import UNKNOWN_ID
from tests.support.priority.stack import Queue, Stack, expect_refusal, expect_success, wait_until


@pytest.mark.req("PQ-138", "PQ-145", "PQ-079", "PQ-144", "PQ-102")
def test_a_success_is_stored_and_frees_the_slot(queue: Queue) -> None:
    """The task has its result, and the slot is free when the answer arrives."""
    worker = queue.register(capacity=1)
    task, other = queue.submit(), queue.submit()
    claimed = queue.claim(worker)
    answer = expect_success(queue.report(worker, claimed, result={"a": [1, None], "ü": "\U0001f4e6"}))
    assert answer == {"task_id": task, "status": "completed"}
    assert queue.claim(worker)["task_id"] == other
    assert queue.get(task)["result"] == {"a": [1, None], "ü": "\U0001f4e6"}


@pytest.mark.req("PQ-139", "PQ-080", "PQ-194", "PQ-081", "PQ-051")
def test_retriable_and_fatal_failures(queue: Queue) -> None:
    """One is retried, the other is the end; without a flag it is retried."""
    worker = queue.register()
    task = queue.submit()
    assert queue.fail(worker, queue.claim(worker), message="broken pipe") == "queued"
    task_view = queue.get(task)
    assert (task_view["retry_count"], task_view["error"]) == (
        1,
        {"message": "broken pipe", "retriable": True},
    )
    silent = expect_success(queue.report(worker, queue.claim(worker), "failed", error={"message": "odd"}))
    assert silent["status"] == "queued"
    assert queue.fail(worker, queue.claim(worker), retriable=False) == "failed"
    task_view = queue.get(task)
    assert (task_view["status"], task_view["retry_count"], task_view["attempt"]) == ("failed", 2, 3)
    assert queue.list_queues(task) == []


@pytest.mark.req("PQ-140", "PQ-079", "PQ-089")
def test_a_report_by_another_worker_is_refused(queue: Queue) -> None:
    """It is refused, and nothing changes."""
    one, other = queue.register(), queue.register()
    task = queue.submit()
    claimed = queue.claim(one)
    before = queue.read_hash(task)
    for body in ({"status": "completed"}, {"status": "failed", "error": {"message": "x"}}):
        expect_refusal(queue.report(other, claimed, **body), 409, "STALE_ATTEMPT")
        expect_refusal(queue.report(UNKNOWN_ID, claimed, **body), 409, "STALE_ATTEMPT")
    assert queue.read_hash(task) == before


@pytest.mark.req("PQ-141", "PQ-182")
def test_a_report_of_an_earlier_attempt_is_refused(queue: Queue) -> None:
    """Even of the worker that has the lease again."""
    worker = queue.register()
    task = queue.submit()
    first = queue.claim(worker)
    queue.fail(worker, first)
    second = queue.claim(worker)
    assert (first["attempt"], second["attempt"]) == (1, 2)
    expect_refusal(queue.report(worker, first, result={"late": True}), 409, "STALE_ATTEMPT")
    assert queue.status(task) == "executing"
    queue.complete(worker, second)


@pytest.mark.req("PQ-138", "PQ-140", "PQ-142")
def test_a_report_without_an_attempt(queue: Queue) -> None:
    """The worker that has the lease may omit it; the same report once more has the same answer."""
    worker, other = queue.register(), queue.register()
    task = queue.submit()
    report = {"task_id": task, "status": "completed", "result": {"ok": True}}
    expect_refusal(queue.ask(worker, "result", **report), 409, "STALE_ATTEMPT")
    queue.claim(worker)
    before = queue.read_hash(task)
    expect_refusal(queue.ask(other, "result", **report), 409, "STALE_ATTEMPT")
    expect_refusal(queue.ask(UNKNOWN_ID, "result", **report), 409, "STALE_ATTEMPT")
    assert queue.read_hash(task) == before
    assert expect_success(queue.ask(worker, "result", **report)) == {"task_id": task, "status": "completed"}
    assert queue.get(task)["result"] == {"ok": True}
    assert expect_success(queue.ask(worker, "result", **report)) == {"task_id": task, "status": "completed"}
    expect_refusal(queue.ask(worker, "result", task_id=task, status="failed"), 409, "STALE_ATTEMPT")
    expect_refusal(queue.ask(worker, "result", **{**report, "task_id": UNKNOWN_ID}), 404, "TASK_NOT_FOUND")


@pytest.mark.req("PQ-140", "PQ-182")
def test_a_report_without_an_attempt_after_the_lease(queue: Queue) -> None:
    """A task that waits again, is another worker's or was cancelled is not ended by a worker that had it."""
    one, other = queue.register(), queue.register()
    task = queue.submit()
    failed = {"task_id": task, "status": "failed", "error": {"message": "no"}}
    completed = {"task_id": task, "status": "completed"}
    queue.claim(one)
    assert expect_success(queue.ask(one, "result", **failed))["status"] == "queued"
    expect_refusal(queue.ask(one, "result", **completed), 409, "STALE_ATTEMPT")
    assert queue.list_queues(task) == ["medium"]
    queue.claim(other)
    expect_refusal(queue.ask(one, "result", **completed), 409, "STALE_ATTEMPT")
    assert queue.get(task)["assigned_worker_id"] == other
    queue.cancel(task)
    expect_refusal(queue.ask(other, "result", **completed), 409, "STALE_ATTEMPT")
    assert queue.status(task) == "cancelled"
    again = queue.submit()
    queue.fail(one, queue.claim(one))
    assert queue.claim(one)["attempt"] == 2
    assert (
        expect_success(queue.ask(one, "result", task_id=again, status="completed"))["status"] == "completed"
    )


@pytest.mark.req("PQ-142")
@pytest.mark.parametrize(
    ("report", "status"),
    [
        ({"status": "completed", "result": {"b": 1, "a": 2}}, "completed"),
        ({"status": "completed"}, "completed"),
        ({"status": "failed", "error": {"message": "x", "retriable": False}}, "failed"),
        ({"status": "failed", "error": {"message": "x", "retriable": True}}, "queued"),
    ],
)
def test_a_repeated_report_has_the_same_answer(queue: Queue, report: dict[str, Any], status: str) -> None:
    """It has the same answer and no effect; another one is refused."""
    worker = queue.register()
    task = queue.submit()
    claimed = queue.claim(worker)
    first = expect_success(queue.report(worker, claimed, **report))
    before = queue.read_hash(task)
    assert (
        expect_success(queue.report(worker, claimed, **report))
        == first
        == {"task_id": task, "status": status}
    )
    assert queue.read_hash(task) == before
    other = "failed" if status == "completed" else "completed"
    expect_refusal(queue.report(worker, claimed, other), 409, "STALE_ATTEMPT")
    assert queue.read_hash(task) == before


@pytest.mark.req("PQ-185", "PQ-082", "PQ-142")
def test_a_repeated_last_failure(queue: Queue) -> None:
    """A dead letter is answered as such."""
    worker = queue.register()
    queue.submit(max_retries=0)
    claimed = queue.claim(worker)
    assert [queue.fail(worker, claimed) for _ in range(2)] == ["dead_letter", "dead_letter"]
    assert queue.redis.zcard("queue:dlq") == 1


@pytest.mark.req("PQ-143", "PQ-086")
def test_a_report_of_a_task_that_does_not_run_is_refused(queue: Queue) -> None:
    """Queued, cancelled, dead, ended or unknown."""
    worker = queue.register()
    dead = queue.make_dead_letter(worker)
    queued, cancelled = queue.submit(), queue.submit()
    queue.cancel(cancelled)
    for task in (queued, cancelled, dead):
        before = queue.read_hash(task)
        expect_refusal(queue.report(worker, {"task_id": task, "attempt": 1}), 409, "STALE_ATTEMPT")
        assert queue.read_hash(task) == before
    expect_refusal(queue.report(worker, {"task_id": UNKNOWN_ID, "attempt": 1}), 404, "TASK_NOT_FOUND")


@pytest.mark.req("PQ-139", "PQ-184")
def test_a_task_is_released(queue: Queue) -> None:
    """It waits again as before, without an error or a retry; its former worker may not report that run."""
    worker = queue.register()
    task = queue.submit(max_retries=0)
    queue.claim(worker)
    for _ in range(2):  # The same report twice has the same answer.
        back = expect_success(queue.ask(worker, "result", task_id=task, attempt=1, status="queued"))
        assert back == {"task_id": task, "status": "queued"}
    found = queue.get(task)
    assert (found["retry_count"], found.get("error")) == (0, None)
    expect_refusal(queue.report(worker, {"task_id": task, "attempt": 1}), 409, "STALE_ATTEMPT")
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
def test_invalid_reports_are_refused(queue: Queue, body: dict[str, Any]) -> None:
    """They are refused by the field that is wrong, and the task runs on."""
    worker = queue.register()
    task = queue.submit()
    queue.claim(worker)
    expect_refusal(queue.ask(worker, "result", task_id=task, **body), 400, "VALIDATION_ERROR")
    assert queue.status(task) == "executing"


@pytest.mark.req("PQ-X03")
def test_extensions_and_progress(queue: Queue) -> None:
    """Only the worker of the current attempt may report them."""
    worker, other = queue.register(), queue.register()
    task = queue.submit(timeout_seconds=60)
    claimed = queue.claim(worker)
    report = {"task_id": task, "attempt": 1}
    longer = expect_success(queue.ask(worker, "extend", seconds=600, **report))
    assert longer["deadline_at"] > claimed["deadline_at"]
    assert queue.get(task)["deadline_at"] == longer["deadline_at"]
    assert expect_success(queue.ask(worker, "progress", progress={"done": 0.5}, **report)) == {
        "task_id": task,
        "status": "executing",
    }
    assert queue.get(task)["progress"] == {"done": 0.5}
    for wrong in ({**report, "attempt": 2}, report):
        stranger = worker if wrong["attempt"] == 2 else other
        expect_refusal(queue.ask(stranger, "extend", seconds=9, **wrong), 409, "STALE_ATTEMPT")
        expect_refusal(queue.ask(stranger, "progress", progress={}, **wrong), 409, "STALE_ATTEMPT")
    unknown = {"task_id": UNKNOWN_ID, "attempt": 1}
    expect_refusal(queue.ask(worker, "extend", seconds=9, **unknown), 404, "TASK_NOT_FOUND")
    expect_refusal(queue.ask(worker, "progress", progress={}, **unknown), 404, "TASK_NOT_FOUND")
    expect_refusal(queue.ask(worker, "progress", progress=[], **report), 400, "VALIDATION_ERROR")


@pytest.mark.req("PQ-137", "PQ-175", "PQ-176", "PQ-177", "PQ-178", "PQ-182", "PQ-195")
def test_a_run_past_its_deadline_is_requeued(fresh: Stack) -> None:
    """It is queued again although its worker is alive; another one with more time runs on."""
    fresh.add("api", TIMEOUT_CHECK_INTERVAL_SECONDS="0.1")
    queue = fresh.queue()
    worker = queue.register()
    long = queue.submit(timeout_seconds=600)
    queue.claim(worker)
    short = queue.submit(timeout_seconds=100)
    claimed = queue.claim(worker)
    assert expect_success(queue.beat(worker, 2, running=[long, short]))["stop"] == []
    queue.run_out_of_time(short)
    task_view = wait_until(
        lambda: queue.get(short), "it is queued again", lambda seen: seen["status"] == "queued"
    )
    assert (task_view["retry_count"], task_view["timeout_seconds"]) == (1, 150)
    assert task_view["error"] == {"message": "the task ran out of time", "retriable": True}
    assert queue.status(long) == "executing"
    assert expect_success(queue.beat(worker, 2, running=[long, short]))["stop"] == [short]
    expect_refusal(queue.report(worker, claimed), 409, "STALE_ATTEMPT")
