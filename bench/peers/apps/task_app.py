"""Submits tasks to the priority queue by its typed client: over gRPC, or with the manager in this process.

Where the address is host:port the manager is there; else it is the Redis that a manager of our own uses.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from bench.peers.apps.producer import main
from generated.priority.clients import TasksServiceClient
from generated.priority.messages import SubmitTaskRequest, SubmitTasksRequest
from generated.priority.system import SYSTEM
from runtime.assembly import Assembly
from runtime.call import Call, Channel
from runtime.client import connect
from runtime.local import LocalChannel
from runtime.world import RealWorld

CLIENT = "client"
NEEDS = "BENCH_NEEDS"
"""The variable with a capability that every task needs; none unless it is set."""


class Producer:
    """Submits tasks."""

    def __init__(self, tasks: TasksServiceClient, calls: Callable[[], Call]) -> None:
        self._tasks = tasks
        self._calls = calls

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._tasks.submit_task(_task(task, payload), self._calls())

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        request = SubmitTasksRequest(tasks=[_task(task, each) for each in payloads])
        answer = await self._tasks.submit_tasks(request, self._calls())
        if any(each.HasField("refused") for each in answer.tasks):
            raise RuntimeError("a task of a batch was refused")
        return answer


def _task(task: str, payload: dict[str, float]) -> SubmitTaskRequest:
    needs = os.environ.get(NEEDS)
    return SubmitTaskRequest(
        task_type=task, parameters=json.dumps(payload), required_capabilities=[needs] if needs else []
    )


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A producer for the manager at the address, or for one of its own."""
    if "://" not in address:
        async with connect(SYSTEM, address, token=os.environ["CLIENT_TOKEN"]) as client:
            yield Producer(client.of(TasksServiceClient), client.call)
        return
    world, deployment = RealWorld(), SYSTEM.deployments["compose"]
    environ = {**os.environ, "REDIS_URL": address}
    parts = Assembly(
        SYSTEM, deployment, deployment.nodes["api"], environ, world, _nobody_else, stream=sys.stderr
    )
    await parts.open()
    try:
        channel = LocalChannel(SYSTEM, parts.endpoints, CLIENT)
        yield Producer(TasksServiceClient(channel), lambda: Call(world=world, log=parts.log, caller=CLIENT))
    finally:
        await parts.close()


def _nobody_else(_parts: Assembly, component: str, service: str) -> Channel:
    raise LookupError(f"{component} wants {service} of another node")


if __name__ == "__main__":
    main(opened)
