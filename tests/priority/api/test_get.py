"""GET /api/v1/tasks/{task_id}: the representation of a task in each of its states."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.priority.probes import UNKNOWN_ID
from tests.support.priority.stack import Queue, Stack, expect_refusal, expect_success, wait_until

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ALWAYS = {"task_id", "status", "priority", "effective_priority", "created_at", "assigned_worker_id", "result"}


@pytest.mark.req("PQ-100", "PQ-101", "PQ-047", "PQ-048", "PQ-049", "PQ-050", "PQ-052", "PQ-055")
def test_a_task_from_its_submission_to_its_end(queue: Queue) -> None:
    """The fields that are set in each state, and the one format of times."""
    worker = queue.register()
    task = queue.submit()
    waiting = queue.get(task)
    assert set(waiting) >= ALWAYS
    unset = (
        "assigned_worker_id",
        "result",
        "error",
        "started_at",
        "completed_at",
        "deadline_at",
        "idempotency_key",
    )
    assert all(waiting[name] is None for name in unset)
    assert INSTANT.fullmatch(waiting["created_at"])
    claimed = queue.claim(worker)
    running = queue.get(task)
    assert (running["status"], running["assigned_worker_id"]) == ("executing", worker)
    assert INSTANT.fullmatch(running["started_at"])
    assert running["deadline_at"] == claimed["deadline_at"]
    assert (running["completed_at"], running["result"]) == (None, None)
    queue.complete(worker, claimed, {"frames": [1, 2]})
    ended = queue.get(task)
    assert (ended["status"], ended["result"], ended["error"]) == ("completed", {"frames": [1, 2]}, None)
    assert INSTANT.fullmatch(ended["completed_at"])
    assert ended["created_at"] == waiting["created_at"]
    stored = queue.read_hash(task)
    assert all(
        stored[name].isdecimal() and len(stored[name]) == 16 for name in ("created_at", "completed_at")
    )


@pytest.mark.req("PQ-103", "PQ-051", "PQ-102")
def test_a_failed_task_has_its_error(queue: Queue) -> None:
    """With its retries, its end and its trace."""
    worker = queue.register()
    task = queue.submit()
    queue.fail(worker, queue.claim(worker), retriable=False, message="no such file")
    task_view = queue.get(task)
    assert task_view["status"] == "failed"
    assert task_view["error"] == {"message": "no such file", "retriable": False}
    assert task_view["retry_count"] == 0
    assert task_view["completed_at"] and task_view["trace_id"]


@pytest.mark.req("PQ-104")
def test_unknown_and_malformed_ids(queue: Queue) -> None:
    """An unknown one is 404, a malformed one is refused, and nothing is ever 500."""
    error = expect_refusal(queue.client.get(f"/api/v1/tasks/{UNKNOWN_ID}"), 404, "TASK_NOT_FOUND")
    assert error["details"] == {"task_id": UNKNOWN_ID}
    for odd in (
        "x",
        "%00",
        "..",
        "%2e%2e%2f",
        "tasks:1",
        UNKNOWN_ID.upper().replace("0", "A"),
        "a" * 500,
        "%7Bpq%7D",
    ):
        answer = queue.client.get(f"/api/v1/tasks/{odd}")
        assert answer.status_code in (400, 404), odd


@pytest.mark.req("PQ-104", "PQ-110")
def test_an_id_never_names_an_index(queue: Queue) -> None:
    """The other keys of Redis are neither tasks nor workers, to any call with an id."""
    worker, task = queue.register(), queue.submit()
    before = queue.list_keys()
    for name in ("status:queued", "status:executing"):
        for path in (f"/api/v1/tasks/{name}", f"/api/v1/admin/dlq/{name}"):
            expect_refusal(queue.admin.delete(path), 404, "TASK_NOT_FOUND")
        expect_refusal(queue.client.get(f"/api/v1/tasks/{name}"), 404, "TASK_NOT_FOUND")
    for name in ("heartbeats", "status:active"):
        expect_refusal(queue.worker.delete(f"/internal/workers/{name}"), 404, "WORKER_NOT_FOUND")
    assert queue.list_keys() == before
    assert queue.claim(worker)["task_id"] == task


@pytest.mark.req("PQ-105")
def test_reads_change_nothing(queue: Queue) -> None:
    """Neither the task nor any other key."""
    task = queue.submit()
    before = (queue.read_hash(task), queue.list_waiting("medium"), queue.list_keys())
    for _ in range(100):
        queue.get(task)
    assert (queue.read_hash(task), queue.list_waiting("medium"), queue.list_keys()) == before


@pytest.mark.req("PQ-X07")
def test_a_read_waits_for_the_end(queue: Queue) -> None:
    """The answer comes when the task ends, or when the time is over."""
    worker = queue.register()
    task = queue.submit()
    began = time.monotonic()
    still = expect_success(queue.client.get(f"/api/v1/tasks/{task}", params={"wait_ms": 200}))
    assert still["status"] == "queued"
    assert time.monotonic() - began > 0.19  # A timer may be a part of a millisecond early.
    claimed = queue.claim(worker)
    before = queue.calls("hgetall")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.client.get, f"/api/v1/tasks/{task}", params={"wait_ms": 20_000})
        wait_until(lambda: queue.calls("hgetall") > before, "the task was looked at while it runs")
        queue.complete(worker, claimed, {})
        assert expect_success(waiting.result())["status"] == "completed"
    expect_refusal(
        queue.client.get(f"/api/v1/tasks/{task}", params={"wait_ms": 20001}), 400, "VALIDATION_ERROR"
    )


@pytest.mark.req("PQ-056", "PQ-247")
def test_a_task_that_expired_in_redis_is_read_from_the_history(fresh: Stack) -> None:
    """With the same answer as before."""
    fresh.add("api", TASK_RETENTION_SECONDS="1")
    queue = fresh.queue()
    worker = queue.register()
    task = queue.submit(parameters={"n": 1}, idempotency_key="k")
    queue.complete(worker, queue.claim(worker), {"ok": True})
    wait_until(lambda: queue.redis.xlen("history:outbox"), "all is written", lambda seen: seen == 0)
    before = queue.get(task)
    wait_until(lambda: queue.read_hash(task), "its hash has expired", lambda seen: not seen)
    assert (
        wait_until(
            lambda: queue.client.get(f"/api/v1/tasks/{task}"),
            "it is in the history",
            lambda a: a.status_code == 200,
        ).json()
        == before
    )
    expect_refusal(queue.cancel(task), 409, "TASK_TERMINAL")


@pytest.mark.req("PQ-X04")
def test_tasks_are_listed_by_filters(queue: Queue) -> None:
    """By status, type and priority, in pages, those that changed last first."""
    worker = queue.register()
    first = [queue.submit("a", priority="low") for _ in range(5)]
    others = [queue.submit("b") for _ in range(5)]
    completed = queue.claim(worker)
    queue.complete(worker, completed)
    everything = [*reversed(others[1:]), *reversed(first)]

    def list_ids(**query: Any) -> list[str]:
        found, page = [], ""
        while True:
            answer = expect_success(queue.client.get("/api/v1/tasks", params={**query, "page_token": page}))
            found += [each["task_id"] for each in answer["tasks"]]
            page = answer["next_page_token"]
            if not page:
                return found

    assert list_ids() == [completed["task_id"], *everything] or sorted(list_ids()) == sorted(
        [completed["task_id"], *everything]
    )
    assert list_ids(status="queued", page_size=3) == everything
    assert list_ids(status="completed") == [completed["task_id"]]
    assert list_ids(task_type="a") == list(reversed(first))
    assert list_ids(priority="low", page_size=2) == list(reversed(first))
    assert list_ids(status="failed") == []
    expect_refusal(queue.client.get("/api/v1/tasks", params={"status": "lost"}), 400, "VALIDATION_ERROR")
    expect_refusal(queue.client.get("/api/v1/tasks", params={"page_token": "x"}), 400, "VALIDATION_ERROR")
