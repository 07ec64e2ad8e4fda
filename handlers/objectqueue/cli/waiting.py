"""Waiting for the end of a task, and how the end is told."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from generated.objectqueue.messages import PENDING, RUNNING, GetTaskRequest, Task
from handlers.objectqueue.cli.desk import Desk
from handlers.objectqueue.cli.places import FAILED, Where
from handlers.objectqueue.cli.showing import print_json, printable, say, short

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


async def until_ended(desk: Desk, task_id: str, seconds: float | None) -> tuple[Any, Any]:
    """The task when it has ended or the time is over: as JSON, and to be looked into."""
    loop = asyncio.get_running_loop()
    until = None if seconds is None else loop.time() + seconds
    pause = _FIRST_PAUSE_S
    while True:
        task = await desk.queue.get_task(GetTaskRequest(task_id=task_id), desk.call())
        left = _LONGEST_PAUSE_S if until is None else until - loop.time()
        if not _goes_on(task) or left <= 0:
            return desk.json(task), desk.plain(task)
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def told_end(found: tuple[Any, Any], where: Where) -> int:
    """Prints what came of a task; 0 if it completed."""
    as_json, task = found
    status = task["archived_from"] or task["status"]
    if where.as_json:
        print_json(as_json)
    else:
        click.echo(short(task["output"]) if status == "Completed" else status.lower())
        if status == "Failed":
            say(f"error: {printable(task['last_error'])}")
    return 0 if status == "Completed" else FAILED


def _goes_on(task: Task) -> bool:
    return task.status in (PENDING, RUNNING)
