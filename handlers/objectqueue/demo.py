"""The demo of the object queue: tasks of every kind, with the expected and the actual outcomes."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rich.console import Console

from generated.objectqueue.messages import (
    FAILED,
    PENDING,
    RUNNING,
    ArchiveTaskRequest,
    CancelTaskRequest,
    GetHistoryRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListWorkersRequest,
    ReplayTaskRequest,
    SubmitTaskRequest,
    Task,
    WantedRetryPolicy,
)
from generated.objectqueue.system import SYSTEM
from handlers.objectqueue.cli.local_node import LocalNode, open_local_node
from handlers.objectqueue.views import format_state
from runtime.call.conditions import Failure
from runtime.client import Client
from runtime.launch.show import DemoReport
from runtime.stores.s3.bucket.page_files import page_url
from runtime.stores.s3.client.location import locations_of

PRINCIPAL = "client"
TIMEOUT_S = 120.0
_MANY = 100
_FEW = 10
_POLL_S = 0.05
_QUICK_RETRY = WantedRetryPolicy(initial_interval_ms=20, max_interval_ms=20, jitter_percent=0)


async def demo(client: Client, console: Console) -> int:
    """Run the tasks; return 0 if every outcome is the expected one."""
    async with open_local_node({**os.environ, **client.variables}) as node:
        return await ObjectQueueDemo(node, client.variables).run_and_print(console, TIMEOUT_S)


async def interrupted(
    client: Client, console: Console, interrupt: Callable[[], Awaitable[None]], *, least_runs: int
) -> int:
    """Run tasks while something that they need is lost and replaced; return 0 if all complete.

    The interrupted task must have at least `least_runs` runs.
    """
    async with open_local_node({**os.environ, **client.variables}) as node:
        return await InterruptionDemo(node, client.variables, interrupt, least_runs).run_and_print(
            console, TIMEOUT_S
        )


class ObjectQueueDemo(DemoReport):
    """Every kind of task, one after the other."""

    def __init__(self, node: LocalNode, variables: Mapping[str, str]) -> None:
        super().__init__()
        self._node = node
        self._queue = node.queue
        self._variables = variables

    async def run(self) -> None:
        """Submit, wait for and move tasks, and note the outcomes."""
        echoed = await self._wait_for_end(await self._submit("echo", input=json.dumps({"hello": "world"})))
        self.note("a task with some input", '{"hello":"world"}', echoed.output)
        many = await asyncio.gather(*(self._submit("echo", input=str(n)) for n in range(_MANY)))
        outputs = {(await self._wait_for_end(each)).output for each in many}
        self.note(f"{_MANY} at once", f"{_MANY} outputs", f"{len(outputs)} outputs")
        first, second = [await self._submit("echo", input="1", idempotency_key="order 7") for _ in range(2)]
        self.note("the same key twice", "one task", "one task" if first.id == second.id else "two tasks")
        fatal = await self._wait_for_end(await self._submit("fatal", input="null"))
        self.note("one that never works", "Failed after 1 run", _describe_runs(fatal))
        failing = await self._wait_for_end(
            await self._submit("fail", input="null", max_retries=2, retry_policy=_QUICK_RETRY)
        )
        self.note("one that is tried again", "Failed after 3 runs", _describe_runs(failing))
        self.note("its history", "7 versions", f"{await self._count_versions(failing)} versions")
        await self._queue.replay_task(ReplayTaskRequest(task_id=failing.id), self._node.call())
        self.note(
            "the same, replayed", "Failed after 6 runs", _describe_runs(await self._wait_for_end(failing))
        )
        await self._queue.archive_task(ArchiveTaskRequest(task_id=failing.id), self._node.call())
        dead = await self._queue.list_tasks(ListTasksRequest(status=[FAILED]), self._node.call())
        self.note("failed ones once it is archived", "1", str(len(dead.tasks)))
        later = await self._submit("echo", delay_ms=3_600_000)
        cancelled = await self._queue.cancel_task(CancelTaskRequest(task_id=later.id), self._node.call())
        self.note(
            "one for later, cancelled",
            "Failed: cancelled",
            f"{_format_status(cancelled)}: {cancelled.last_error}",
        )
        self.note("replaying one that is done", "refused", await self._try_replay(echoed))
        workers = await self._queue.list_workers(ListWorkersRequest(), self._node.call())
        self.note("workers that are heard of", "yes", "yes" if any(w.live for w in workers.workers) else "no")
        self.note("the page in the bucket", "200", await asyncio.to_thread(self._get_page_status))

    async def _submit(self, task_type: str, **fields: Any) -> Task:
        request = SubmitTaskRequest(task_type=task_type, **fields)
        return (await self._queue.submit_task(request, self._node.call())).task

    async def _wait_for_end(self, task: Task) -> Task:
        """Wait until a task has ended; return it."""
        while (task := await self._get_task(task)).status in (PENDING, RUNNING):
            await asyncio.sleep(_POLL_S)
        return task

    async def _get_task(self, task: Task) -> Task:
        """Get the current state of a task."""
        return await self._queue.get_task(GetTaskRequest(task_id=task.id), self._node.call())

    async def _count_versions(self, task: Task) -> int:
        answer = await self._queue.get_history(GetHistoryRequest(task_id=task.id), self._node.call())
        return len(answer.versions)

    async def _try_replay(self, task: Task) -> str:
        try:
            await self._queue.replay_task(ReplayTaskRequest(task_id=task.id), self._node.call())
        except Failure:
            return "refused"
        return "replayed"

    def _get_page_status(self) -> str:
        [location] = locations_of(SYSTEM.lifecycles.values(), self._variables)
        try:
            with urllib.request.urlopen(page_url(location)) as page:
                return str(page.status)
        except OSError as error:
            return str(error)


class InterruptionDemo(ObjectQueueDemo):
    """A slow task that is interrupted, and quick ones that wait behind it."""

    def __init__(
        self,
        node: LocalNode,
        variables: Mapping[str, str],
        interrupt: Callable[[], Awaitable[None]],
        least_runs: int,
    ) -> None:
        super().__init__(node, variables)
        self._interrupt = interrupt
        self._least_runs = least_runs

    async def run(self) -> None:
        """Submit the tasks, interrupt them, and wait for all."""
        slow = await self._submit(
            "sleep", input='{"seconds": 8}', timeout_seconds=12, retry_policy=_QUICK_RETRY
        )
        while (await self._get_task(slow)).status != RUNNING:
            await asyncio.sleep(_POLL_S)
        quick = [await self._submit("echo", input=str(n), retry_policy=_QUICK_RETRY) for n in range(_FEW)]
        await self._interrupt()
        slow = await self._wait_for_end(slow)
        self.note("one in the middle of its work", "Completed", _format_status(slow))
        fewest = min(slow.attempt, self._least_runs)
        self.note("its runs", f"at least {self._least_runs}", f"at least {fewest}")
        ended = [_format_status(await self._wait_for_end(each)) for each in quick]
        self.note(f"{_FEW} that waited", f"{_FEW} Completed", f"{ended.count('Completed')} Completed")


def _describe_runs(task: Task) -> str:
    return f"{_format_status(task)} after {task.attempt} run{'s' if task.attempt > 1 else ''}"


def _format_status(task: Task) -> str:
    return format_state(task.status)
