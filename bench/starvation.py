"""`nox -s bench -- starvation`: how long tasks of low priority wait under a flood of high ones.

In compressed time: thresholds of seconds, nine of ten tasks of high priority, a little more work than the
workers can do, and workers that do the same amount in every moment. A task of low priority must be started
within the threshold that makes it high, one round of the promoter, and the time of one run.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import redis
from rich.console import Console
from rich.table import Table

from bench.peers.outcome import invoked
from bench.percentiles import Times
from bench.report.terminal import narrow_table
from generated.priority.clients import TasksServiceClient, WorkersServiceClient
from generated.priority.messages import (
    COMPLETED,
    HIGH,
    LOW,
    AssignedTask,
    ExchangeTasksRequest,
    RegisterWorkerRequest,
    SubmitTaskRequest,
    SubmitTasksRequest,
    TaskResult,
)
from generated.priority.system import SYSTEM
from runtime.call import Call, Channel
from runtime.embedded.programs import EmbeddedError
from runtime.embedded.redis import EmbeddedRedis
from runtime.node.assembly import Assembly
from runtime.stores.redis.given import unpacked
from runtime.transport.in_process import LocalChannel
from runtime.world import RealWorld

MEDIUM_S, HIGH_S, CYCLE_S = 1.0, 2.0, 0.2
SHARE = 10
"""One of so many tasks is of low priority."""
OVERLOAD = 1.05
TICK_S = 0.05
"""Workers finish what they have and take as much again once in this time, which is the time of a run."""
_MICRO = 1e-6


@dataclass(slots=True)
class Outcome:
    """What became of the tasks of one run."""

    waited: dict[str, list[float]] = field(default_factory=dict)
    """By the priority that was asked for, the seconds from submission to start."""
    unstarted: dict[str, float] = field(default_factory=dict)
    """By priority, how long the oldest task has waited that was not started."""
    promoted: int = 0
    longest_run: float = TICK_S
    """The longest time of a run, from one moment of the workers to the next."""
    longest_round: float = CYCLE_S
    """The longest time from one look of the promoter to the next. The machine may have other things to do."""

    @property
    def longest(self) -> float:
        """The longest wait of a task of low priority, started or not."""
        return max((*self.waited.get("low", []), self.unstarted.get("low", 0.0)))

    @property
    def bound(self) -> float:
        """What it must stay under: the threshold, a round of the promoter, and the time of a run."""
        return HIGH_S + self.longest_round + self.longest_run


class Flood:
    """A queue of its own, a producer, workers of steady capacity, and a promoter."""

    def __init__(self, url: str, per_s: int) -> None:
        self._world, deployment = RealWorld(), SYSTEM.deployments["local"]
        settings = {
            "LOW_TO_MEDIUM_SECONDS": str(MEDIUM_S),
            "MEDIUM_TO_HIGH_SECONDS": str(HIGH_S),
            "PROMOTION_INTERVAL_SECONDS": str(CYCLE_S),
            # No history is written here, and none is read.
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
            "LOG_LEVEL": "ERROR",
        }
        environ = {"REDIS_URL": url, **settings}
        self._parts = Assembly(
            SYSTEM, deployment, deployment.nodes["api"], environ, self._world, _nobody, stream=sys.stderr
        )
        self._tasks = TasksServiceClient(LocalChannel(SYSTEM, self._parts.endpoints, "client"))
        self._manager = WorkersServiceClient(LocalChannel(SYSTEM, self._parts.endpoints, "worker"))
        self._capacity = max(1, round(per_s * TICK_S))
        self._url = url
        self._submitted = 0
        self._owed = 0.0
        self._looked: float | None = None

    async def run(self, seconds: float) -> Outcome:
        """Submits and works for so long; what was seen."""
        await self._parts.open()
        stopping = asyncio.Event()
        promoting = [
            asyncio.create_task(work)
            for work in self._parts.stores.sweepers("promoter", self._call("promoter"), stopping)
        ]
        try:
            return await self._flooded(seconds)
        finally:
            stopping.set()
            await asyncio.gather(*promoting)
            await self._parts.close()

    async def _flooded(self, seconds: float) -> Outcome:
        outcome, call = Outcome(), self._call("worker")
        request = RegisterWorkerRequest(capacity=self._capacity)
        worker = (await self._manager.register_worker(request, call)).worker_id
        last = self._world.monotonic()
        held: Sequence[AssignedTask] = ()
        # Moments are counted, not seconds: on a machine that stalls all of them come, only later.
        for _ in range(round(seconds / TICK_S)):
            now = self._world.monotonic()
            outcome.longest_run = max(outcome.longest_run, now - last)
            self._watch_promoter(outcome)
            await self._submit()
            held = await self._work(worker, held, call)
            last = now
            await asyncio.sleep(max(0.0, TICK_S - (self._world.monotonic() - now)))
        with redis.Redis.from_url(self._url, decode_responses=True) as there:
            _read(there, outcome)
        # What still waited was read in the middle of a run and of a round of the promoter.
        outcome.longest_run = max(outcome.longest_run, self._world.monotonic() - last)
        if self._looked is not None:
            open_round = self._world.now_ms() / 1000 - self._looked
            outcome.longest_round = max(outcome.longest_round, open_round)
        return outcome

    def _watch_promoter(self, outcome: Outcome) -> None:
        labels = {"entity": "task", "change": "raise_medium"}
        at = self._parts.metrics.registry.get_sample_value("charter_sweep_last_run_seconds", labels)
        if at is not None and self._looked is not None:
            outcome.longest_round = max(outcome.longest_round, at - self._looked)
        self._looked = at

    async def _submit(self) -> None:
        """A little more than workers take in the same moment; every tenth is of low priority."""
        self._owed += self._capacity * OVERLOAD
        count, self._owed = int(self._owed), self._owed % 1
        numbers = range(self._submitted, self._submitted + count)
        self._submitted += count
        tasks = [
            SubmitTaskRequest(task_type="none", priority=LOW if number % SHARE == 0 else HIGH)
            for number in numbers
        ]
        if tasks:
            await self._tasks.submit_tasks(SubmitTasksRequest(tasks=tasks), self._call("client"))

    async def _work(self, worker: str, held: Sequence[AssignedTask], call: Call) -> Sequence[AssignedTask]:
        """Ends what was begun a moment ago, and begins as much again."""
        results = [
            TaskResult(task_id=each.task_id, attempt=each.attempt, status=COMPLETED, result="null")
            for each in held
        ]
        request = ExchangeTasksRequest(worker_id=worker, results=results, available_capacity=self._capacity)
        return (await self._manager.exchange_tasks(request, call)).tasks

    def _call(self, caller: str) -> Call:
        return Call(world=self._world, log=self._parts.log, caller=caller)


def _nobody(_parts: Assembly, component: str, service: str) -> Channel:
    raise LookupError(f"{component} wants {service} of another node")


def _read(there: redis.Redis, outcome: Outcome) -> None:
    """The times of all tasks, as Redis has them."""
    seconds, micros = there.time()
    now = seconds + micros * _MICRO
    names = list(there.scan_iter("tasks:*", count=5000, _type="hash"))
    with there.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.hgetall(name)
        rows = pipe.execute()
    for row in map(unpacked, rows):
        priority, created, started = row["priority"], row["created_at"], row.get("started_at")
        outcome.promoted += priority != row["effective_priority"]
        if started:
            outcome.waited.setdefault(priority, []).append((int(started) - int(created)) * _MICRO)
        else:
            age = now - int(created) * _MICRO
            outcome.unstarted[priority] = max(outcome.unstarted.get(priority, 0.0), age)


def flooded(seconds: float, per_s: int) -> Outcome:
    """One run on a Redis of its own."""
    with tempfile.TemporaryDirectory(prefix="charter-starvation-") as folder:
        server = EmbeddedRedis(Path(folder) / "redis")
        server.start()
        try:
            return asyncio.run(Flood(server.url, per_s).run(seconds))
        finally:
            server.remove()


def table(outcome: Outcome) -> Table:
    """How long tasks waited."""
    found = narrow_table("priority", "started", "p50 s", "p95 s", "p99 s", "longest", "oldest waiting")
    for priority, waited in sorted(outcome.waited.items()):
        times = Times()
        for each in waited:
            times.record(each)
        told = times.summary()
        found.add_row(
            priority,
            f"{len(waited):,}",
            *(f"{ms / 1000:.3f}" for ms in (told.p50_ms, told.p95_ms, told.p99_ms)),
            f"{max(waited):.3f}",
            f"{outcome.unstarted.get(priority, 0.0):.3f}",
        )
    return found


@click.command("starvation")
@click.option("--seconds", type=float, default=20.0, show_default=True, help="How long the flood lasts.")
@click.option("--per-s", type=int, default=400, show_default=True, help="Tasks a second that workers can do.")
def starvation(seconds: float, per_s: int) -> int:
    """Measures how long tasks of low priority wait under a flood of high ones; 1 if it is too long."""
    console = Console()
    try:
        outcome = flooded(seconds, per_s)
    except EmbeddedError as error:
        raise click.ClickException(str(error)) from error
    console.print(table(outcome))
    console.print(
        f"Of {SHARE} tasks {SHARE - 1} are of high priority, {OVERLOAD:.0%} of what workers can do; "
        f"{outcome.promoted:,} tasks were raised. The longest wait of a low one is {outcome.longest:.3f} s; "
        f"threshold {HIGH_S:g} s, longest round {outcome.longest_round:.3f} s (wanted: {CYCLE_S:g} s) and "
        f"longest run {outcome.longest_run:.3f} s make {outcome.bound:.3f} s.",
        highlight=False,
    )
    return int(outcome.longest > outcome.bound)


def main(arguments: list[str]) -> int:
    """Runs the measurement."""
    return invoked(starvation, arguments)
