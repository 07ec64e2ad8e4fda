"""Producers that submit tasks directly to the queue's Redis, without the API.

`Producer` is for programs with an event loop: concurrent submits are coalesced into one call of Redis, and
each returns when its task is stored. `BlockingProducer` is for programs without one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from json import JSONEncoder
from types import TracebackType
from typing import Any, Self

import orjson

from generated.priority.clients import TasksServiceClient
from generated.priority.messages import (
    HIGH,
    LOW,
    MEDIUM,
    PRIORITY_UNSPECIFIED,
    Priority,
    SubmitTaskRequest,
    SubmitTaskResponse,
    SubmitTasksRequest,
    SubmittedTask,
)
from generated.priority.system import SYSTEM
from handlers.priority.views import to_timestamp
from runtime.call import Answering
from runtime.call.blocking import run_without_loop
from runtime.node.in_program import InProcessNode

__all__ = ["HIGH", "LOW", "MEDIUM", "BlockingProducer", "Producer", "task"]

_NODE = SYSTEM.deployments["compose"].nodes["api"]
_PRINCIPAL = "client"

_encode_any = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Producer:
    """Submit tasks through a connection of its own. Use it in one event loop, and close it at the end.

    It has the variables of the API, of which it needs REDIS_URL and DATABASE_URL, and the same rules. With
    `blocking` a call blocks its thread, as BlockingProducer needs it.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, *, blocking: bool = False) -> None:
        self._channel = InProcessNode(SYSTEM, _NODE, environ, _PRINCIPAL, blocking=blocking)
        self._tasks = TasksServiceClient(self._channel)
        self._call = self._channel.call()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._channel.close()

    async def submit(self, request: SubmitTaskRequest) -> str:
        """Submit a task; return its id. A known key returns its existing task."""
        return (await self.submitted(request)).task_id

    def submitted(self, request: SubmitTaskRequest) -> Answering[SubmitTaskResponse]:
        """Submit a task; return the whole response."""
        return self._tasks.submit_task(request, self._call)

    async def submit_all(self, requests: Sequence[SubmitTaskRequest]) -> list[SubmittedTask]:
        """Submit a batch of tasks, each independently; return a response or a refusal for each, in order."""
        answer = await self._tasks.submit_tasks(SubmitTasksRequest(tasks=requests), self._call)
        return list(answer.tasks)


class BlockingProducer:
    """A producer for programs without an event loop: each call returns when Redis has answered.

    Threads may share one, under a lock; one for each is faster. A fork gets a connection of its own.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._tasks = Producer(environ, blocking=True)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            run_without_loop(self._tasks.close())

    def submit(self, request: SubmitTaskRequest) -> str:
        """Submit a task; return its id. A known key returns its existing task."""
        with self._lock:
            return run_without_loop(self._tasks.submitted(request)).task_id

    def submit_all(self, requests: Sequence[SubmitTaskRequest]) -> list[SubmittedTask]:
        """Submit a batch of tasks, each independently; return a response or a refusal for each, in order."""
        with self._lock:
            return run_without_loop(self._tasks.submit_all(requests))


def task(
    task_type: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    priority: Priority.ValueType = PRIORITY_UNSPECIFIED,
    required_capabilities: Sequence[str] = (),
    timeout_seconds: int | None = None,
    max_retries: int | None = None,
    idempotency_key: str | None = None,
    run_at: datetime | None = None,
) -> SubmitTaskRequest:
    """Build the request that submits a task. Omitted arguments have the defaults of the API."""
    return SubmitTaskRequest(
        task_type=task_type,
        parameters=None if parameters is None else _encode_parameters(parameters),
        priority=priority,
        required_capabilities=required_capabilities,
        timeout_seconds=timeout_seconds,
        max_retries=max_retries,
        idempotency_key=idempotency_key,
        run_at=None if run_at is None else to_timestamp(run_at),
    )


def _encode_parameters(parameters: Mapping[str, Any]) -> str:
    """Encode parameters as JSON: with orjson, or with the json module for other types and NaN."""
    try:
        text = orjson.dumps(
            parameters, option=orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
        )
    except TypeError:
        return _encode_any(parameters)
    return _encode_any(parameters) if b"null" in text else text.decode()
