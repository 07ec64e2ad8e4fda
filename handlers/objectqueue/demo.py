"""The demo of the object queue: tasks of every kind, and what came of each."""

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
from handlers.objectqueue.cli.local_node import Desk, opened
from handlers.objectqueue.views import word
from runtime.call.conditions import Failure
from runtime.client import Client
from runtime.launch.show import Show
from runtime.stores.s3.bucket.page_files import page_url
from runtime.stores.s3.client.place import places_of

PRINCIPAL = "client"
PATIENCE = 120.0
_MANY = 100
_FEW = 10
_PAUSE_S = 0.05
_SOON = WantedRetryPolicy(initial_interval_ms=20, max_interval_ms=20, jitter_percent=0)


async def demo(client: Client, console: Console) -> int:
    """Runs the tasks; 0 if every outcome is the expected one."""
    async with opened({**os.environ, **client.variables}) as desk:
        return await Tasks(desk, client.variables).shown(console, PATIENCE)


async def interrupted(
    client: Client, console: Console, interrupt: Callable[[], Awaitable[None]], *, least_runs: int
) -> int:
    """Has tasks done while something that they need is lost and replaced; 0 if all are done in the end.

    The one that is interrupted has to be begun some number of times for that.
    """
    async with opened({**os.environ, **client.variables}) as desk:
        return await Lasting(desk, client.variables, interrupt, least_runs).shown(console, PATIENCE)


class Tasks(Show):
    """Every kind of task, one after the other."""

    def __init__(self, desk: Desk, variables: Mapping[str, str]) -> None:
        super().__init__()
        self._desk = desk
        self._queue = desk.queue
        self._variables = variables

    async def run(self) -> None:
        """Submits, waits, moves, and notes what came of it."""
        echoed = await self._end(await self._submit("echo", input=json.dumps({"hello": "world"})))
        self.note("a task with some input", '{"hello":"world"}', echoed.output)
        many = await asyncio.gather(*(self._submit("echo", input=str(n)) for n in range(_MANY)))
        outputs = {(await self._end(each)).output for each in many}
        self.note(f"{_MANY} at once", f"{_MANY} outputs", f"{len(outputs)} outputs")
        first, second = [await self._submit("echo", input="1", idempotency_key="order 7") for _ in range(2)]
        self.note("the same key twice", "one task", "one task" if first.id == second.id else "two tasks")
        fatal = await self._end(await self._submit("fatal", input="null"))
        self.note("one that never works", "Failed after 1 run", _course(fatal))
        failing = await self._end(await self._submit("fail", input="null", max_retries=2, retry_policy=_SOON))
        self.note("one that is tried again", "Failed after 3 runs", _course(failing))
        self.note("its history", "7 versions", f"{await self._versions(failing)} versions")
        await self._queue.replay_task(ReplayTaskRequest(task_id=failing.id), self._desk.call())
        self.note("the same, replayed", "Failed after 6 runs", _course(await self._end(failing)))
        await self._queue.archive_task(ArchiveTaskRequest(task_id=failing.id), self._desk.call())
        dead = await self._queue.list_tasks(ListTasksRequest(status=[FAILED]), self._desk.call())
        self.note("failed ones once it is archived", "1", str(len(dead.tasks)))
        later = await self._submit("echo", delay_ms=3_600_000)
        cancelled = await self._queue.cancel_task(CancelTaskRequest(task_id=later.id), self._desk.call())
        self.note(
            "one for later, cancelled", "Failed: cancelled", f"{_word(cancelled)}: {cancelled.last_error}"
        )
        self.note("replaying one that is done", "refused", await self._refused(echoed))
        workers = await self._queue.list_workers(ListWorkersRequest(), self._desk.call())
        self.note("workers that are heard of", "yes", "yes" if any(w.live for w in workers.workers) else "no")
        self.note("the page in the bucket", "200", await asyncio.to_thread(self._page))

    async def _submit(self, task_type: str, **more: Any) -> Task:
        request = SubmitTaskRequest(task_type=task_type, **more)
        return (await self._queue.submit_task(request, self._desk.call())).task

    async def _end(self, task: Task) -> Task:
        """A task when it has ended."""
        while (task := await self._now(task)).status in (PENDING, RUNNING):
            await asyncio.sleep(_PAUSE_S)
        return task

    async def _now(self, task: Task) -> Task:
        """A task as it is by now."""
        return await self._queue.get_task(GetTaskRequest(task_id=task.id), self._desk.call())

    async def _versions(self, task: Task) -> int:
        answer = await self._queue.get_history(GetHistoryRequest(task_id=task.id), self._desk.call())
        return len(answer.versions)

    async def _refused(self, task: Task) -> str:
        try:
            await self._queue.replay_task(ReplayTaskRequest(task_id=task.id), self._desk.call())
        except Failure:
            return "refused"
        return "replayed"

    def _page(self) -> str:
        [place] = places_of(SYSTEM.lifecycles.values(), self._variables)
        try:
            with urllib.request.urlopen(page_url(place)) as page:
                return str(page.status)
        except OSError as error:
            return str(error)


class Lasting(Tasks):
    """A task that takes a while, and others that wait behind it."""

    def __init__(
        self,
        desk: Desk,
        variables: Mapping[str, str],
        interrupt: Callable[[], Awaitable[None]],
        least_runs: int,
    ) -> None:
        super().__init__(desk, variables)
        self._interrupt = interrupt
        self._least_runs = least_runs

    async def run(self) -> None:
        """Submits them, has them interrupted, and waits for all."""
        slow = await self._submit("sleep", input='{"seconds": 8}', timeout_seconds=12, retry_policy=_SOON)
        while (await self._now(slow)).status != RUNNING:
            await asyncio.sleep(_PAUSE_S)
        quick = [await self._submit("echo", input=str(n), retry_policy=_SOON) for n in range(_FEW)]
        await self._interrupt()
        slow = await self._end(slow)
        self.note("one in the middle of its work", "Completed", _word(slow))
        fewest = min(slow.attempt, self._least_runs)
        self.note("its runs", f"at least {self._least_runs}", f"at least {fewest}")
        ended = [_word(await self._end(each)) for each in quick]
        self.note(f"{_FEW} that waited", f"{_FEW} Completed", f"{ended.count('Completed')} Completed")


def _course(task: Task) -> str:
    return f"{_word(task)} after {task.attempt} run{'s' if task.attempt > 1 else ''}"


def _word(task: Task) -> str:
    return word(task.status)
