"""What is said on standard error of tasks that no worker runs, and of objects that are no tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handlers.objectqueue.cli.output import printable, say

if TYPE_CHECKING:
    from generated.objectqueue.messages import Task
    from handlers.objectqueue.cli.local_node import Desk

_SHOWN = 8
"""So many names are shown in a sentence."""


async def hint_unserved(desk: Desk, types: Iterable[str]) -> None:
    """Says which types of waiting tasks no live worker runs, if this key may read the workers."""
    from generated.objectqueue.messages import ListWorkersRequest
    from runtime.call.conditions import Failure
    from runtime.stores.object_store import NotReadable

    if not (wanted := set(types)):
        return
    try:
        answer = await desk.queue.list_workers(ListWorkersRequest(), desk.call())
    except (Failure, NotReadable):
        return
    say_unserved(
        wanted - set(answer.task_types), answer.task_types, has_live=any(each.live for each in answer.workers)
    )


def say_unserved(unserved: Iterable[str], known: Iterable[str], *, has_live: bool) -> None:
    """One line about tasks that no live worker runs, where there are any."""
    if not (named := _named(unserved)):
        return
    if not has_live:
        say(f"hint: there is no live worker; tasks of type {named} wait until one starts (qo worker)")
    else:
        runs = _named(known) or "nothing"
        say(
            f"hint: no live worker runs tasks of type {named}; they wait until one does. Live ones run {runs}"
        )


def is_due(task: Task) -> bool:
    """Whether a task only waits for a worker."""
    from datetime import UTC, datetime

    from generated.objectqueue.messages import PENDING

    return task.status == PENDING and task.available_at.ToDatetime(UTC) <= datetime.now(UTC)


def say_unreadable(count: int, ids: Iterable[str] = ()) -> None:
    """One line about objects in the place of tasks that cannot be read, where there are any."""
    if count:
        which = f": {named}" if (named := _named(ids)) else ""
        what = "object cannot be read as a task" if count == 1 else "objects cannot be read as tasks"
        say(f"warning: {count:,} {what}{which}")


def _named(names: Iterable[str]) -> str:
    found = sorted(map(printable, names))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more
