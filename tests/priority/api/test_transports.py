"""The same methods over gRPC: a task that is submitted there is visible over HTTP, and vice versa."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from generated.priority import messages as m
from tests.support.orchestrator.grpc_calls import Outcome, Remote
from tests.support.priority.probes import METHODS, UNKNOWN_ID
from tests.support.priority.stack import TOKENS, Queue, Stack

pytestmark = pytest.mark.req("PQ-X14")


@pytest.fixture
def client(shared_stack: Stack) -> Iterator[Remote]:
    with Remote(shared_stack.nodes[0].address, TOKENS["client"]) as remote:
        yield remote


@pytest.fixture
def worker(shared_stack: Stack) -> Iterator[Remote]:
    with Remote(shared_stack.nodes[0].address, TOKENS["worker"]) as remote:
        yield remote


def call(remote: Remote, name: str, request: object) -> Outcome:
    return remote.call(METHODS[name], request)


@pytest.mark.req("PQ-091", "PQ-131", "PQ-138")
def test_a_task_over_grpc(queue: Queue, client: Remote, worker: Remote) -> None:
    """From its submission to its result, and HTTP returns the same."""
    request = m.SubmitTaskRequest(task_type="t", parameters='{"n": 1}', idempotency_key="k")
    submitted = call(client, "TasksService.SubmitTask", request).answer
    assert (submitted.status, submitted.queue_position, submitted.repeated) == (m.QUEUED, 1, False)
    assert call(client, "TasksService.SubmitTask", request).answer.repeated
    again = call(worker, "WorkersService.RegisterWorker", m.RegisterWorkerRequest(capacity=2)).answer
    poll = m.PollTasksRequest(worker_id=again.worker_id, available_capacity=2)
    (claimed,) = call(worker, "WorkersService.PollTasks", poll).answer.tasks
    assert (claimed.task_id, json.loads(claimed.parameters), claimed.attempt) == (
        submitted.task_id,
        {"n": 1},
        1,
    )
    reported = m.ReportResultRequest(
        worker_id=again.worker_id,
        task_id=claimed.task_id,
        attempt=1,
        status=m.COMPLETED,
        result='{"ok": true}',
    )
    assert call(worker, "WorkersService.ReportResult", reported).answer.status == m.COMPLETED
    task_view = call(client, "TasksService.GetTask", m.GetTaskRequest(task_id=claimed.task_id)).answer
    over_http = queue.get(claimed.task_id)
    assert (task_view.status, json.loads(task_view.result)) == (m.COMPLETED, over_http["result"])
    assert task_view.trace_id == over_http["trace_id"]
    assert task_view.created_at.ToJsonString()[:19] == over_http["created_at"][:19]


@pytest.mark.req("PQ-096", "PQ-104", "PQ-109")
def test_refusals_are_the_same(queue: Queue, client: Remote, worker: Remote) -> None:
    """By the same names; a request that breaks a rule stores nothing."""
    bad = call(client, "TasksService.SubmitTask", m.SubmitTaskRequest())
    assert (bad.code, bad.condition) == ("INVALID_ARGUMENT", "validation_error")
    odd = m.SubmitTaskRequest(task_type="t", parameters="{")
    assert call(client, "TasksService.SubmitTask", odd).condition == "validation_error"
    late = m.SubmitTaskRequest(task_type="t")
    late.run_at.seconds = 10**15
    assert call(client, "TasksService.SubmitTask", late).condition == "validation_error"
    assert queue.list_keys() == []
    missing = call(client, "TasksService.GetTask", m.GetTaskRequest(task_id=UNKNOWN_ID))
    assert (missing.code, missing.condition) == ("NOT_FOUND", "task_not_found")
    beat = call(worker, "WorkersService.Heartbeat", m.HeartbeatRequest(worker_id=UNKNOWN_ID))
    assert (beat.code, beat.condition) == ("NOT_FOUND", "worker_not_found")
    task = queue.submit()
    queue.cancel(task)
    again = call(client, "TasksService.CancelTask", m.CancelTaskRequest(task_id=task))
    assert (again.code, again.condition) == ("FAILED_PRECONDITION", "task_terminal")


@pytest.mark.req("PQ-098")
def test_limits_are_the_same(queue: Queue, client: Remote, worker: Remote) -> None:
    """A submit may have 256 KiB and a report a result of 1 MiB, over HTTP and over gRPC."""
    large = json.dumps({"text": "x" * 300_000})
    refused = call(client, "TasksService.SubmitTask", m.SubmitTaskRequest(task_type="t", parameters=large))
    assert (refused.code, refused.condition) == ("RESOURCE_EXHAUSTED", "payload_too_large")
    assert queue.post(task_type="t", parameters=json.loads(large)).status_code == 413
    assert queue.list_keys() == []
    one, other = queue.submit(), queue.submit()
    holder = queue.register(capacity=2)
    claimed = {task["task_id"]: task for task in queue.poll(holder, 2)}
    result = "x" * (2**20 - 2)  # With its quotes it is JSON of 1 MiB.
    assert queue.report(holder, claimed[one], result=result).status_code == 200
    reported = m.ReportResultRequest(
        worker_id=holder, task_id=other, attempt=1, status=m.COMPLETED, result=json.dumps(result)
    )
    assert call(worker, "WorkersService.ReportResult", reported).answer.status == m.COMPLETED
    assert [queue.get(each)["result"] == result for each in (one, other)] == [True, True]
    third = queue.submit()
    over = queue.report(holder, queue.claim(holder), result=f"{result}x")
    assert (over.status_code, queue.status(third)) == (400, "executing")
