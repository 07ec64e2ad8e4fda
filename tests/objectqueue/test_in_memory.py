"""The deployment without a bucket: the same handlers, called by gRPC."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from generated import objectqueue_pb2 as messages
from generated.objectqueue_pb2_grpc import QueueServiceStub
from runtime.node.node import Node
from runtime.node.systems import load_system
from runtime.world import RealWorld
from tests.runtime.launch.up import up
from tests.support.eventually import eventually
from tests.support.objectqueue.crew import MODULE

PENDING, COMPLETED, FAILED, ARCHIVED = (
    messages.TaskStatus.Value(name) for name in ("PENDING", "COMPLETED", "FAILED", "ARCHIVED")
)


@pytest.fixture
async def queue() -> AsyncIterator[Any]:
    """A client of a node that has queue, worker and monitor."""
    settings = {"QO_HANDLERS": MODULE, "GRPC_PORT": "0", "QO_MONITOR_CHECK_INTERVAL": "0.1"}
    node = Node(load_system("objectqueue"), "memory", "queue", settings, RealWorld(), stream=io.StringIO())
    await node.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{node.port}") as channel:
            yield QueueServiceStub(channel)
    finally:
        await node.stop()


def request(task_type: str, value: Any = None, **more: Any) -> Any:
    """A submission; retries come at once."""
    policy = messages.WantedRetryPolicy(initial_interval_ms=1, max_interval_ms=1, multiplier=1.0)
    usual = {"timeout_seconds": 60, "max_retries": 3, "retry_policy": policy}
    return messages.SubmitTaskRequest(task_type=task_type, input=json.dumps(value), **{**usual, **more})


async def wait_for(queue: Any, task_id: str, state: int) -> Any:
    """A task once it is in a state."""
    return await eventually(
        lambda: queue.GetTask(messages.GetTaskRequest(task_id=task_id)),
        wanted=lambda task: task.status == state,
    )


async def test_tasks_are_run_retried_and_failed(queue: Any) -> None:
    """With all that a task tells of its runs."""
    echo = (await queue.SubmitTask(request("echo", {"a": 1}))).task
    done = await wait_for(queue, echo.id, COMPLETED)
    assert (json.loads(done.output), done.attempt, done.shard) == ({"a": 1}, 1, done.id[0])
    failing = (await queue.SubmitTask(request("fail until", 99))).task
    failed = await wait_for(queue, failing.id, FAILED)
    assert (failed.retry_count, failed.attempt) == (3, 4)
    assert failed.last_error == "RuntimeError: run 4 fails"


async def test_a_lease_that_ends_is_ended_by_the_monitor(queue: Any) -> None:
    """A run that takes too long is stopped, and the task is tried again."""
    stuck = (await queue.SubmitTask(request("sleep", 600, timeout_seconds=1, max_retries=0))).task
    failed = await wait_for(queue, stuck.id, FAILED)
    assert "it took longer than 1 s" in failed.last_error or "lease expired" in failed.last_error


async def test_an_idempotency_key_is_for_one_task(queue: Any) -> None:
    """The same wish finds it, another one is refused."""
    first = await queue.SubmitTask(request("echo", 1, idempotency_key="k"))
    again = await queue.SubmitTask(request("echo", 1, idempotency_key="k"))
    assert (first.created, again.created, again.task.id) == (True, False, first.task.id)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await queue.SubmitTask(request("echo", 2, idempotency_key="k"))
    assert refused.value.code() == grpc.StatusCode.ALREADY_EXISTS
    named = request("echo", 1, task_id="12345678-1234-4234-8234-123456789abc")
    assert (await queue.SubmitTask(named)).created
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await queue.SubmitTask(named)
    assert refused.value.code() == grpc.StatusCode.ALREADY_EXISTS


async def test_tasks_are_cancelled_replayed_archived_and_listed(queue: Any) -> None:
    """Everything that the command line does, but for the history, which only a bucket has."""
    later = (await queue.SubmitTask(request("echo", 1, delay_ms=3_600_000))).task
    cancelled = await queue.CancelTask(messages.CancelTaskRequest(task_id=later.id, reason="not now"))
    assert (cancelled.status, cancelled.last_error) == (FAILED, "not now")
    archived = await queue.ArchiveTask(messages.ArchiveTaskRequest(task_id=later.id))
    assert (archived.status, archived.archived_from) == (ARCHIVED, FAILED)
    await queue.UnarchiveTask(messages.UnarchiveTaskRequest(task_id=later.id))
    await queue.ReplayTask(messages.ReplayTaskRequest(task_id=later.id))
    await wait_for(queue, later.id, COMPLETED)
    others = [(await queue.SubmitTask(request("echo", n))).task.id for n in range(4)]
    for each in others:
        await wait_for(queue, each, COMPLETED)
    listed, token = list[str](), ""
    while True:
        page = await queue.ListTasks(messages.ListTasksRequest(page_size=2, page_token=token))
        listed += [each.id for each in page.tasks]
        if not (token := page.next_page_token):
            break
    assert sorted(listed) == sorted([later.id, *others])
    stats = await queue.GetStats(messages.GetStatsRequest())
    assert sum(each.completed for each in stats.shards) == 5
    workers = await queue.ListWorkers(messages.ListWorkersRequest(with_waiting=True))
    assert [each.live for each in workers.workers] == [True] and not workers.uncovered_shards
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await queue.GetHistory(messages.GetHistoryRequest(task_id=later.id))
    assert "history" in (refused.value.details() or "")


def test_the_deployment_comes_up(tmp_path: Path) -> None:
    """Without a store of its own; the ready line has where it listens."""
    with up(tmp_path, "objectqueue.memory") as running:
        assert running.ready["endpoints"]["queue.grpc"] == running.ready["env"]["CHARTER_ADDRESS"]
