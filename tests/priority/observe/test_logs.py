"""The log: every change of a task can be followed by its trace, and nothing of its payload is ever in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.priority.conftest import NewServers
from tests.support.priority.stack import Stack, refused, told, wait_until


@pytest.fixture(scope="module")
def talkative(new_servers: NewServers, logs: Path) -> Iterator[Stack]:
    """An API that logs all it can."""
    with Stack(new_servers(), logs) as made:
        made.add("api", LOG_LEVEL="DEBUG")
        yield made


def lines(stack: Stack) -> list[dict[str, Any]]:
    return [line for node in stack.nodes for line in node.lines()]


def all_is_told(stack: Stack, task: str) -> None:
    """Waits until the log has the end of a task, and so all that was told before."""
    wait_until(
        lambda: path_of(stack, task), "its end is told", lambda seen: ("EXECUTING", "COMPLETED") in seen
    )


def path_of(stack: Stack, task: str) -> list[tuple[Any, Any]]:
    """The states that the log says a task has gone through."""
    found = [line for line in lines(stack) if line["event"] == "transition" and line.get("task_id") == task]
    return [(line.get("from_status"), line.get("to_status")) for line in found]


@pytest.mark.req("PQ-242", "PQ-243", "PQ-090", "PQ-248", "PQ-X13")
def test_the_path_of_a_task(talkative: Stack) -> None:
    """Line by line in the log and row by row in the history, with task, worker, trace and time."""
    queue = talkative.queue()
    worker = queue.register()
    task = queue.submit(max_retries=2)
    for _ in range(2):
        queue.fail(worker, queue.claim(worker))
    queue.complete(worker, queue.claim(worker))
    trace = queue.get(task)["trace_id"]
    wanted = ["queued", "executing", "queued", "executing", "queued", "executing", "completed"]

    def history() -> list[dict[str, Any]]:
        answer = queue.admin.get(f"/api/v1/admin/tasks/{task}/history")
        return list(told(answer)["changes"])

    changes = wait_until(history, "all is written down", lambda seen: len(seen) == len(wanted))
    assert [each["to_status"] for each in changes] == wanted
    assert [each["from_status"] for each in changes] == [None, *wanted[:-1]]
    assert [each["sequence"] for each in changes] == list(range(1, 8))
    assert [each["attempt"] for each in changes] == [0, 1, 1, 2, 2, 3, 3]
    assert {each["trace_id"] for each in changes} == {trace}
    assert [each["worker_id"] for each in changes] == [None, *[worker] * 6]
    assert [each["reason"] for each in changes] == [None, None, "reported", None, "reported", None, None]
    assert [each["actor"] for each in changes] == ["client", *["worker"] * 6]
    upper = [each.upper() for each in wanted]
    path = list(zip([None, *upper[:-1]], upper, strict=True))
    wait_until(lambda: path_of(talkative, task), "all is told", lambda seen: len(seen) == len(path))
    assert path_of(talkative, task) == path
    told_of = [line for line in lines(talkative) if line.get("task_id") == task and "to_status" in line]
    assert all(line["trace_id"] == trace and line["ts_ms"] > 0 for line in told_of)
    assert [line.get("assigned_worker_id") for line in told_of] == [None, *[worker] * 6]
    refused(
        queue.admin.get("/api/v1/admin/tasks/00000000-0000-4000-8000-000000000000/history"),
        404,
        "TASK_NOT_FOUND",
    )


@pytest.mark.req("PQ-244")
def test_one_trace_is_one_task(talkative: Stack) -> None:
    """All that happens to a task has its trace, and nothing that happens to another one has."""
    queue = talkative.queue()
    worker = queue.register()
    mark = f"trace-{uuid.uuid4().hex}"
    task = queue.post({"x-trace-id": mark}, task_type="t").json()["task_id"]
    other = queue.submit()
    given = queue.claim(worker)
    assert given["trace_id"] == mark
    queue.complete(worker, given)
    queue.complete(worker, queue.claim(worker))
    # The end of the other one is told last.
    all_is_told(talkative, other)
    marked = [line for line in lines(talkative) if line.get("trace_id") == mark]
    assert {line["task_id"] for line in marked} == {task}
    assert not any(line.get("task_id") == other for line in marked)
    assert {line["event"] for line in marked} >= {"transition"}


@pytest.mark.req("PQ-245", "PQ-242")
def test_nothing_of_the_payload_is_logged(talkative: Stack) -> None:
    """Neither parameters nor keys nor results, of what is accepted, repeated, refused, run or failed."""
    queue, mark = talkative.queue(), uuid.uuid4().hex
    worker = queue.register()
    body = {"task_type": "t", "parameters": {"secret": mark, mark: [mark]}, "idempotency_key": f"key-{mark}"}
    assert queue.post(**body).status_code == 201
    assert queue.post(**body).status_code == 200
    refused(queue.post(**{**body, "priority": "low"}), 409, "IDEMPOTENCY_MISMATCH")
    refused(queue.post(**{**body, "task_type": ""}), 400, "VALIDATION_ERROR")
    refused(queue.post(**{**body, "parameters": [mark]}), 400, "VALIDATION_ERROR")
    refused(queue.post(**{**body, "idempotency_key": mark * 20}), 400, "VALIDATION_ERROR")
    bad = f'{{"parameters": {{"a": "{mark}"'
    answer = queue.client.post("/api/v1/tasks", content=bad, headers={"content-type": "application/json"})
    refused(answer, 400, "MALFORMED_JSON")
    given = queue.claim(worker)
    told(queue.ask(worker, "progress", task_id=given["task_id"], attempt=1, progress={"at": mark}))
    queue.complete(worker, given, {"secret": mark})
    refused(queue.report(worker, given, "failed", error={"message": mark}), 409, "STALE_ATTEMPT")
    last = queue.submit()
    queue.complete(worker, queue.claim(worker))
    all_is_told(talkative, last)
    for node in talkative.nodes:
        text = node.log.read_text() + node.errors.read_text()
        assert mark not in text
        assert all(node.lines())


@pytest.mark.req("PQ-149", "PQ-246")
def test_a_load_that_differs_is_told(talkative: Stack) -> None:
    """With both numbers."""
    queue = talkative.queue()
    worker = queue.register()
    told(queue.beat(worker, 7))

    def differs() -> list[str]:
        found = [line for line in lines(talkative) if line["event"] == "load_differs"]
        return [line["message"] for line in found if line["worker_id"] == worker]

    assert any("7" in message for message in wait_until(differs, "it is told"))
    text = queue.admin.get("/metrics").text
    for name in ("queue_depth", "task_duration_seconds", "worker_capacity_used_ratio", "tasks_failed_total"):
        assert f"# TYPE {name}" in text or name in text
