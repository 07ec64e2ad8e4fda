"""`qo submit`: submit one task by flags, or many from a file or standard input."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.objectqueue.cli.location import FAILED, Location, location_options
from handlers.objectqueue.cli.output import print_json, print_message
from handlers.objectqueue.cli.parameters import JSON, MOMENT, SPAN

if TYPE_CHECKING:
    from handlers.objectqueue.cli.local_node import LocalNode

_PARALLEL = 32


@click.command()
@click.option("--type", "task_type", help="Which job function runs.")
@click.option("--input", "input_json", type=JSON, help="What it is given: JSON, @FILE, or - for stdin.")
@click.option("--timeout", type=click.IntRange(min=1), help="How long a run may take, in seconds.")
@click.option("--max-retries", type=click.IntRange(min=0), help="How often it is tried again.")
@click.option(
    "--retry-policy", type=JSON, help='Waits between tries, such as {"initial_interval_ms": 500}, or @FILE.'
)
@click.option("--key", help="A second submission under the same key finds the first.")
@click.option("--delay", type=SPAN, help="How long it is to wait first, such as 30s, 5m or 2h.")
@click.option("--at", type=MOMENT, help="When it is due, such as 2030-01-31T18:00:00Z.")
@click.option(
    "--from-file",
    "lines",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Many tasks, a JSON object on each line; - for stdin. Flags say what a line does not.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1, 256),
    default=_PARALLEL,
    show_default=True,
    help="How many of them are under way at a time.",
)
@click.option("--wait", "waits", is_flag=True, help="Wait until it has ended, and print its output.")
@click.option(
    "--seconds", type=SPAN, help="With --wait: how long, such as 30 or 5m; as long as it takes unless said."
)
@location_options
def submit(
    task_type: str | None,
    input_json: str | None,
    timeout: int | None,
    max_retries: int | None,
    retry_policy: str | None,
    key: str | None,
    delay: float | None,
    at: datetime | None,
    lines: Path | None,
    parallel: int,
    waits: bool,
    seconds: float | None,
    location: Location,
) -> None:
    """Submit a task, or many, and print the id of each.

    With --wait the exit code is 0 if the task completed, 1 if it failed, and 5 if the time was over first.

    A line of --from-file has the names of a task's fields: {"task_type": "echo", "input": {"n": 1}}. A line
    that cannot be submitted prints - in place of an id.
    """
    import orjson

    if delay is not None and at is not None:
        raise click.UsageError("--delay and --at say the same; give one of them.")
    submission: dict[str, Any] = {
        "task_type": task_type,
        "input": None if input_json is None else orjson.Fragment(input_json),
        "timeout_seconds": timeout,
        "max_retries": max_retries,
        "retry_policy": None if retry_policy is None else orjson.Fragment(retry_policy),
        "idempotency_key": key,
        "available_at": None if at is None else at.isoformat(),
        "delay_ms": None if delay is None else round(delay * 1000),
    }
    submission = {name: value for name, value in submission.items() if value is not None}
    if seconds is not None and not waits:
        raise click.UsageError("--seconds is how long to --wait; --timeout is how long a run may take.")
    if lines is not None:
        if key is not None or waits:
            raise click.UsageError("--key and --wait are for one task.")
        _submit_many(lines, submission, parallel, location)
        return
    if task_type is None:
        raise click.UsageError("Say by --type what is to be done, or by --from-file where that is said.")
    _submit_one(submission, location, waits=waits, seconds=seconds)


def _submit_one(
    submission: dict[str, Any], location: Location, *, waits: bool, seconds: float | None
) -> None:
    import orjson

    from generated.objectqueue.messages import PENDING
    from handlers.objectqueue.cli.hints import hint_unserved
    from handlers.objectqueue.cli.local_node import run
    from handlers.objectqueue.cli.submissions import InvalidSubmission, SubmissionParser
    from handlers.objectqueue.cli.task_end import print_end, wait_for_end

    async def work(node: LocalNode) -> Any:
        try:
            request = SubmissionParser(node.codec).parse(orjson.dumps(submission))
        except InvalidSubmission as problem:
            raise click.UsageError(str(problem)) from None
        answer = await node.queue.submit_task(request, node.call())
        if not answer.hinted:
            print_message(
                "warning: its ready entry is not written; a look through all tasks, or the sweeper, finds it"
            )
        if answer.task.status == PENDING:
            await hint_unserved(node, [answer.task.task_type])
        if waits:
            # A user who interrupts the wait still has the id of the task.
            print_message(f"waiting for {answer.task.id}")
            return await wait_for_end(node, answer.task.id, seconds)
        return node.encode_json(answer.task) if location.as_json else answer.task.id

    found = run(work, location)
    if waits:
        raise click.exceptions.Exit(print_end(found, location))
    if location.as_json:
        print_json(found)
    else:
        click.echo(found)


def _submit_many(path: Path, submission: dict[str, Any], parallel: int, location: Location) -> None:
    from handlers.objectqueue.cli.bulk_submit import BulkSubmission
    from handlers.objectqueue.cli.hints import hint_unserved
    from handlers.objectqueue.cli.local_node import run

    async def work(node: LocalNode) -> Any:
        bulk = BulkSubmission(node, submission, parallel, as_json=location.as_json)
        counts = await bulk.submit(path)
        await hint_unserved(node, bulk.waiting_types)
        return counts

    submitted, refused = run(work, location)
    print_message(f"{submitted:,} submitted" + (f", {refused:,} not" if refused else ""))
    if refused:
        raise click.exceptions.Exit(FAILED)
