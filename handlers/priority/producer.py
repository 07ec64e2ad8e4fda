"""For producers that share the queue's Redis: they submit tasks with no API in between.

`Producer` is for programs with an event loop: submits of the same moment go to Redis together, and each is
answered when its task is there. `BlockingProducer` is for programs without one.
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
from handlers.priority.views import stamp
from runtime.call import Answering
from runtime.call.blocking import finished
from runtime.node.in_program import Inside

__all__ = ["HIGH", "LOW", "MEDIUM", "BlockingProducer", "Producer", "task"]

_NODE = SYSTEM.deployments["compose"].nodes["api"]
_PRINCIPAL = "client"

_encode_any = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Producer:
    """Submits tasks through a connection of its own. To be used by one event loop, and closed at the end.

    It goes by the variables of the API, of which it needs REDIS_URL and DATABASE_URL, and by the same rules.
    What is `blocking` waits on the spot, as a BlockingProducer wants it.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, *, blocking: bool = False) -> None:
        self._inside = Inside(SYSTEM, _NODE, environ, _PRINCIPAL, blocking=blocking)
        self._tasks = TasksServiceClient(self._inside)
        self._call = self._inside.call()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives the connections back."""
        await self._inside.close()

    async def submit(self, request: SubmitTaskRequest) -> str:
        """Submits a task; its id. A known key gives the task that it already has."""
        return (await self.submitted(request)).task_id

    def submitted(self, request: SubmitTaskRequest) -> Answering[SubmitTaskResponse]:
        """The same, with all that is answered."""
        return self._tasks.submit_task(request, self._call)

    async def submit_all(self, requests: Sequence[SubmitTaskRequest]) -> list[SubmittedTask]:
        """Submits many tasks, each by itself; in the same order what was answered, or why it was refused."""
        answer = await self._tasks.submit_tasks(SubmitTasksRequest(tasks=requests), self._call)
        return list(answer.tasks)


class BlockingProducer:
    """The same for programs without an event loop: each call returns when Redis has answered.

    Threads may share one, and take turns then; one for each is faster. A fork gets a connection of its own.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._tasks = Producer(environ, blocking=True)
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the connections back."""
        with self._turn:
            finished(self._tasks.close())

    def submit(self, request: SubmitTaskRequest) -> str:
        """Submits a task; its id. A known key gives the task that it already has."""
        with self._turn:
            return finished(self._tasks.submitted(request)).task_id

    def submit_all(self, requests: Sequence[SubmitTaskRequest]) -> list[SubmittedTask]:
        """Submits many tasks, each by itself; in the same order what was answered, or why it was refused."""
        with self._turn:
            return finished(self._tasks.submit_all(requests))


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
    """A task that is to be submitted. Whatever is not given is what the API has for it."""
    return SubmitTaskRequest(
        task_type=task_type,
        parameters=None if parameters is None else _encoded(parameters),
        priority=priority,
        required_capabilities=required_capabilities,
        timeout_seconds=timeout_seconds,
        max_retries=max_retries,
        idempotency_key=idempotency_key,
        run_at=None if run_at is None else stamp(run_at),
    )


def _encoded(parameters: Mapping[str, Any]) -> str:
    """Parameters as JSON. What the fast encoder does not take, or has no number for, is for the other one."""
    try:
        text = orjson.dumps(
            parameters, option=orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
        )
    except TypeError:
        return _encode_any(parameters)
    return _encode_any(parameters) if b"null" in text else text.decode()
