"""Trace three jobs through their deployments and write `docs/explanation/walks.md`: `nox -s walks`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from generated.orchestrator import clients as orchestrator_clients
from generated.orchestrator import messages as orchestrator
from generated.priority import clients as priority_clients
from generated.priority import messages as priority
from generated.taskqueue import clients as taskqueue_clients
from generated.taskqueue import messages as taskqueue
from runtime.client import Client
from runtime.launch import Launched, launched

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "walks.md"
RECORDER = Path(__file__).parent / "walk_recorder"
TIMEOUT_S = 60
POLL_S = 0.02
WARM_UP = 2
SETTLE_S = 0.5
CLIENT = "client"
OWN_WORK = "finds work and does it"


async def submit_taskqueue_job(client: Client) -> None:
    """Submit a job, and no more."""
    request = taskqueue.SubmitJobRequest(spec=taskqueue.JobSpec(job_type="echo"))
    await client.of(taskqueue_clients.TaskQueuePublicServiceClient).submit_job(request, client.call())


async def run_orchestrator_job(client: Client) -> None:
    """Submit a job and wait for its end."""
    jobs = client.of(orchestrator_clients.JobsServiceClient)
    request = orchestrator.SubmitJobRequest(
        job_type="echo", payload="{}", idempotency_key=f"walk-{uuid.uuid4().hex}"
    )
    accepted = await jobs.submit_job(request, client.call())
    while True:
        grouped = await jobs.get_job(orchestrator.GetJobRequest(job_id=accepted.job_id), client.call())
        if grouped.status in (orchestrator.STATUS_COMPLETED, orchestrator.STATUS_FAILED):
            return
        await asyncio.sleep(POLL_S)


async def run_priority_task(client: Client) -> None:
    """Submit a task and wait for its end."""
    tasks = client.of(priority_clients.TasksServiceClient)
    request = priority.SubmitTaskRequest(task_type="echo", parameters="{}")
    accepted = await tasks.submit_task(request, client.call())
    await tasks.get_task(priority.GetTaskRequest(task_id=accepted.task_id, wait_ms=20_000), client.call())


@dataclass(frozen=True)
class Walk:
    """A request that is traced from its client to its end."""

    title: str
    deployment: str
    method: str
    """The call of its client."""
    request: Callable[[Client], Awaitable[None]]
    end: str
    """The event at which the trace ends."""
    workers: tuple[str, ...] = ()
    """Nodes whose own work belongs to it, because they claim the job by themselves."""
    principal: str | None = None


WALKS = (
    Walk(
        "One SubmitJob",
        "taskqueue.microservices",
        "TaskQueuePublicService.SubmitJob",
        submit_taskqueue_job,
        "the answer to its client",
    ),
    Walk(
        "One orchestrator job",
        "orchestrator.local",
        "JobsService.SubmitJob",
        run_orchestrator_job,
        "its completion",
        ("worker",),
    ),
    Walk(
        "One priority task",
        "priority.local",
        "TasksService.SubmitTask",
        run_priority_task,
        "its completion",
        ("worker",),
        "admin",
    ),
)


@dataclass(frozen=True)
class EnteredFunction:
    """A function as it was entered."""

    moment: int
    node: str
    file: str
    function: str
    task: str
    call: tuple[str, str, str] | None
    """Caller, method and id of the request that it served."""


@dataclass(frozen=True)
class Visit:
    """The functions of one node for one call, or for its own work."""

    caller: str | None
    node: str
    title: str
    functions: Mapping[str, Sequence[str]]
    """By file, both in the order in which they were first entered."""


def main(arguments: list[str]) -> int:
    """Trace all walks; with `--count` only print the number of files of each."""
    os.environ["PYTHONPATH"] = os.pathsep.join((str(RECORDER), str(ROOT)))
    traced = {}
    for walk in WALKS:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["WALK_DIR"] = folder
            traced[walk] = asyncio.run(trace(walk, Path(folder)))
        print(f"{walk.title}: {len(list_files(traced[walk]))} files")
    if "--count" not in arguments:
        PAGE.write_text("\n".join(format_page(traced)))
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


async def trace(walk: Walk, folder: Path) -> list[EnteredFunction]:
    """Run one request to its end with every node recording; return the functions entered, in order."""
    async with launched(walk.deployment, ports="auto", tls=False) as running:
        async with running.client(walk.principal) as client:
            # The first requests load modules and open connections, which is no part of a walk.
            for _ in range(WARM_UP):
                await walk.request(client)
            # Their remaining work is no part of one either.
            await asyncio.sleep(SETTLE_S)
            await send_signal(running, signal.SIGUSR1, folder, "on")
            await walk.request(client)
            await send_signal(running, signal.SIGUSR2, folder, "json")
        nodes = {process.pid: process.name for process in running.processes.values()}
    steps = [
        EnteredFunction(
            moment, nodes[int(written.stem)], file, function, task, tuple(served) if served else None
        )
        for written in folder.glob("*.json")
        for moment, file, function, task, served in json.loads(written.read_text())
    ]
    return select_own_steps(walk, sorted(steps, key=lambda step: step.moment))


def select_own_steps(walk: Walk, steps: Sequence[EnteredFunction]) -> list[EnteredFunction]:
    """Select the steps of one request, and those of the workers that claim its job by themselves."""
    # The code that reads a request runs before its endpoint, in the same task.
    calls = {(step.node, step.task): step.call for step in reversed(steps) if step.call is not None}
    attributed = [replace(step, call=step.call or calls.get((step.node, step.task))) for step in steps]

    request_id = next(step.call[2] for step in steps if step.call is not None and step.call[1] == walk.method)

    def is_own(step: EnteredFunction) -> bool:
        if step.call is None:
            return step.node.rpartition("-")[0] in walk.workers or step.node in walk.workers
        return step.call[2] == request_id or step.call[0] in walk.workers

    # Callbacks without a task serve any call; some flush the log, for example.
    return [step for step in attributed if step.task and is_own(step)]


async def send_signal(running: Launched, number: signal.Signals, folder: Path, suffix: str) -> None:
    """Send a signal to every node and wait until each has acted on it."""
    pids = [process.pid for process in running.processes.values() if process.pid is not None]
    for pid in pids:
        os.kill(pid, number)
    async with asyncio.timeout(TIMEOUT_S):
        while not all((folder / f"{pid}.{suffix}").exists() for pid in pids):
            await asyncio.sleep(POLL_S)


def list_files(steps: Sequence[EnteredFunction]) -> list[str]:
    """List the files in the order in which they were first entered."""
    return list(dict.fromkeys(step.file for step in steps))


def group_visits(steps: Sequence[EnteredFunction]) -> list[Visit]:
    """Group the steps by node and call."""
    grouped: dict[tuple[str, str], tuple[str | None, dict[str, dict[str, None]]]] = {}
    for step in steps:
        caller, title = (step.call[0], step.call[1]) if step.call is not None else (None, OWN_WORK)
        functions = grouped.setdefault((step.node, title), (caller, {}))[1]
        functions.setdefault(step.file, {})[step.function.replace("<locals>.", "")] = None
    return [
        Visit(caller, node, title, {file: list(names) for file, names in functions.items()})
        for (node, title), (caller, functions) in grouped.items()
    ]


def format_page(traced: Mapping[Walk, Sequence[EnteredFunction]]) -> Iterator[str]:
    """Format the lines of the page."""
    yield "# Three walks through the code"
    yield ""
    yield "One request each, traced through running nodes: the functions of this project that were entered,"
    yield "in order, by the call that they served. `nox -s walks` writes this page."
    yield ""
    yield "| walk | deployment | from its submit to | files of ours |"
    yield "|---|---|---|---|"
    for walk, steps in traced.items():
        yield f"| {walk.title} | `{walk.deployment}` | {walk.end} | {len(list_files(steps))} |"
    for walk, steps in traced.items():
        visits = group_visits(steps)
        yield ""
        yield f"## {walk.title}"
        yield ""
        yield "```text"
        yield from draw_sequence(visits)
        yield "```"
        for number, visit in enumerate(visits, 1):
            yield ""
            yield f"**{number}. {visit.node}: {visit.title}**"
            yield ""
            yield "| file | functions |"
            yield "|---|---|"
            for file, names in visit.functions.items():
                yield f"| [{file}](../../{file}) | {', '.join(f'`{name}`' for name in names)} |"
    yield ""


def draw_sequence(visits: Sequence[Visit]) -> Iterator[str]:
    """Draw a sequence diagram as text: a column for each node, a line for each call, a star for own work."""
    nodes = list(dict.fromkeys(visit.node for visit in visits))
    columns = [CLIENT, *nodes]
    width = max(len(visit.title) for visit in visits) + 10
    yield "".join(name.ljust(width) for name in columns).rstrip()
    for number, visit in enumerate(visits, 1):
        line = [["|", *" " * (width - 1)] for _ in columns]
        cells = [cell for column in line for cell in column]
        end = columns.index(visit.node) * width
        label = f" {number} {visit.title} "
        if visit.caller in (None, visit.node.rpartition("-")[0] or visit.node):
            cells[end : end + 1 + len(label)] = ["*", *label]
        else:
            start = columns.index(visit.caller if visit.caller in nodes else CLIENT) * width
            low, high = sorted((start, end))
            cells[low + 1 : high] = label.center(high - low - 1, "-")
            cells[end - 1 if end > start else end + 1] = ">" if end > start else "<"
        yield "".join(cells).rstrip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
