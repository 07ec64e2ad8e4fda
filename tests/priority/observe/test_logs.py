"""The log: every transition of a task can be traced, and nothing of its payload is ever in it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.priority.conftest import NewServers
from tests.support.priority.stack import Stack, expect_refusal, expect_success, wait_until


@pytest.fixture(scope="module")
def verbose_stack(new_servers: NewServers, logs: Path) -> Iterator[Stack]:
    """An API at the lowest log level."""
    with Stack(new_servers(), logs) as stack:
        stack.add("api", LOG_LEVEL="DEBUG")
        yield stack


def lines(stack: Stack) -> list[dict[str, Any]]:
    return [line for node in stack.nodes for line in node.lines()]


def wait_until_logged(stack: Stack, task: str) -> None:
    """Wait until the log has the end of a task, and so all lines before it."""
    wait_until(
        lambda: read_path(stack, task), "its end is logged", lambda seen: ("EXECUTING", "COMPLETED") in seen
    )


def read_path(stack: Stack, task: str) -> list[tuple[Any, Any]]:
    """The states of a task, by the log."""
    found = [line for line in lines(stack) if line["event"] == "transition" and line.get("task_id") == task]
    return [(line.get("from_status"), line.get("to_status")) for line in found]


@pytest.mark.req("PQ-242", "PQ-243", "PQ-090", "PQ-248", "PQ-X13")
def test_the_transitions_of_a_task_are_logged(verbose_stack: Stack) -> None:
    """Line by line in the log and row by row in the history, with task, worker, trace and time."""
    queue = verbose_stack.queue()
    worker = queue.register()
    task = queue.submit(max_retries=2)
    for _ in range(2):
        queue.fail(worker, queue.claim(worker))
    queue.complete(worker, queue.claim(worker))
    trace = queue.get(task)["trace_id"]
    wanted = ["queued", "executing", "queued", "executing", "queued", "executing", "completed"]

    def read_history() -> list[dict[str, Any]]:
        answer = queue.admin.get(f"/api/v1/admin/tasks/{task}/history")
        return list(expect_success(answer)["changes"])

    changes = wait_until(read_history, "all is written down", lambda seen: len(seen) == len(wanted))
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
    wait_until(lambda: read_path(verbose_stack, task), "all is logged", lambda seen: len(seen) == len(path))
    assert read_path(verbose_stack, task) == path
    logged = [line for line in lines(verbose_stack) if line.get("task_id") == task and "to_status" in line]
    assert all(line["trace_id"] == trace and line["ts_ms"] > 0 for line in logged)
    assert [line.get("assigned_worker_id") for line in logged] == [None, *[worker] * 6]
    expect_refusal(
        queue.admin.get("/api/v1/admin/tasks/00000000-0000-4000-8000-000000000000/history"),
        404,
        "TASK_NOT_FOUND",
    )


@pytest.mark.req("PQ-244")
def test_one_trace_is_one_task(verbose_stack: Stack) -> None:
    """All lines of a task have its trace, and no line of another one has."""
    queue = verbose_stack.queue()
    worker = queue.register()
    trace = f"trace-{uuid.uuid4().hex}"
    task = queue.post({"x-trace-id": trace}, task_type="t").json()["task_id"]
    other = queue.submit()
    claimed = queue.claim(worker)
    assert claimed["trace_id"] == trace
    queue.complete(worker, claimed)
    queue.complete(worker, queue.claim(worker))
    # The end of the other one is logged last.
    wait_until_logged(verbose_stack, other)
    traced = [line for line in lines(verbose_stack) if line.get("trace_id") == trace]
    assert {line["task_id"] for line in traced} == {task}
    assert not any(line.get("task_id") == other for line in traced)
    assert {line["event"] for line in traced} >= {"transition"}


@pytest.mark.req("PQ-245", "PQ-242")
def test_nothing_of_the_payload_is_logged(verbose_stack: Stack) -> None:
    """Neither parameters nor keys nor results, whether accepted, repeated, refused, run or failed."""
    queue, secret = verbose_stack.queue(), uuid.uuid4().hex
    worker = queue.register()
    body = {
        "task_type": "t",
        "parameters": {"secret": secret, secret: [secret]},
        "idempotency_key": f"key-{secret}",
    }
    assert queue.post(**body).status_code == 201
    assert queue.post(**body).status_code == 200
    expect_refusal(queue.post(**{**body, "priority": "low"}), 409, "IDEMPOTENCY_MISMATCH")
    expect_refusal(queue.post(**{**body, "task_type": ""}), 400, "VALIDATION_ERROR")
    expect_refusal(queue.post(**{**body, "parameters": [secret]}), 400, "VALIDATION_ERROR")
    expect_refusal(queue.post(**{**body, "idempotency_key": secret * 20}), 400, "VALIDATION_ERROR")
    bad = f'{{"parameters": {{"a": "{secret}"'
    answer = queue.client.post("/api/v1/tasks", content=bad, headers={"content-type": "application/json"})
    expect_refusal(answer, 400, "MALFORMED_JSON")
    claimed = queue.claim(worker)
    expect_success(
        queue.ask(worker, "progress", task_id=claimed["task_id"], attempt=1, progress={"at": secret})
    )
    queue.complete(worker, claimed, {"secret": secret})
    expect_refusal(queue.report(worker, claimed, "failed", error={"message": secret}), 409, "STALE_ATTEMPT")
    last = queue.submit()
    queue.complete(worker, queue.claim(worker))
    wait_until_logged(verbose_stack, last)
    for node in verbose_stack.nodes:
        text = node.log.read_text() + node.errors.read_text()
        assert secret not in text
        assert all(node.lines())


@pytest.mark.req("PQ-149", "PQ-246")
def test_a_load_that_differs_is_logged(verbose_stack: Stack) -> None:
    """With both numbers."""
    queue = verbose_stack.queue()
    worker = queue.register()
    expect_success(queue.beat(worker, 7))

    def list_differences() -> list[str]:
        found = [line for line in lines(verbose_stack) if line["event"] == "load_differs"]
        return [line["message"] for line in found if line["worker_id"] == worker]

    assert any("7" in message for message in wait_until(list_differences, "it is logged"))
    text = queue.admin.get("/metrics").text
    for name in ("queue_depth", "task_duration_seconds", "worker_capacity_used_ratio", "tasks_failed_total"):
        assert f"# TYPE {name}" in text or name in text
