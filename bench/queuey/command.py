"""Benchmark `nox -s bench -- queuey`: rates against a hand-written queue, batched commits, and runs."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console

from bench.designs.manifest import describe_commit
from bench.machine import describe_host
from bench.peers.comparison import RESULTS, invoke
from bench.queuey import runs
from bench.queuey.findings import Comparison, QueueyFindings, RatioGoal
from bench.queuey.finished_jobs import insert_finished_jobs
from bench.queuey.page import write_page
from bench.queuey.processes import QueueServer, RequestRate, start_bare, start_ours
from bench.report.terminal import narrow_table

CROWD = 64
CLIENTS = (1, 8, CROWD)
FEW, MANY = 100, 1_000_000
PrintLine = Callable[[str], None]


@click.command("queuey")
@click.option("--quick", is_flag=True, help="A minute or two: less of everything, 100,000 finished jobs.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The folder for the report.")
def measure(quick: bool, out: Path | None) -> int:
    """Measure the queue; exit code 1 if a goal is missed."""
    console = Console()
    machine = describe_host()
    begun = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    rounds, count = (3, 150) if quick else (7, 400)
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        results = _measure_all(Path(folder), rounds, count, MANY // 10 if quick else MANY, console.print)
    findings = QueueyFindings(
        stamp=begun,
        commit=describe_commit(),
        quick=quick,
        machine=machine,
        comparisons=results[0],
        figures=results[1],
    )
    where = out or RESULTS / begun
    where.mkdir(parents=True, exist_ok=True)
    text = findings.model_dump_json(indent=1) + "\n"
    (where / "queuey.json").write_text(text)
    if not quick:
        (RESULTS / "queuey.json").write_text(text)
    _show(findings, console)
    console.print(f"Report: {write_page(findings, where)}", soft_wrap=True, highlight=False)
    return int(bool(findings.missed))


def _measure_all(
    folder: Path, rounds: int, count: int, many: int, print_line: PrintLine
) -> tuple[dict[str, Comparison], dict[str, float]]:
    comparisons = {
        **_measure_pairs(folder, rounds, count, print_line),
        "creates": _measure_creates(folder, rounds, count, print_line),
        "past": _measure_claims(folder, rounds, count // 2, many, print_line),
    }
    figures = asyncio.run(runs.measure_instances(count))
    print_line(f"an instance of a binary: {figures['instance_p50_ms']:.2f} ms")
    figures |= {f"noop_jobs_{name}": value for name, value in asyncio.run(runs.measure_jobs(count)).items()}
    print_line(f"jobs that do nothing, by one runner: {figures['noop_jobs_per_s']:.0f}/s")
    return comparisons, {name: round(value, 3) for name, value in figures.items()}


def _measure_pairs(folder: Path, rounds: int, count: int, print_line: PrintLine) -> dict[str, Comparison]:
    """Measure jobs that are claimed and completed, with several numbers of clients."""
    results = {}
    with start_bare(folder / "bare.db") as theirs, start_ours(folder / "ours.db") as own:
        for server in (theirs, own):
            server.measure("create", count * rounds * len(CLIENTS), CROWD)
        for clients in CLIENTS:
            title = f"taken and completed, {clients} at a time"
            goal = RatioGoal(at_least=0.8)
            row = _measure_in_turns(theirs, own, "pair", count, clients, rounds)
            results[f"pairs-{clients}"] = _compare(
                title, "Starlette and sqlite3", "ours", row, goal, print_line
            )
    return results


def _measure_creates(folder: Path, rounds: int, count: int, print_line: PrintLine) -> Comparison:
    """Measure concurrent creates: one commit for a batch, against a commit for each."""
    with (
        start_ours(folder / "alone.db", batched=False) as unbatched,
        start_ours(folder / "together.db") as batched,
    ):
        row = _measure_in_turns(unbatched, batched, "create", count * 4, CROWD, rounds)
    title = f"created, {CROWD} at a time"
    return _compare(
        title, "a commit for each", "one for all that wait", row, RatioGoal(at_least=3.0), print_line
    )


def _measure_claims(folder: Path, rounds: int, count: int, many: int, print_line: PrintLine) -> Comparison:
    """Measure claims with few and with many finished jobs."""
    with ExitStack() as stack:
        sides = []
        for finished in (FEW, many):
            file = folder / f"past-{finished}.db"
            with start_ours(file):
                pass
            insert_finished_jobs(file, finished)
            server = stack.enter_context(start_ours(file))
            server.measure("create", count * rounds, CROWD)
            sides.append(server)
        row = _measure_in_turns(sides[0], sides[1], "claim", count, 1, rounds)
    names = (f"{FEW} finished jobs", f"{many:,} finished jobs")
    return _compare("taken, 1 at a time", *names, row, RatioGoal(at_least=0.8), print_line)


def _measure_in_turns(
    first: QueueServer, second: QueueServer, work: str, count: int, clients: int, rounds: int
) -> list[tuple[RequestRate, RequestRate]]:
    """Measure both in turns, with alternating order, because a disk stays busy for a while."""
    results = []
    for number in range(rounds):
        order = (first, second) if number % 2 == 0 else (second, first)
        rates = {id(server): server.measure(work, count, clients) for server in order}
        results.append((rates[id(first)], rates[id(second)]))
    return results


def _compare(
    title: str,
    first: str,
    second: str,
    rows: Sequence[tuple[RequestRate, RequestRate]],
    goal: RatioGoal,
    print_line: PrintLine,
) -> Comparison:
    results = Comparison(
        title=title,
        first=first,
        second=second,
        first_per_s=[round(left.per_s, 1) for left, _ in rows],
        second_per_s=[round(right.per_s, 1) for _, right in rows],
        first_cpu_us=round(statistics.median(left.cpu_us for left, _ in rows), 1),
        second_cpu_us=round(statistics.median(right.cpu_us for _, right in rows), 1),
        first_p50_ms=round(statistics.median(left.p50_ms for left, _ in rows), 2),
        second_p50_ms=round(statistics.median(right.p50_ms for _, right in rows), 2),
        goal=goal,
    )
    print_line(f"{title}: {second} {results.ratio:.2f} times {first}")
    return results


def _show(findings: QueueyFindings, console: Console) -> None:
    columns = ("their/s", "our/s", "ratio", "goal", "CPU µs", "ours", "p50 ms", "ours")
    table = narrow_table("comparison", *columns)
    for each in findings.comparisons.values():
        table.add_row(
            f"{each.title}: {each.second} against {each.first}",
            *(f"{statistics.median(rates):,.0f}" for rates in (each.first_per_s, each.second_per_s)),
            *(f"{each.ratio:.2f}", f">= {each.goal.at_least:g}"),
            *(f"{cost:,.0f}" for cost in (each.first_cpu_us, each.second_cpu_us)),
            *(f"{times:.1f}" for times in (each.first_p50_ms, each.second_p50_ms)),
        )
    console.print(table)
    for name, value in findings.figures.items():
        console.print(f"{name}: {value:g}", highlight=False)
    console.print(f"Missed: {'; '.join(findings.missed)}" if findings.missed else "Every goal is met.")


def main(arguments: list[str]) -> int:
    """Run the command line."""
    return invoke(measure, arguments)
