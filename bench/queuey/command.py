"""`nox -s bench -- queuey`: the queue beside one by hand, its commits, its past, and what a run costs."""

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
from bench.queuey.findings import Compared, Findings, Goal
from bench.queuey.finished_jobs import finish
from bench.queuey.page import write
from bench.queuey.processes import Rate, Served, bare, ours
from bench.report.terminal import narrow_table

CROWD = 64
CLIENTS = (1, 8, CROWD)
FEW, MANY = 100, 1_000_000
Tell = Callable[[str], None]


@click.command("queuey")
@click.option("--quick", is_flag=True, help="A minute or two: less of everything, a past of 100,000 jobs.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Where to write the report.")
def measure(quick: bool, out: Path | None) -> int:
    """Measure the queue; 1 if a goal is missed."""
    console = Console()
    machine = describe_host()
    begun = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    rounds, count = (3, 150) if quick else (7, 400)
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        found = _measured(Path(folder), rounds, count, MANY // 10 if quick else MANY, console.print)
    findings = Findings(
        stamp=begun,
        commit=describe_commit(),
        quick=quick,
        machine=machine,
        comparisons=found[0],
        figures=found[1],
    )
    where = out or RESULTS / begun
    where.mkdir(parents=True, exist_ok=True)
    text = findings.model_dump_json(indent=1) + "\n"
    (where / "queuey.json").write_text(text)
    if not quick:
        (RESULTS / "queuey.json").write_text(text)
    _show(findings, console)
    console.print(f"Report: {write(findings, where)}", soft_wrap=True, highlight=False)
    return int(bool(findings.missed))


def _measured(
    folder: Path, rounds: int, count: int, many: int, tell: Tell
) -> tuple[dict[str, Compared], dict[str, float]]:
    comparisons = {
        **_pairs(folder, rounds, count, tell),
        "creates": _creates(folder, rounds, count, tell),
        "past": _past(folder, rounds, count // 2, many, tell),
    }
    figures = asyncio.run(runs.instances(count))
    tell(f"an instance of a binary: {figures['instance_p50_ms']:.2f} ms")
    figures |= {f"noop_jobs_{name}": value for name, value in asyncio.run(runs.jobs(count)).items()}
    tell(f"jobs that do nothing, by one runner: {figures['noop_jobs_per_s']:.0f}/s")
    return comparisons, {name: round(value, 3) for name, value in figures.items()}


def _pairs(folder: Path, rounds: int, count: int, tell: Tell) -> dict[str, Compared]:
    """Jobs taken and completed, by several numbers of clients."""
    found = {}
    with bare(folder / "bare.db") as theirs, ours(folder / "ours.db") as own:
        for served in (theirs, own):
            served.measured("create", count * rounds * len(CLIENTS), CROWD)
        for clients in CLIENTS:
            title = f"taken and completed, {clients} at a time"
            goal = Goal(at_least=0.8)
            row = _in_turns(theirs, own, "pair", count, clients, rounds)
            found[f"pairs-{clients}"] = _compared(title, "Starlette and sqlite3", "ours", row, goal, tell)
    return found


def _creates(folder: Path, rounds: int, count: int, tell: Tell) -> Compared:
    """Creations by many at once: a commit for what waits, against a commit for each."""
    with ours(folder / "alone.db", together=False) as alone, ours(folder / "together.db") as together:
        row = _in_turns(alone, together, "create", count * 4, CROWD, rounds)
    title = f"created, {CROWD} at a time"
    return _compared(title, "a commit for each", "one for all that wait", row, Goal(at_least=3.0), tell)


def _past(folder: Path, rounds: int, count: int, many: int, tell: Tell) -> Compared:
    """How long a claim takes, with few and with many jobs that have ended."""
    with ExitStack() as stack:
        sides = []
        for finished in (FEW, many):
            file = folder / f"past-{finished}.db"
            with ours(file):
                pass
            finish(file, finished)
            served = stack.enter_context(ours(file))
            served.measured("create", count * rounds, CROWD)
            sides.append(served)
        row = _in_turns(sides[0], sides[1], "claim", count, 1, rounds)
    names = (f"{FEW} finished jobs", f"{many:,} finished jobs")
    return _compared("taken, 1 at a time", *names, row, Goal(at_least=0.8), tell)


def _in_turns(
    first: Served, second: Served, what: str, count: int, clients: int, rounds: int
) -> list[tuple[Rate, Rate]]:
    """Both in turns, and each in turn the first: what a disk is busy with goes on for a while."""
    found = []
    for number in range(rounds):
        order = (first, second) if number % 2 == 0 else (second, first)
        seen = {id(served): served.measured(what, count, clients) for served in order}
        found.append((seen[id(first)], seen[id(second)]))
    return found


def _compared(
    title: str, first: str, second: str, rows: Sequence[tuple[Rate, Rate]], goal: Goal, tell: Tell
) -> Compared:
    found = Compared(
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
    tell(f"{title}: {second} {found.ratio:.2f} times {first}")
    return found


def _show(findings: Findings, console: Console) -> None:
    columns = ("their/s", "our/s", "ratio", "goal", "CPU µs", "ours", "p50 ms", "ours")
    table = narrow_table("what, and against what", *columns)
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
    """Run it."""
    return invoke(measure, arguments)
