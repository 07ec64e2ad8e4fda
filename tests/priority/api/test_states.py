"""Every state against all that can be done to a task: what the spec has no edge for changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from generated.priority.lifecycle import TASK
from tests.support.priority.stack import Queue

Made = tuple[str, str, dict[str, Any]]
"""A task, the worker that had it last, and how it was handed out, if it was."""

OPERATIONS: dict[str, Callable[[Queue, Made], httpx.Response]] = {
    "cancel": lambda queue, made: queue.cancel(made[0]),
    "complete": lambda queue, made: queue.report(made[1], made[2], result={"other": True}),
    "fail": lambda queue, made: queue.report(
        made[1], made[2], "failed", error={"message": "x", "retriable": False}
    ),
    "retry": lambda queue, made: queue.report(
        made[1], made[2], "failed", error={"message": "x", "retriable": True}
    ),
    "extend": lambda queue, made: queue.ask(
        made[1], "extend", task_id=made[0], attempt=made[2]["attempt"], seconds=900
    ),
    "progress": lambda queue, made: queue.ask(
        made[1], "progress", task_id=made[0], attempt=made[2]["attempt"], progress={"n": 1}
    ),
    "replay": lambda queue, made: queue.admin.post(f"/api/v1/admin/dlq/{made[0]}/replay"),
    "purge": lambda queue, made: queue.admin.delete(f"/api/v1/admin/dlq/{made[0]}"),
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
"""What says once more what has been said before; it has the same answer and no effect."""
REFUSALS = {"cancel": "TASK_TERMINAL", "replay": "TASK_NOT_DEAD", "purge": "TASK_NOT_DEAD"}
STATES = [name.lower() for name in TASK.states.values()]


def make(queue: Queue, state: str) -> Made:
    """A task that has come to a state as tasks do."""
    worker = queue.register()
    retries = 0 if state == "dead_letter" else 3
    task = queue.submit(max_retries=retries)
    given = {"task_id": task, "attempt": 1}
    if state != "queued":
        given = queue.claim(worker)
    if state == "completed":
        queue.complete(worker, given, {"n": 1})
    elif state == "failed":
        queue.fail(worker, given, retriable=False, message="y")
    elif state == "cancelled":
        queue.cancel(task)
    elif state == "dead_letter":
        queue.fail(worker, given, message="y")
    assert queue.status(task) == state
    return task, worker, given


@pytest.mark.req("PQ-040", "PQ-085", "PQ-086", "PQ-087", "PQ-109", "PQ-143", "PQ-216")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("state", STATES)
def test_every_operation_in_every_state(queue: Queue, state: str, operation: str) -> None:
    """It does what the spec has an edge for, or is refused by its code and leaves everything as it was."""
    made = make(queue, state)
    before = queue.hash(made[0]), queue.queues_of(made[0])
    answer = OPERATIONS[operation](queue, made)
    wanted = LEADS_TO.get((state, operation))
    if (state, operation) in REPEATS:
        assert (answer.status_code, answer.json()["status"]) == (200, state)
        assert (queue.hash(made[0]), queue.queues_of(made[0])) == before
    elif wanted is None:
        code = REFUSALS.get(operation, "STALE_ATTEMPT")
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, code)
        assert (queue.hash(made[0]), queue.queues_of(made[0])) == before
    else:
        assert answer.status_code == 200, answer.text
        assert queue.hash(made[0]).get("status", "") == wanted


@pytest.mark.req("PQ-087", "PQ-077")
def test_the_table_is_that_of_the_spec() -> None:
    """Every edge that a caller can drive is in it, and no other."""
    edges = {
        (TASK.states[edge.source].lower(), TASK.states[edge.target].lower())
        for edge in TASK.edges.values()
        if edge.name not in ("claim", "bury")
    }
    driven = {(state, target) for (state, _), target in LEADS_TO.items() if target not in ("", state)}
    assert driven == edges
