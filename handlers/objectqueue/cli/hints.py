"""Hints on standard error: tasks that no worker runs, and objects that are no tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handlers.objectqueue.cli.output import format_printable, print_message

if TYPE_CHECKING:
    from generated.objectqueue.messages import Task
    from handlers.objectqueue.cli.local_node import LocalNode

_MAX_NAMES = 8
"""The number of names in a sentence."""


async def hint_unserved(node: LocalNode, types: Iterable[str]) -> None:
    """Print which types of waiting tasks no live worker runs, if the caller may read the workers."""
    from generated.objectqueue.messages import ListWorkersRequest
    from runtime.call.conditions import Failure
    from runtime.stores.bucket_store import NotReadable

    if not (waiting := set(types)):
        return
    try:
        answer = await node.queue.list_workers(ListWorkersRequest(), node.call())
    except (Failure, NotReadable):
        return
    print_unserved(
        waiting - set(answer.task_types),
        answer.task_types,
        has_live=any(each.live for each in answer.workers),
    )


def print_unserved(unserved: Iterable[str], known: Iterable[str], *, has_live: bool) -> None:
    """Print a line about tasks that no live worker runs, where there are any."""
    if not (names := _join_names(unserved)):
        return
    if not has_live:
        print_message(
            f"hint: there is no live worker; tasks of type {names} wait until one starts (qo worker)"
        )
    else:
        runs = _join_names(known) or "nothing"
        print_message(
            f"hint: no live worker runs tasks of type {names}; they wait until one does. Live ones run {runs}"
        )


def is_due(task: Task) -> bool:
    """Whether a task is due and only waits for a worker."""
    from datetime import UTC, datetime

    from generated.objectqueue.messages import PENDING

    return task.status == PENDING and task.available_at.ToDatetime(UTC) <= datetime.now(UTC)


def print_unreadable(count: int, ids: Iterable[str] = ()) -> None:
    """Print a line about objects that cannot be read as tasks, where there are any."""
    if count:
        which = f": {names}" if (names := _join_names(ids)) else ""
        what = "object cannot be read as a task" if count == 1 else "objects cannot be read as tasks"
        print_message(f"warning: {count:,} {what}{which}")


def _join_names(names: Iterable[str]) -> str:
    found = sorted(map(format_printable, names))
    more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
    return ", ".join(found[:_MAX_NAMES]) + more
