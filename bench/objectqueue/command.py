"""Benchmark `nox -s bench -- objectqueue`: claims, rates against bare requests, their price, and polls."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from bench.designs.manifest import describe_commit
from bench.machine import describe_host
from bench.objectqueue import measures
from bench.objectqueue.findings import KINDS_SHOWN, OF_BARE, ObjectQueueFindings, Polls, Rates, price_requests
from bench.objectqueue.queue_bench import QueueBench
from bench.peers.comparison import RESULTS, invoke
from bench.report.terminal import narrow_table

MODES = ("index-only", "hybrid")
FEW, MANY = 10, 100_000
Print = Callable[[str], None]


@click.command("objectqueue")
@click.option("--quick", is_flag=True, help="A few minutes: less of everything, 2,000 finished tasks.")
@click.option("--past", type=click.IntRange(min=1), help="Finished tasks of the large queue.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The folder for the findings.")
def measure(quick: bool, past: int | None, out: Path | None) -> int:
    """Measure the queue; exit code 1 if a goal is missed."""
    console, machine = Console(), describe_host()
    begun = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        many = past or (MANY // 50 if quick else MANY)
        findings = asyncio.run(_measure_all(Path(folder), begun, machine, quick, many, console.print))
    where = out or RESULTS / begun
    where.mkdir(parents=True, exist_ok=True)
    text = findings.model_dump_json(indent=1) + "\n"
    (where / "objectqueue.json").write_text(text)
    if not quick:
        (RESULTS / "objectqueue.json").write_text(text)
    _show(findings, console)
    console.print(f"Findings: {where / 'objectqueue.json'}", soft_wrap=True, highlight=False)
    return int(bool(findings.missed))


async def _measure_all(
    folder: Path, begun: str, machine: dict[str, object], quick: bool, many: int, print_line: Print
) -> ObjectQueueFindings:
    async with QueueBench(folder) as bench:
        took = sorted(await measures.measure_claims(bench, 200 if quick else 1000))
        print_line(f"claims: p99 {1000 * took[int(0.99 * len(took))]:.1f} ms")
        rates = [
            await _measure_rates(bench, at_once, 2 if quick else 3, 150 if quick else 300, print_line)
            for at_once in (1, 8, 32)
        ]
        requests, idle = {}, {}
        for mode in MODES:
            requests[mode] = await measures.count_requests_per_task(bench, 150 if quick else 300, mode)
            print_line(f"requests of a task, {mode}: {_format_requests(requests[mode])}")
            idle[mode] = await measures.count_idle_requests(bench, 20 if quick else 60, mode)
            print_line(f"requests of an idle hour, {mode}: {_format_requests(idle[mode], 0)}")
        polls = await _measure_polls(bench, many, 3, print_line)
    return ObjectQueueFindings(
        stamp=begun,
        commit=describe_commit(),
        quick=quick,
        machine=machine,
        claim_p50_ms=round(1000 * statistics.median(took), 2),
        claim_p99_ms=round(1000 * took[int(0.99 * len(took))], 2),
        rates=rates,
        requests_per_task=requests,
        idle_per_hour=idle,
        polls=polls,
    )


async def _measure_rates(
    bench: QueueBench, at_once: int, rounds: int, count: int, print_line: Print
) -> Rates:
    """Measure tasks, bare PUTs and the same requests by hand, in turns, so that other load affects all."""
    rows = []
    for _ in range(rounds):
        puts = await measures.measure_bare_puts(bench, count, at_once)
        tasks = await measures.measure_tasks(bench, count, at_once)
        hand = await measures.measure_by_hand(bench, count, at_once)
        rows.append((tasks, puts, hand))
    found = Rates(
        at_once=at_once,
        tasks_per_s=[round(tasks.per_s, 1) for tasks, _, _ in rows],
        puts_per_s=[round(puts.per_s, 1) for _, puts, _ in rows],
        by_hand_per_s=[round(hand.per_s, 1) for _, _, hand in rows],
        worker_cpu_ms=round(statistics.median(tasks.own_cpu_ms for tasks, _, _ in rows), 2),
        store_cpu_ms=round(statistics.median(tasks.store_cpu_ms for tasks, _, _ in rows), 2),
        put_store_cpu_ms=round(statistics.median(puts.store_cpu_ms for _, puts, _ in rows), 2),
        by_hand_store_cpu_ms=round(statistics.median(hand.store_cpu_ms for _, _, hand in rows), 2),
    )
    print_line(
        f"{at_once} at a time: {statistics.median(found.tasks_per_s):.0f} tasks/s, {found.of_puts:.2f} of "
        f"the rate of bare PUTs, {found.of_by_hand:.2f} of the same by hand; CPU of a task "
        f"{found.worker_cpu_ms:g} ms + {found.store_cpu_ms:g} ms of the store"
    )
    return found


async def _measure_polls(bench: QueueBench, many: int, rounds: int, print_line: Print) -> list[Polls]:
    """Measure polls of both queues in turns, after a sweep by a monitor, as in every running system."""
    few, past = measures.FinishedTasks(bench, FEW), measures.FinishedTasks(bench, many)
    for each in (past, few):
        await each.fill()
    for each in (past, few):
        await each.sweep()
    found = []
    for mode in MODES:
        rows = [(await few.poll(2, mode), await past.poll(2, mode)) for _ in range(rounds)]
        polls = Polls(
            mode=mode,
            few=FEW,
            many=many,
            few_cpu_ms=[round(left[0], 2) for left, _ in rows],
            many_cpu_ms=[round(right[0], 2) for _, right in rows],
            few_requests=round(statistics.median(left[1] for left, _ in rows), 2),
            many_requests=round(statistics.median(right[1] for _, right in rows), 2),
        )
        print_line(
            f"a poll, {mode}: {polls.ratio:.2f} times as much CPU after {many:,} tasks as after {FEW}, "
            f"{polls.many_requests:g} requests and {polls.few_requests:g}"
        )
        found.append(polls)
    return found


def _format_requests(counted: dict[str, float], digits: int = 2) -> str:
    return ", ".join(f"{kind} {counted[kind]:,.{digits}f}" for kind in KINDS_SHOWN)


def _show(findings: ObjectQueueFindings, console: Console) -> None:
    table = narrow_table("at a time", "tasks/s", "bare PUTs/s", f"of PUTs (>= {OF_BARE:g})", "of it by hand")
    for each in findings.rates:
        table.add_row(
            str(each.at_once),
            f"{statistics.median(each.tasks_per_s):,.0f}",
            f"{statistics.median(each.puts_per_s):,.0f}",
            f"{each.of_puts:.2f}",
            f"{each.of_by_hand:.2f}",
        )
    console.print(table)
    for mode in MODES:
        million = price_requests(findings.requests_per_task[mode]) * 1e6
        hour = price_requests(findings.idle_per_hour[mode])
        console.print(f"{mode}: ${million:.2f} for a million tasks, ${hour:.4f} for an idle hour of a worker")
    console.print(f"Missed: {'; '.join(findings.missed)}" if findings.missed else "Every goal is met.")


def main(arguments: list[str]) -> int:
    """Run the command line."""
    return invoke(measure, arguments)
