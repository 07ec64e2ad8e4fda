"""Every operation in every state of a task: without an edge in the spec nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from generated.priority.lifecycle import TASK
from tests.support.priority.stack import Queue

Prepared = tuple[str, str, dict[str, Any]]
"""A task, the worker that claimed it last, and its assignment, if any."""

OPERATIONS: dict[str, Callable[[Queue, Prepared], httpx.Response]] = {
    "cancel": lambda queue, prepared: queue.cancel(prepared[0]),
    "complete": lambda queue, prepared: queue.report(prepared[1], prepared[2], result={"other": True}),
    "fail": lambda queue, prepared: queue.report(
        prepared[1], prepared[2], "failed", error={"message": "x", "retriable": False}
    ),
    "retry": lambda queue, prepared: queue.report(
        prepared[1], prepared[2], "failed", error={"message": "x", "retriable": True}
    ),
    "extend": lambda queue, prepared: queue.ask(
        prepared[1], "extend", task_id=prepared[0], attempt=prepared[2]["attempt"], seconds=900
    ),
    "progress": lambda queue, prepared: queue.ask(
        prepared[1], "progress", task_id=prepared[0], attempt=prepared[2]["attempt"], progress={"n": 1}
    ),
    "replay": lambda queue, prepared: queue.admin.post(f"/api/v1/admin/dlq/{prepared[0]}/replay"),
    "purge": lambda queue, prepared: queue.admin.delete(f"/api/v1/admin/dlq/{prepared[0]}"),
}
LEADS_TO = {
    ("queued", "cancel"): "cancelled",
    ("executing", "cancel"): "cancelled",
    ("executing", "complete"): "completed",
    ("executing", "fail"): "failed",
    ("executing", "retry"): "queued",
    ("executing", "extend"): "executing",
    ("executing", "progress"): "executing",
    ("dead_letter", "replay"): "queued",
    ("dead_letter", "purge"): "",
}
REPEATS = {("completed", "complete"), ("failed", "fail"), ("dead_letter", "retry")}
"""Reports that repeat an earlier one; they have the same answer and no effect."""
REFUSALS = {"cancel": "TASK_TERMINAL", "replay": "TASK_NOT_DEAD", "purge": "TASK_NOT_DEAD"}
STATES = [name.lower() for name in TASK.states.values()]


def prepare(queue: Queue, state: str) -> Prepared:
    """Bring a task into a state by ordinary calls."""
    worker = queue.register()
    retries = 0 if state == "dead_letter" else 3
    task = queue.submit(max_retries=retries)
    claimed = {"task_id": task, "attempt": 1}
    if state != "queued":
        claimed = queue.claim(worker)
    if state == "completed":
        queue.complete(worker, claimed, {"n": 1})
    elif state == "failed":
        queue.fail(worker, claimed, retriable=False, message="y")
    elif state == "cancelled":
        queue.cancel(task)
    elif state == "dead_letter":
        queue.fail(worker, claimed, message="y")
    assert queue.status(task) == state
    return task, worker, claimed


@pytest.mark.req("PQ-040", "PQ-085", "PQ-086", "PQ-087", "PQ-109", "PQ-143", "PQ-216")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("state", STATES)
def test_every_operation_in_every_state(queue: Queue, state: str, operation: str) -> None:
    """It follows an edge of the spec, or is refused by its code and changes nothing."""
    prepared = prepare(queue, state)
    before = queue.read_hash(prepared[0]), queue.list_queues(prepared[0])
    answer = OPERATIONS[operation](queue, prepared)
    wanted = LEADS_TO.get((state, operation))
    if (state, operation) in REPEATS:
        assert (answer.status_code, answer.json()["status"]) == (200, state)
        assert (queue.read_hash(prepared[0]), queue.list_queues(prepared[0])) == before
    elif wanted is None:
        code = REFUSALS.get(operation, "STALE_ATTEMPT")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, code)
        assert (queue.read_hash(prepared[0]), queue.list_queues(prepared[0])) == before
    else:
        assert answer.status_code == 200, answer.text
        assert queue.read_hash(prepared[0]).get("status", "") == wanted


@pytest.mark.req("PQ-087", "PQ-077")
def test_the_table_equals_the_spec() -> None:
    """Every edge that a caller can drive is in it, and no other."""
    edges = {
        (TASK.states[edge.source].lower(), TASK.states[edge.target].lower())
        for edge in TASK.edges.values()
        if edge.name not in ("claim", "bury")
    }
    driven = {(state, target) for (state, _), target in LEADS_TO.items() if target not in ("", state)}
    assert driven == edges
