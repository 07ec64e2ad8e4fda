"""Producers for the priority queue: its typed client over gRPC, or a producer within this process.

An address of the form host:port is that of a manager. Otherwise it is that of the manager's Redis, to which a
producer writes itself: the blocking one, or with many calls in flight the asynchronous one.
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


class AsyncRedisProducer:
    """Producer that writes tasks to the manager's Redis, many at a time."""

    def __init__(self, tasks: Producer) -> None:
        self._tasks = tasks
        self._needs = _read_needs()

    async def submit(self, job: str, payload: Mapping[str, float]) -> object:
        return await self._tasks.submit(task(job, payload, required_capabilities=self._needs))

    async def submit_all(self, job: str, payloads: Sequence[Mapping[str, float]]) -> object:
        return _require_accepted(await self._tasks.submit_all(_make_tasks(job, payloads, self._needs)))


class BlockingRedisProducer:
    """Producer that writes tasks to the manager's Redis, one call after the other."""

    def __init__(self, tasks: BlockingProducer) -> None:
        self._tasks = tasks
        self._needs = _read_needs()

    async def submit(self, job: str, payload: Mapping[str, float]) -> object:
        return self._tasks.submit(task(job, payload, required_capabilities=self._needs))

    async def submit_all(self, job: str, payloads: Sequence[Mapping[str, float]]) -> object:
        return _require_accepted(self._tasks.submit_all(_make_tasks(job, payloads, self._needs)))


class GrpcProducer:
    """Producer that calls a manager over gRPC."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks = client.of(TasksServiceClient)

    async def submit(self, job: str, payload: Mapping[str, float]) -> object:
        return await self._tasks.submit_task(_make_request(job, payload), self._client.call())

    async def submit_all(self, job: str, payloads: Sequence[Mapping[str, float]]) -> object:
        request = SubmitTasksRequest(tasks=[_make_request(job, each) for each in payloads])
        return _require_accepted((await self._tasks.submit_tasks(request, self._client.call())).tasks)


def _require_accepted(answers: Sequence[SubmittedTask]) -> object:
    if any(each.HasField("refused") for each in answers):
        raise RuntimeError("a task of a batch was refused")
    return answers


def _make_tasks(
    job: str, payloads: Sequence[Mapping[str, float]], needs: Sequence[str]
) -> list[SubmitTaskRequest]:
    return [task(job, each, required_capabilities=needs) for each in payloads]


def _make_request(job: str, payload: Mapping[str, float]) -> SubmitTaskRequest:
    return SubmitTaskRequest(
        task_type=job, parameters=json.dumps(payload), required_capabilities=_read_needs()
    )


def _read_needs() -> tuple[str, ...]:
    needs = os.environ.get(NEEDS)
    return (needs,) if needs else ()


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[producer.JobProducer]:
    """Open a producer for the manager or the Redis at the address."""
    if "://" not in address:
        async with connect(SYSTEM, address, token=os.environ["CLIENT_TOKEN"]) as client:
            yield GrpcProducer(client)
        return
    with BlockingProducer({**os.environ, "REDIS_URL": address}) as tasks:
        yield BlockingRedisProducer(tasks)


@asynccontextmanager
async def open_concurrent(address: str) -> AsyncIterator[producer.JobProducer]:
    """Open a producer for many calls in flight."""
    if "://" not in address:
        async with open_producer(address) as calling:
            yield calling
        return
    async with Producer({**os.environ, "REDIS_URL": address}) as tasks:
        yield AsyncRedisProducer(tasks)


if __name__ == "__main__":
    main(open_producer, open_concurrent)
