"""Commands that move tasks: one by its id, or all that a filter finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from handlers.objectqueue.cli.location import FAILED, Where, places
from handlers.objectqueue.cli.output import print_json, say
from handlers.objectqueue.cli.parameters import SHARD, STATUS, TASK_ID

if TYPE_CHECKING:
    from handlers.objectqueue.cli.local_node import Desk

Change = Callable[["Desk", str], Awaitable[Any]]
_PARALLEL = 32


def _filtered(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose many tasks instead of one."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask first."),
        click.option("--shard", type=SHARD, help="With --all: of this shard only."),
        click.option("--type", "task_type", help="With --all: of this type only."),
        click.option("--status", "state", type=STATUS, help="With --all: in this state only."),
        click.option("--all", "everything", is_flag=True, help="All that the filter finds, instead of one."),
        click.argument("task_id", type=TASK_ID, required=False),
    ):
        command = option(command)
    return command


@click.command()
@_filtered
@places
def replay(**given: Any) -> None:
    """Have a failed task tried again, with all its retries."""
    _change("replay", ("failed",), given)


@click.command()
@_filtered
@places
def archive(**given: Any) -> None:
    """Put a task that has ended out of sight."""
    _change("archive", ("completed", "failed"), given)


@click.command()
@_filtered
@places
def unarchive(**given: Any) -> None:
    """Put an archived task back to where it was."""
    _change("unarchive", ("archived",), given)


@click.command()
@click.option("--reason", help="Why; kept as the error of the task.")
@_filtered
@places
def cancel(reason: str | None, **given: Any) -> None:
    """End a task that nobody wants any more. It counts as failed."""
    _change("cancel", ("pending", "running"), given, reason=reason or "")


def _change(name: str, states: tuple[str, ...], given: dict[str, Any], **more: str) -> None:
    where: Where = given["where"]
    change = _call(name, more)
    filtered = any(given[each] for each in ("state", "task_type", "shard"))
    if given["task_id"] is not None:
        if given["everything"] or filtered:
            raise click.UsageError("Name a task, or choose many by --all; not both.")
        _change_one(change, given["task_id"], where)
        return
    if not given["everything"]:
        raise click.UsageError(f"Name the task to {name}, or choose many by --all and a filter.")
    if given["state"] and given["state"] not in states:
        raise click.UsageError(f"Only what is {' or '.join(states)} can be chosen to {name}.")
    _change_all(name, change, (given["state"],) if given["state"] else states, given)


def _call(name: str, more: dict[str, str]) -> Change:
    async def change(desk: Desk, task_id: str) -> Any:
        from generated.objectqueue import messages

        request = getattr(messages, f"{name.capitalize()}TaskRequest")(task_id=task_id, **more)
        return await getattr(desk.queue, f"{name}_task")(request, desk.call())

    return change


def _change_one(change: Change, task_id: str, where: Where) -> None:
    from handlers.objectqueue.cli.local_node import run

    async def work(desk: Desk) -> tuple[Any, str]:
        task = await change(desk, task_id)
        return desk.json(task), desk.plain(task)["status"]

    as_json, status = run(work, where)
    if where.as_json:
        print_json(as_json)
    else:
        click.echo(status.lower())


def _change_all(name: str, change: Change, states: tuple[str, ...], given: dict[str, Any]) -> None:
    from handlers.objectqueue.cli.local_node import run

    where: Where = given["where"]

    async def work(desk: Desk) -> int:
        from handlers.objectqueue.cli.commands.queries import tasks
        from handlers.objectqueue.cli.results import looking

        with looking():
            ids = [
                task.id
                for state in states
                async for task in tasks(desk, given["shard"], state, given["task_type"], None)
            ]
        if not ids:
            say(f"There is nothing to {name}.")
        elif not given["yes"]:
            many = "1 task" if len(ids) == 1 else f"{len(ids):,} tasks"
            click.confirm(f"{name.capitalize()} {many}?", abort=True, err=True)
        return await _each(desk, change, ids, as_json=where.as_json)

    refused = run(work, where)
    if refused:
        say(f"{refused:,} left as {'it is' if refused == 1 else 'they are'}")
        raise click.exceptions.Exit(FAILED)


async def _each(desk: Desk, change: Change, ids: list[str], *, as_json: bool) -> int:
    """Changes all of them, many at a time, with a line for each; how many were left as they are."""
    import asyncio

    from handlers.objectqueue.cli.results import results
    from runtime.call.conditions import Failure

    room, refused = asyncio.Semaphore(_PARALLEL), 0
    with results(len(ids)) as told:

        async def one(task_id: str) -> None:
            nonlocal refused
            problem = None
            async with room:
                try:
                    await change(desk, task_id)
                except Failure as failure:
                    problem = failure.message
                    refused += 1
            if as_json:
                told.json({"task_id": task_id, "problem": problem})
            elif problem is None:
                told.line(task_id)
            else:
                told.say(problem)
            told.advance()

        await asyncio.gather(*(one(each) for each in ids))
    return refused
