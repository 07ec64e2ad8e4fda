"""Commands that change tasks: one by its id, or all that match a filter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from handlers.objectqueue.cli.location import FAILED, Location, location_options
from handlers.objectqueue.cli.output import print_json, print_message
from handlers.objectqueue.cli.parameters import SHARD, STATUS, TASK_ID

if TYPE_CHECKING:
    from handlers.objectqueue.cli.local_node import LocalNode

Change = Callable[["LocalNode", str], Awaitable[Any]]
_PARALLEL = 32


def _filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose many tasks instead of one."""
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
@_filter_options
@location_options
def replay(**options: Any) -> None:
    """Have a failed task tried again, with all its retries."""
    _change("replay", ("failed",), options)


@click.command()
@_filter_options
@location_options
def archive(**options: Any) -> None:
    """Put a task that has ended out of sight."""
    _change("archive", ("completed", "failed"), options)


@click.command()
@_filter_options
@location_options
def unarchive(**options: Any) -> None:
    """Put an archived task back to where it was."""
    _change("unarchive", ("archived",), options)


@click.command()
@click.option("--reason", help="Why; kept as the error of the task.")
@_filter_options
@location_options
def cancel(reason: str | None, **options: Any) -> None:
    """End a task that is not wanted any more. It counts as failed."""
    _change("cancel", ("pending", "running"), options, reason=reason or "")


def _change(name: str, states: tuple[str, ...], options: dict[str, Any], **fields: str) -> None:
    location: Location = options["location"]
    change = _build_change(name, fields)
    is_filtered = any(options[each] for each in ("state", "task_type", "shard"))
    if options["task_id"] is not None:
        if options["everything"] or is_filtered:
            raise click.UsageError("Name a task, or choose many by --all; not both.")
        _change_one(change, options["task_id"], location)
        return
    if not options["everything"]:
        raise click.UsageError(f"Name the task to {name}, or choose many by --all and a filter.")
    if options["state"] and options["state"] not in states:
        raise click.UsageError(f"Only what is {' or '.join(states)} can be chosen to {name}.")
    _change_all(name, change, (options["state"],) if options["state"] else states, options)


def _build_change(name: str, fields: dict[str, str]) -> Change:
    async def change(node: LocalNode, task_id: str) -> Any:
        from generated.objectqueue import messages

        request = getattr(messages, f"{name.capitalize()}TaskRequest")(task_id=task_id, **fields)
        return await getattr(node.queue, f"{name}_task")(request, node.call())

    return change


def _change_one(change: Change, task_id: str, location: Location) -> None:
    from handlers.objectqueue.cli.local_node import run

    async def work(node: LocalNode) -> tuple[Any, str]:
        task = await change(node, task_id)
        return node.encode_json(task), node.to_dict(task)["status"]

    as_json, status = run(work, location)
    if location.as_json:
        print_json(as_json)
    else:
        click.echo(status.lower())


def _change_all(name: str, change: Change, states: tuple[str, ...], options: dict[str, Any]) -> None:
    from handlers.objectqueue.cli.local_node import run

    location: Location = options["location"]

    async def work(node: LocalNode) -> int:
        from handlers.objectqueue.cli.commands.queries import iterate_tasks
        from handlers.objectqueue.cli.results import show_busy

        with show_busy():
            ids = [
                task.id
                for state in states
                async for task in iterate_tasks(node, options["shard"], state, options["task_type"], None)
            ]
        if not ids:
            print_message(f"There is nothing to {name}.")
        elif not options["yes"]:
            count = "1 task" if len(ids) == 1 else f"{len(ids):,} tasks"
            click.confirm(f"{name.capitalize()} {count}?", abort=True, err=True)
        return await _change_each(node, change, ids, as_json=location.as_json)

    refused = run(work, location)
    if refused:
        print_message(f"{refused:,} left as {'it is' if refused == 1 else 'they are'}")
        raise click.exceptions.Exit(FAILED)


async def _change_each(node: LocalNode, change: Change, ids: list[str], *, as_json: bool) -> int:
    """Change all tasks concurrently, with a line for each; return how many were refused."""
    import asyncio

    from handlers.objectqueue.cli.results import open_results
    from runtime.call.conditions import Failure

    slots, refused = asyncio.Semaphore(_PARALLEL), 0
    with open_results(len(ids)) as output:

        async def change_one(task_id: str) -> None:
            nonlocal refused
            problem = None
            async with slots:
                try:
                    await change(node, task_id)
                except Failure as failure:
                    problem = failure.message
                    refused += 1
            if as_json:
                output.print_json({"task_id": task_id, "problem": problem})
            elif problem is None:
                output.print_line(task_id)
            else:
                output.print_message(problem)
            output.advance()

        await asyncio.gather(*(change_one(each) for each in ids))
    return refused
