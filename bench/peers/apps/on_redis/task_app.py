"""Submits tasks to the priority queue: by its typed client over gRPC, or by a producer within this process.

Where the address is host:port the manager is there; else it is the Redis that a producer shares with it: the
blocking one, or where many calls are in flight the one for an event loop.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from bench.peers.apps import producer
from bench.peers.apps.producer import main
from generated.priority.clients import TasksServiceClient
from generated.priority.messages import SubmitTaskRequest, SubmitTasksRequest, SubmittedTask
from generated.priority.system import SYSTEM
from handlers.priority.producer import BlockingProducer, Producer, task
from runtime.client import Client, connect

NEEDS = "BENCH_NEEDS"
"""The variable with a capability that every task needs; none unless it is set."""


class Sharing:
    """Submits tasks to a Redis that it shares, many at a time."""

    def __init__(self, tasks: Producer) -> None:
        self._tasks = tasks
        self._needs = _needs()

    async def submit(self, job: str, payload: Mapping[str, float]) -> object:
        return await self._tasks.submit(task(job, payload, required_capabilities=self._needs))

    async def submit_all(self, job: str, payloads: Sequence[Mapping[str, float]]) -> object:
        return _accepted(await self._tasks.submit_all(_tasks(job, payloads, self._needs)))


class Blocking:
    """Submits tasks to a Redis that it shares, one call after the other."""

    def __init__(self, tasks: BlockingProducer) -> None:
        self._tasks = tasks
        self._needs = _needs()

    async def submit(self, job: str, payload: Mapping[str, float]) -> object:
        return self._tasks.submit(task(job, payload, required_capabilities=self._needs))

    async def submit_all(self, job: str, payloads: Sequence[Mapping[str, float]]) -> object:
        return _accepted(self._tasks.submit_all(_tasks(job, payloads, self._needs)))


class Calling:
    """Submits tasks to a manager elsewhere."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks = client.of(TasksServiceClient)

    async def submit(self, job: str, payload: Mapping[str, float]) -> object:
        return await self._tasks.submit_task(_task(job, payload), self._client.call())

    async def submit_all(self, job: str, payloads: Sequence[Mapping[str, float]]) -> object:
        request = SubmitTasksRequest(tasks=[_task(job, each) for each in payloads])
        return _accepted((await self._tasks.submit_tasks(request, self._client.call())).tasks)


def _accepted(answers: Sequence[SubmittedTask]) -> object:
    if any(each.HasField("refused") for each in answers):
        raise RuntimeError("a task of a batch was refused")
    return answers


def _tasks(
    job: str, payloads: Sequence[Mapping[str, float]], needs: Sequence[str]
) -> list[SubmitTaskRequest]:
    return [task(job, each, required_capabilities=needs) for each in payloads]


def _task(job: str, payload: Mapping[str, float]) -> SubmitTaskRequest:
    return SubmitTaskRequest(task_type=job, parameters=json.dumps(payload), required_capabilities=_needs())


def _needs() -> tuple[str, ...]:
    needs = os.environ.get(NEEDS)
    return (needs,) if needs else ()


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[producer.Producer]:
    """A producer for the manager at the address, or for the Redis there."""
    if "://" not in address:
        async with connect(SYSTEM, address, token=os.environ["CLIENT_TOKEN"]) as client:
            yield Calling(client)
        return
    with BlockingProducer({**os.environ, "REDIS_URL": address}) as tasks:
        yield Blocking(tasks)


@asynccontextmanager
async def crowded(address: str) -> AsyncIterator[producer.Producer]:
    """The same for many calls in flight."""
    if "://" not in address:
        async with opened(address) as calling:
            yield calling
        return
    async with Producer({**os.environ, "REDIS_URL": address}) as tasks:
        yield Sharing(tasks)


if __name__ == "__main__":
    main(opened, crowded)
