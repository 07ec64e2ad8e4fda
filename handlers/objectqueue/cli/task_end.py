"""Waiting for the end of a task, and how the end is told."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import click

from generated.objectqueue.messages import COMPLETED, FAILED, PENDING, RUNNING, GetTaskRequest, Task
from handlers.objectqueue.cli.local_node import Desk
from handlers.objectqueue.cli.location import FAILED as TROUBLE
from handlers.objectqueue.cli.location import GOES_ON, Where
from handlers.objectqueue.cli.output import print_json, printable, say, short

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


class Waited(NamedTuple):
    """A task when it had ended or the time was over: as it is, as JSON, and to be looked into."""

    task: Task
    as_json: Any
    plain: Any


async def until_ended(desk: Desk, task_id: str, seconds: float | None) -> Waited:
    """Waits for the end of a task, for so long."""
    loop = asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    pause = _FIRST_PAUSE_S
    while True:
        task = await desk.queue.get_task(GetTaskRequest(task_id=task_id), desk.call())
        left = _LONGEST_PAUSE_S if until is None else until - loop.time()
        if not _goes_on(task) or left <= 0:
            return Waited(task, desk.json(task), desk.plain(task))
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def told_end(found: Waited, where: Where) -> int:
    """Prints what came of a task; the code to end with."""
    task = found.plain
    end = found.task.archived_from or found.task.status
    if where.as_json:
        print_json(found.as_json)
    else:
        status = task["archived_from"] or task["status"]
        click.echo(short(task["output"]) if end == COMPLETED else status.lower())
        if end == FAILED:
            say(f"error: {printable(task['last_error'])}")
    if _goes_on(found.task):
        say("The time is over and the task has not ended; it goes on.")
        return GOES_ON
    return 0 if end == COMPLETED else TROUBLE


def _goes_on(task: Task) -> bool:
    return task.status in (PENDING, RUNNING)
