"""Commands that show tasks and workers and change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from handlers.objectqueue.cli.location import Where, places
from handlers.objectqueue.cli.output import ago, print_fields, print_json, print_table, printable, say
from handlers.objectqueue.cli.parameters import SHARD, SPAN, STATUS, STATUSES, TASK_ID
from handlers.objectqueue.cli.results import looking

if TYPE_CHECKING:
    from generated.objectqueue.messages import Task
    from handlers.objectqueue.cli.local_node import Desk

_PAGE = 200
_TASK_COLUMNS = ("id", "status", "type", "attempt", "retries", "updated", "available", "worker", "error")


@click.command()
@click.argument("task_id", type=TASK_ID)
@places
def status(task_id: str, where: Where) -> None:
    """Show a task as it is now."""
    from generated.objectqueue.messages import GetTaskRequest
    from handlers.objectqueue.cli.local_node import run

    async def work(desk: Desk) -> tuple[Any, Any]:
        task = await desk.queue.get_task(GetTaskRequest(task_id=task_id), desk.call())
        return desk.json(task), desk.plain(task)

    as_json, task = run(work, where)
    if where.as_json:
        print_json(as_json)
    else:
        print_fields(task)


@click.command()
@click.argument("task_id", type=TASK_ID)
@places
def history(task_id: str, where: Where) -> None:
    """Show every version of a task and what it changed."""
    from generated.objectqueue.messages import GetHistoryRequest
    from handlers.objectqueue.cli.local_node import run

    async def work(desk: Desk) -> Any:
        answer = await desk.queue.get_history(GetHistoryRequest(task_id=task_id), desk.call())
        found = desk.plain(answer)["versions"]
        for shown, version in zip(found, answer.versions, strict=True):
            if not version.HasField("task"):
                shown["task"] = None
        return found

    versions = run(work, where)
    from handlers.objectqueue.differences import differences

    before: dict[str, Any] = {}
    for each in versions:
        task = each["task"] or {}
        each["changes"] = [found._asdict() for found in differences(before, task)] if before and task else []
        before = task or before
    if where.as_json:
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
                was, became = printable(change["before"]), printable(change["after"])
                click.echo(f"     {change['path']}: {was} → {became}")


@click.command("list")
@click.option("--shard", type=SHARD, help="One of 0 to f; all unless said.")
@click.option("--status", "state", type=STATUS, help="All but archived unless said.")
@click.option("--type", "task_type", help="Tasks of this type only.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many at most.")
@places
def list_tasks(shard: str | None, state: str | None, task_type: str | None, limit: int, where: Where) -> None:
    """List tasks, what changed last first."""
    from handlers.objectqueue.cli.hints import hint_unserved, is_due, say_unreadable
    from handlers.objectqueue.cli.local_node import run

    unreadable: list[str] = []

    async def work(desk: Desk) -> list[tuple[Any, Any]]:
        waiting: set[str] = set()
        rows: list[tuple[Any, Any]] = []
        with looking():
            async for task in tasks(desk, shard, state, task_type, limit, unreadable):
                rows.append((desk.json(task), desk.plain(task)))
                if is_due(task):
                    waiting.add(task.task_type)
        await hint_unserved(desk, waiting)
        return rows

    found = run(work, where)
    say_unreadable(len(unreadable), unreadable)
    if where.as_json:
        print_json([as_json for as_json, _ in found])
    else:
        from generated.objectqueue.messages import PENDING
        from handlers.objectqueue.views import word

        print_table(_TASK_COLUMNS, [_row(task, word(PENDING)) for _, task in found])


async def tasks(
    desk: Desk,
    shard: str | None,
    state: str | None,
    task_type: str | None,
    limit: int | None,
    unreadable: list[str] | None = None,
) -> AsyncIterator[Task]:
    """Tasks by filter, page by page; to `unreadable` the ids of objects are added that cannot be read."""
    from generated.objectqueue.messages import ListTasksRequest, TaskStatus

    request = ListTasksRequest(
        shards=[shard] if shard else [],
        status=[TaskStatus.Value(state.upper())] if state else [],
        task_type=task_type,
        page_size=min(_PAGE, limit or _PAGE),
    )
    seen = 0
    while True:
        answer = await desk.queue.list_tasks(request, desk.call())
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
@places
def workers(where: Where) -> None:
    """List workers, how they are, what they did and what they run."""
    from generated.objectqueue.messages import ListWorkersRequest
    from handlers.objectqueue.cli.hints import say_unserved
    from handlers.objectqueue.cli.local_node import run

    async def work(desk: Desk) -> Any:
        return desk.plain(await desk.queue.list_workers(ListWorkersRequest(with_waiting=True), desk.call()))

    answer = run(work, where)
    if where.as_json:
        print_json(answer)
    else:
        titles = "worker", "state", "heartbeat", "shards", "task", "completed", "failed", "lost", "types"
        print_table(titles, [_worker_row(each["worker"], live=each["live"]) for each in answer["workers"]])
    if answer["uncovered_shards"]:
        served = any(each["live"] for each in answer["workers"])
        which = f"serves {', '.join(answer['uncovered_shards'])}" if served else "is there"
        say(f"warning: no live worker {which}")
    has_live = any(each["live"] for each in answer["workers"])
    say_unserved(answer["unserved_types"], answer["task_types"], has_live=has_live)


@click.command()
@click.option("--shard", type=SHARD, help="One of 0 to f; all unless said.")
@places
def stats(shard: str | None, where: Where) -> None:
    """Count tasks by shard and state. It reads every task of the queue."""
    from generated.objectqueue.messages import GetStatsRequest
    from handlers.objectqueue.cli.hints import say_unreadable
    from handlers.objectqueue.cli.local_node import run

    async def work(desk: Desk) -> Any:
        request = GetStatsRequest(shards=[shard] if shard else [])
        with looking():
            return desk.plain(await desk.queue.get_stats(request, desk.call()))

    shards = run(work, where)["shards"]
    say_unreadable(sum(int(each["unreadable"]) for each in shards))
    if where.as_json:
        print_json({"shards": shards})
        return
    columns = (*STATUSES, "unreadable")
    rows = [[each["shard"], *(each[name] for name in columns)] for each in shards]
    totals = [sum(column) for column in list(zip(*rows, strict=True))[1:]]
    oldest = [each["oldest_pending_ms"] for each in shards]
    shown = [[*row, _age(ms)] for row, ms in zip(rows, oldest, strict=True)]
    print_table(("shard", *columns, "oldest"), [*shown, ("all", *totals, _age(max(oldest)))])


@click.command()
@click.argument("task_id", type=TASK_ID)
@click.option(
    "--seconds", type=SPAN, help="How long to wait, such as 30 or 5m; as long as it takes unless said."
)
@places
def wait(task_id: str, seconds: float | None, where: Where) -> None:
    """Wait until a task has ended, and print its output.

    The exit code is 0 if it completed, 1 if it failed, and 5 if the time was over first.
    """
    from handlers.objectqueue.cli.local_node import run
    from handlers.objectqueue.cli.task_end import told_end, until_ended

    found = run(lambda desk: until_ended(desk, task_id, seconds), where)
    raise click.exceptions.Exit(told_end(found, where))


def _age(ms: int) -> str:
    return f"{ms / 1000:.0f}s" if ms else "-"


def _row(task: Any, waiting: str) -> tuple[object, ...]:
    return (
        task["id"],
        task["status"],
        task["task_type"],
        task["attempt"],
        f"{task['retry_count']}/{task['max_retries']}",
        ago(task["updated_at"]),
        ago(task["available_at"]) if task["status"] == waiting else None,
        task["worker_id"],
        (task["last_error"] or "").partition("\n")[0][:80],
    )


def _worker_row(worker: Any, *, live: bool) -> tuple[object, ...]:
    return (
        worker["worker_id"],
        "active" if live else "stale",
        ago(worker["last_heartbeat"]),
        "".join(worker["shards"]),
        worker["current_task"],
        worker["tasks_completed"],
        worker["tasks_failed"],
        worker["leases_lost"],
        ", ".join(worker["task_types"]),
    )
