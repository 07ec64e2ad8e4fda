"""The same methods over gRPC: a task that is submitted there is seen over HTTP, and the other way round."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from generated.priority import messages as m
from tests.support.orchestrator.grpc_calls import Outcome, Remote
from tests.support.priority.probes import METHODS, NOBODY
from tests.support.priority.stack import TOKENS, Queue, Stack

pytestmark = pytest.mark.req("PQ-X14")


@pytest.fixture
def client(shared: Stack) -> Iterator[Remote]:
    with Remote(shared.nodes[0].address, TOKENS["client"]) as made:
        yield made


@pytest.fixture
def worker(shared: Stack) -> Iterator[Remote]:
    with Remote(shared.nodes[0].address, TOKENS["worker"]) as made:
        yield made


def call(remote: Remote, name: str, request: object) -> Outcome:
    return remote.call(METHODS[name], request)


@pytest.mark.req("PQ-091", "PQ-131", "PQ-138")
def test_a_task_over_grpc(queue: Queue, client: Remote, worker: Remote) -> None:
    """From its submission to its result, and HTTP shows the same."""
    wish = m.SubmitTaskRequest(task_type="t", parameters='{"n": 1}', idempotency_key="k")
    made = call(client, "TasksService.SubmitTask", wish).answer
    assert (made.status, made.queue_position, made.repeated) == (m.QUEUED, 1, False)
    assert call(client, "TasksService.SubmitTask", wish).answer.repeated
    known = call(worker, "WorkersService.RegisterWorker", m.RegisterWorkerRequest(capacity=2)).answer
    poll = m.PollTasksRequest(worker_id=known.worker_id, available_capacity=2)
    (given,) = call(worker, "WorkersService.PollTasks", poll).answer.tasks
    assert (given.task_id, json.loads(given.parameters), given.attempt) == (made.task_id, {"n": 1}, 1)
    said = m.ReportResultRequest(
        worker_id=known.worker_id, task_id=given.task_id, attempt=1, status=m.COMPLETED, result='{"ok": true}'
    )
    assert call(worker, "WorkersService.ReportResult", said).answer.status == m.COMPLETED
    shown = call(client, "TasksService.GetTask", m.GetTaskRequest(task_id=given.task_id)).answer
    over_http = queue.get(given.task_id)
    assert (shown.status, json.loads(shown.result)) == (m.COMPLETED, over_http["result"])
    assert shown.trace_id == over_http["trace_id"]
    assert shown.created_at.ToJsonString()[:19] == over_http["created_at"][:19]


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
    assert queue.stored() == []
    missing = call(client, "TasksService.GetTask", m.GetTaskRequest(task_id=NOBODY))
    assert (missing.code, missing.condition) == ("NOT_FOUND", "task_not_found")
    beat = call(worker, "WorkersService.Heartbeat", m.HeartbeatRequest(worker_id=NOBODY))
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
    assert queue.stored() == []
    one, other = queue.submit(), queue.submit()
    holder = queue.register(capacity=2)
    given = {task["task_id"]: task for task in queue.poll(holder, 2)}
    result = "x" * (2**20 - 2)  # With its quotes it is JSON of 1 MiB.
    assert queue.report(holder, given[one], result=result).status_code == 200
    said = m.ReportResultRequest(
        worker_id=holder, task_id=other, attempt=1, status=m.COMPLETED, result=json.dumps(result)
    )
    assert call(worker, "WorkersService.ReportResult", said).answer.status == m.COMPLETED
    assert [queue.get(each)["result"] == result for each in (one, other)] == [True, True]
    third = queue.submit()
    over = queue.report(holder, queue.claim(holder), result=f"{result}x")
    assert (over.status_code, queue.status(third)) == (400, "executing")
