"""Wait for the end of a task, and print its outcome."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import click

from generated.objectqueue.messages import COMPLETED, FAILED, PENDING, RUNNING, GetTaskRequest, Task
from handlers.objectqueue.cli.local_node import LocalNode
from handlers.objectqueue.cli.location import FAILED as COMMAND_FAILED
from handlers.objectqueue.cli.location import NOT_ENDED, Location
from handlers.objectqueue.cli.output import format_printable, format_value, print_json, print_message

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


class WaitResult(NamedTuple):
    """A task after the wait: as a message, as JSON, and as plain values."""

    task: Task
    as_json: Any
    fields: Any


async def wait_for_end(node: LocalNode, task_id: str, seconds: float | None) -> WaitResult:
    """Wait for the end of a task, with a timeout."""
    loop = asyncio.get_running_loop()
    deadline = None if seconds is None else loop.time() + seconds
    pause = _FIRST_PAUSE_S
    while True:
        task = await node.queue.get_task(GetTaskRequest(task_id=task_id), node.call())
        left = _LONGEST_PAUSE_S if deadline is None else deadline - loop.time()
        if not _is_unfinished(task) or left <= 0:
            return WaitResult(task, node.encode_json(task), node.to_dict(task))
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def print_end(found: WaitResult, location: Location) -> int:
    """Print the outcome of a task; return the exit code."""
    task = found.fields
    end = found.task.archived_from or found.task.status
    if location.as_json:
        print_json(found.as_json)
    else:
        status = task["archived_from"] or task["status"]
        click.echo(format_value(task["output"]) if end == COMPLETED else status.lower())
        if end == FAILED:
            print_message(f"error: {format_printable(task['last_error'])}")
    if _is_unfinished(found.task):
        print_message("The time is over and the task has not ended; it goes on.")
        return NOT_ENDED
    return 0 if end == COMPLETED else COMMAND_FAILED


def _is_unfinished(task: Task) -> bool:
    return task.status in (PENDING, RUNNING)
