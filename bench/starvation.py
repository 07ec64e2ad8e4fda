"""Benchmark `nox -s bench -- starvation`: waits of low-priority tasks under a flood of high-priority ones.

Time is compressed: thresholds of seconds, nine of ten tasks of high priority, a little more work than the
workers can do, and workers that do the same amount in every tick. A task of low priority must be started
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

from bench.peers.comparison import invoke
from bench.percentiles import LatencyHistogram
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
from runtime.launch.embedded.programs import EmbeddedError
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.node.assembly import Assembly
from runtime.stores.redis.codec import unpack_fields
from runtime.transport.in_process import LocalChannel
from runtime.world import RealWorld

MEDIUM_S, HIGH_S, CYCLE_S = 1.0, 2.0, 0.2
SHARE = 10
"""One of so many tasks is of low priority."""
OVERLOAD = 1.05
TICK_S = 0.05
"""Workers finish what they have and take as much again once in this time, which is the time of a run."""
_MICROSECOND = 1e-6


@dataclass(slots=True)
class WaitOutcome:
    """The waits of the tasks of one run."""

    waited: dict[str, list[float]] = field(default_factory=dict)
    """By submitted priority, the seconds from submission to start."""
    unstarted: dict[str, float] = field(default_factory=dict)
    """By priority, the wait of the oldest task that was not started."""
    promoted: int = 0
    longest_run: float = TICK_S
    """The longest time of a run, from one tick of the workers to the next."""
    longest_round: float = CYCLE_S
    """The longest time from one sweep of the promoter to the next; other load of the machine adds to it."""

    @property
    def longest(self) -> float:
        """The longest wait of a task of low priority, started or not."""
        return max((*self.waited.get("low", []), self.unstarted.get("low", 0.0)))

    @property
    def bound(self) -> float:
        """The limit of the longest wait: the threshold, a sweep interval of the promoter, and a run."""
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
            SYSTEM,
            deployment,
            deployment.nodes["api"],
            environ,
            self._world,
            _refuse_channel,
            stream=sys.stderr,
        )
        self._tasks = TasksServiceClient(LocalChannel(SYSTEM, self._parts.endpoints, "client"))
        self._manager = WorkersServiceClient(LocalChannel(SYSTEM, self._parts.endpoints, "worker"))
        self._capacity = max(1, round(per_s * TICK_S))
        self._url = url
        self._submitted = 0
        self._backlog = 0.0
        self._swept_at: float | None = None

    async def run(self, seconds: float) -> WaitOutcome:
        """Submit and run tasks for that many seconds; return the waits."""
        await self._parts.open()
        stopping = asyncio.Event()
        promoting = [
            asyncio.create_task(work)
            for work in self._parts.stores.sweepers("promoter", self._call("promoter"), stopping)
        ]
        try:
            return await self._run_flood(seconds)
        finally:
            stopping.set()
            await asyncio.gather(*promoting)
            await self._parts.close()

    async def _run_flood(self, seconds: float) -> WaitOutcome:
        outcome, call = WaitOutcome(), self._call("worker")
        request = RegisterWorkerRequest(capacity=self._capacity)
        worker = (await self._manager.register_worker(request, call)).worker_id
        last = self._world.monotonic()
        claimed: Sequence[AssignedTask] = ()
        # Ticks are counted, not seconds: on a machine that stalls all of them come, only later.
        for _ in range(round(seconds / TICK_S)):
            now = self._world.monotonic()
            outcome.longest_run = max(outcome.longest_run, now - last)
            self._watch_promoter(outcome)
            await self._submit()
            claimed = await self._work(worker, claimed, call)
            last = now
            await asyncio.sleep(max(0.0, TICK_S - (self._world.monotonic() - now)))
        with redis.Redis.from_url(self._url, decode_responses=True) as client:
            _read_waits(client, outcome)
        # The waits of unstarted tasks were read in the middle of a run and of a sweep interval.
        outcome.longest_run = max(outcome.longest_run, self._world.monotonic() - last)
        if self._swept_at is not None:
            open_round = self._world.now_ms() / 1000 - self._swept_at
            outcome.longest_round = max(outcome.longest_round, open_round)
        return outcome

    def _watch_promoter(self, outcome: WaitOutcome) -> None:
        labels = {"entity": "task", "change": "raise_medium"}
        at = self._parts.metrics.registry.get_sample_value("charter_sweep_last_run_seconds", labels)
        if at is not None and self._swept_at is not None:
            outcome.longest_round = max(outcome.longest_round, at - self._swept_at)
        self._swept_at = at

    async def _submit(self) -> None:
        """Submit a little more than the workers complete in a tick; every tenth is of low priority."""
        self._backlog += self._capacity * OVERLOAD
        count, self._backlog = int(self._backlog), self._backlog % 1
        numbers = range(self._submitted, self._submitted + count)
        self._submitted += count
        tasks = [
            SubmitTaskRequest(task_type="none", priority=LOW if number % SHARE == 0 else HIGH)
            for number in numbers
        ]
        if tasks:
            await self._tasks.submit_tasks(SubmitTasksRequest(tasks=tasks), self._call("client"))

    async def _work(self, worker: str, claimed: Sequence[AssignedTask], call: Call) -> Sequence[AssignedTask]:
        """Settle the tasks of the previous tick, and claim as many again."""
        results = [
            TaskResult(task_id=each.task_id, attempt=each.attempt, status=COMPLETED, result="null")
            for each in claimed
        ]
        request = ExchangeTasksRequest(worker_id=worker, results=results, available_capacity=self._capacity)
        return (await self._manager.exchange_tasks(request, call)).tasks

    def _call(self, caller: str) -> Call:
        return Call(world=self._world, log=self._parts.log, caller=caller)


def _refuse_channel(_parts: Assembly, component: str, service: str) -> Channel:
    raise LookupError(f"{component} wants {service} of another node")


def _read_waits(client: redis.Redis, outcome: WaitOutcome) -> None:
    """Read the times of all tasks from Redis."""
    seconds, micros = client.time()
    now = seconds + micros * _MICROSECOND
    names = list(client.scan_iter("tasks:*", count=5000, _type="hash"))
    with client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.hgetall(name)
        rows = pipe.execute()
    for row in map(unpack_fields, rows):
        priority, created, started = row["priority"], row["created_at"], row.get("started_at")
        outcome.promoted += priority != row["effective_priority"]
        if started:
            outcome.waited.setdefault(priority, []).append((int(started) - int(created)) * _MICROSECOND)
        else:
            age = now - int(created) * _MICROSECOND
            outcome.unstarted[priority] = max(outcome.unstarted.get(priority, 0.0), age)


def run_flood(seconds: float, per_s: int) -> WaitOutcome:
    """Run the flood once, on a Redis of its own."""
    with tempfile.TemporaryDirectory(prefix="charter-starvation-") as folder:
        server = EmbeddedRedis(Path(folder) / "redis")
        server.start()
        try:
            return asyncio.run(Flood(server.url, per_s).run(seconds))
        finally:
            server.remove()


def format_table(outcome: WaitOutcome) -> Table:
    """Format the waits as a table."""
    table = narrow_table("priority", "started", "p50 s", "p95 s", "p99 s", "longest", "oldest waiting")
    for priority, waited in sorted(outcome.waited.items()):
        times = LatencyHistogram()
        for each in waited:
            times.record(each)
        summary = times.summarize()
        table.add_row(
            priority,
            f"{len(waited):,}",
            *(f"{ms / 1000:.3f}" for ms in (summary.p50_ms, summary.p95_ms, summary.p99_ms)),
            f"{max(waited):.3f}",
            f"{outcome.unstarted.get(priority, 0.0):.3f}",
        )
    return table


@click.command("starvation")
@click.option("--seconds", type=float, default=20.0, show_default=True, help="Duration of the flood.")
@click.option(
    "--per-s", type=int, default=400, show_default=True, help="Tasks per second that the workers can run."
)
def starvation(seconds: float, per_s: int) -> int:
    """Measure how long tasks of low priority wait under a flood of high ones; exit 1 if too long."""
    console = Console()
    try:
        outcome = run_flood(seconds, per_s)
    except EmbeddedError as error:
        raise click.ClickException(str(error)) from error
    console.print(format_table(outcome))
    console.print(
        f"Of {SHARE} tasks {SHARE - 1} are of high priority, {OVERLOAD:.0%} of what workers can do; "
        f"{outcome.promoted:,} tasks were raised. The longest wait of a low one is {outcome.longest:.3f} s; "
        f"threshold {HIGH_S:g} s, longest round {outcome.longest_round:.3f} s (wanted: {CYCLE_S:g} s) and "
        f"longest run {outcome.longest_run:.3f} s make {outcome.bound:.3f} s.",
        highlight=False,
    )
    return int(outcome.longest > outcome.bound)


def main(arguments: list[str]) -> int:
    """Run the measurement."""
    return invoke(starvation, arguments)
