"""Read-only commands: show tasks, workers and statistics."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from handlers.objectqueue.cli.location import Location, location_options
from handlers.objectqueue.cli.output import (
    format_age,
    format_printable,
    print_fields,
    print_json,
    print_message,
    print_table,
)
from handlers.objectqueue.cli.parameters import SHARD, SPAN, STATUS, STATUSES, TASK_ID
from handlers.objectqueue.cli.results import show_busy

if TYPE_CHECKING:
    from generated.objectqueue.messages import Task
    from handlers.objectqueue.cli.local_node import LocalNode

_PAGE = 200
_TASK_COLUMNS = ("id", "status", "type", "attempt", "retries", "updated", "available", "worker", "error")


@click.command()
@click.argument("task_id", type=TASK_ID)
@location_options
def status(task_id: str, location: Location) -> None:
    """Show a task as it is now."""
    from generated.objectqueue.messages import GetTaskRequest
    from handlers.objectqueue.cli.local_node import run

    async def work(node: LocalNode) -> tuple[Any, Any]:
        task = await node.queue.get_task(GetTaskRequest(task_id=task_id), node.call())
        return node.encode_json(task), node.to_dict(task)

    as_json, task = run(work, location)
    if location.as_json:
        print_json(as_json)
    else:
        print_fields(task)


@click.command()
@click.argument("task_id", type=TASK_ID)
@location_options
def history(task_id: str, location: Location) -> None:
    """Show every version of a task and what it changed."""
    from generated.objectqueue.messages import GetHistoryRequest
    from handlers.objectqueue.cli.local_node import run

    async def work(node: LocalNode) -> Any:
        answer = await node.queue.get_history(GetHistoryRequest(task_id=task_id), node.call())
        found = node.to_dict(answer)["versions"]
        for view, version in zip(found, answer.versions, strict=True):
            if not version.HasField("task"):
                view["task"] = None
        return found

    versions = run(work, location)
    from handlers.objectqueue.differences import find_differences

    before: dict[str, Any] = {}
    for each in versions:
        task = each["task"] or {}
        each["changes"] = (
            [found._asdict() for found in find_differences(before, task)] if before and task else []
        )
        before = task or before
    if location.as_json:
        print_json(versions)
        return
    for number, each in enumerate(versions, 1):
        task = each["task"]
        if task is None:
            click.echo(f"{number}  {each['at']}  cannot be read (version {each['version']})")
            continue
        click.echo(f"{number}  {task['updated_at']}  {task['status']}  attempt {task['attempt']}")
        for change in each["changes"]:
            if change["path"] not in ("rev", "updated_at"):
                old, new = format_printable(change["before"]), format_printable(change["after"])
                click.echo(f"     {change['path']}: {old} → {new}")


@click.command("list")
@click.option("--shard", type=SHARD, help="One of 0 to f; all unless said.")
@click.option("--status", "state", type=STATUS, help="All but archived unless said.")
@click.option("--type", "task_type", help="Tasks of this type only.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many at most.")
@location_options
def list_tasks(
    shard: str | None, state: str | None, task_type: str | None, limit: int, location: Location
) -> None:
    """List tasks, what changed last first."""
    from handlers.objectqueue.cli.hints import hint_unserved, is_due, print_unreadable
    from handlers.objectqueue.cli.local_node import run

    unreadable: list[str] = []

    async def work(node: LocalNode) -> list[tuple[Any, Any]]:
        waiting: set[str] = set()
        rows: list[tuple[Any, Any]] = []
        with show_busy():
            async for task in iterate_tasks(node, shard, state, task_type, limit, unreadable):
                rows.append((node.encode_json(task), node.to_dict(task)))
                if is_due(task):
                    waiting.add(task.task_type)
        await hint_unserved(node, waiting)
        return rows

    found = run(work, location)
    print_unreadable(len(unreadable), unreadable)
    if location.as_json:
        print_json([as_json for as_json, _ in found])
    else:
        from generated.objectqueue.messages import PENDING
        from handlers.objectqueue.views import format_state

        print_table(_TASK_COLUMNS, [_to_task_row(task, format_state(PENDING)) for _, task in found])


async def iterate_tasks(
    node: LocalNode,
    shard: str | None,
    state: str | None,
    task_type: str | None,
    limit: int | None,
    unreadable: list[str] | None = None,
) -> AsyncIterator[Task]:
    """Iterate over the tasks of a filter page by page; collect the ids of unreadable objects."""
    from generated.objectqueue.messages import ListTasksRequest, TaskStatus

    request = ListTasksRequest(
        shards=[shard] if shard else [],
        status=[TaskStatus.Value(state.upper())] if state else [],
        task_type=task_type,
        page_size=min(_PAGE, limit or _PAGE),
    )
    seen = 0
    while True:
        answer = await node.queue.list_tasks(request, node.call())
        if unreadable is not None:
            unreadable += answer.unreadable_ids
        for task in answer.tasks:
            yield task
            seen += 1
            if seen == limit:
                return
        if not answer.next_page_token:
            return
        request.page_token = answer.next_page_token


@click.command()
@location_options
def workers(location: Location) -> None:
    """List workers, how they are, what they did and what they run."""
    from generated.objectqueue.messages import ListWorkersRequest
    from handlers.objectqueue.cli.hints import print_unserved
    from handlers.objectqueue.cli.local_node import run

    async def work(node: LocalNode) -> Any:
        return node.to_dict(await node.queue.list_workers(ListWorkersRequest(with_waiting=True), node.call()))

    answer = run(work, location)
    if location.as_json:
        print_json(answer)
    else:
        titles = "worker", "state", "heartbeat", "shards", "task", "completed", "failed", "lost", "types"
        print_table(titles, [_to_worker_row(each["worker"], live=each["live"]) for each in answer["workers"]])
    if answer["uncovered_shards"]:
        is_served = any(each["live"] for each in answer["workers"])
        which = f"serves {', '.join(answer['uncovered_shards'])}" if is_served else "is there"
        print_message(f"warning: no live worker {which}")
    has_live = any(each["live"] for each in answer["workers"])
    print_unserved(answer["unserved_types"], answer["task_types"], has_live=has_live)


@click.command()
@click.option("--shard", type=SHARD, help="One of 0 to f; all unless said.")
@location_options
def stats(shard: str | None, location: Location) -> None:
    """Count tasks by shard and state. It reads every task of the queue."""
    from generated.objectqueue.messages import GetStatsRequest
    from handlers.objectqueue.cli.hints import print_unreadable
    from handlers.objectqueue.cli.local_node import run

    async def work(node: LocalNode) -> Any:
        request = GetStatsRequest(shards=[shard] if shard else [])
        with show_busy():
            return node.to_dict(await node.queue.get_stats(request, node.call()))

    shards = run(work, location)["shards"]
    print_unreadable(sum(int(each["unreadable"]) for each in shards))
    if location.as_json:
        print_json({"shards": shards})
        return
    columns = (*STATUSES, "unreadable")
    rows = [[each["shard"], *(each[name] for name in columns)] for each in shards]
    totals = [sum(column) for column in list(zip(*rows, strict=True))[1:]]
    oldest = [each["oldest_pending_ms"] for each in shards]
    lines = [[*row, _format_age_ms(ms)] for row, ms in zip(rows, oldest, strict=True)]
    print_table(("shard", *columns, "oldest"), [*lines, ("all", *totals, _format_age_ms(max(oldest)))])


@click.command()
@click.argument("task_id", type=TASK_ID)
@click.option(
    "--seconds", type=SPAN, help="How long to wait, such as 30 or 5m; as long as it takes unless said."
)
@location_options
def wait(task_id: str, seconds: float | None, location: Location) -> None:
    """Wait until a task has ended, and print its output.

    The exit code is 0 if it completed, 1 if it failed, and 5 if the time was over first.
    """
    from handlers.objectqueue.cli.local_node import run
    from handlers.objectqueue.cli.task_end import print_end, wait_for_end

    found = run(lambda node: wait_for_end(node, task_id, seconds), location)
    raise click.exceptions.Exit(print_end(found, location))


def _format_age_ms(ms: int) -> str:
    return f"{ms / 1000:.0f}s" if ms else "-"


def _to_task_row(task: Any, waiting: str) -> tuple[object, ...]:
    return (
        task["id"],
        task["status"],
        task["task_type"],
        task["attempt"],
        f"{task['retry_count']}/{task['max_retries']}",
        format_age(task["updated_at"]),
        format_age(task["available_at"]) if task["status"] == waiting else None,
        task["worker_id"],
        (task["last_error"] or "").partition("\n")[0][:80],
    )


def _to_worker_row(worker: Any, *, live: bool) -> tuple[object, ...]:
    return (
        worker["worker_id"],
        "active" if live else "stale",
        format_age(worker["last_heartbeat"]),
        "".join(worker["shards"]),
        worker["current_task"],
        worker["tasks_completed"],
        worker["tasks_failed"],
        worker["leases_lost"],
        ", ".join(worker["task_types"]),
    )
