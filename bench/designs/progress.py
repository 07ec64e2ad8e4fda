"""Progress of a benchmark: a live line on a terminal, a line for each finished step elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from bench.designs.results import StepResult
from bench.generator.fleet import Tick
from bench.percentiles import LatencyHistogram
from bench.workload import Load, Workload

_LAUNCH_S = 3.0
_BETWEEN_S = 1.0


def estimate_seconds(workload: Workload, designs: int) -> float:
    """Estimate the seconds of all launches, if no backlog has to drain."""
    loads = sum(load.warm_up_s + load.run_s + _BETWEEN_S for load in workload.loads())
    return (loads + _LAUNCH_S) * designs * workload.repeats


class ProgressDisplay:
    """Display of the progress and the time that is left."""

    def __init__(
        self, console: Console, planned_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._planned = planned_s
        self._clock = clock
        self._began = clock()
        self._done_s = 0.0
        self._where = ""
        self._load: Load | None = None
        self._so_far = LatencyHistogram()
        self._live: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            columns = TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[text]}")
            self._live = Progress(*columns, console=self._console, transient=True)
            self._live.start()
            self._task = self._live.add_task("starting", total=self._planned, text="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def advance(self, seconds: float) -> None:
        """Count that many planned seconds as done."""
        self._done_s += seconds

    def start_phase(self, where: str) -> None:
        """Show the next phase."""
        self._where = where
        self._show("")
        if self._live is None:
            self._console.print(f"{where}; about {self.estimate_left_s():.0f} s left", highlight=False)

    def show_tick(self, load: Load, tick: Tick) -> None:
        """Show the results of the last half second."""
        if load is not self._load:
            self._load, self._so_far = load, LatencyHistogram()
        self._so_far.add(tick.times)
        p50, p99 = self._so_far.percentiles((50, 99))
        rate = tick.calls / 0.5
        self._show(f"{load.title}  {rate:,.0f}/s  p50 {p50:.1f}  p99 {p99:.1f} ms", tick.seconds)

    def finish_step(self, result: StepResult) -> None:
        """Print the result of a step."""
        self._done_s += result.load.warm_up_s + result.load.run_s + _BETWEEN_S
        latency, jobs = result.primary.latency, result.jobs
        failed = sum(count for codes in result.primary.failed.values() for count in codes.values())
        self._console.print(
            f"  {result.load.title}: {result.primary.per_s:,.0f} requests/s, "
            f"p50 {latency.p50_ms:.1f} p95 {latency.p95_ms:.1f} p99 {latency.p99_ms:.1f} ms; "
            f"{jobs.done_per_s:,.0f} jobs/s, end to end p50 {jobs.end_to_end.p50_ms:.0f} "
            f"p99 {jobs.end_to_end.p99_ms:.0f} ms"
            + (f"; clients {result.client_cpu_share:.0%} of the CPU" if result.nodes else "")
            + (f"; {failed} failed" if failed else ""),
            highlight=False,
            soft_wrap=True,
        )
        self._show("")

    def estimate_left_s(self) -> float:
        """Estimate the seconds that are left, at the speed so far."""
        spent = self._clock() - self._began
        slowdown = max(spent / self._done_s, 1.0) if self._done_s > _LAUNCH_S else 1.0
        return max(0.0, (self._planned - self._done_s) * slowdown)

    def _show(self, text: str, within_s: float = 0.0) -> None:
        if self._live is not None:
            self._live.update(
                self._task,
                description=self._where,
                completed=self._done_s + within_s,
                text=f"{text}  {self.estimate_left_s():.0f} s left",
            )
