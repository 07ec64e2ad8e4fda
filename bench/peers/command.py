"""Benchmark `nox -s bench -- orchestrator`: the orchestrator against procrastinate, pgqueuer and pgbench."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.peers import contestants, ours
from bench.peers.ceiling import PgbenchCeiling
from bench.peers.comparison import add_options, describe_run, invoke, run_comparison
from bench.peers.findings import PeerFindings, RunSizes
from bench.peers.goals import evaluate_goals
from bench.peers.guards import measure_without_guards
from bench.peers.install import Environment, ensure_installed
from bench.peers.measurement import PostgresBench
from bench.peers.rounds import ComparisonRun, PrintLine
from bench.peers.server import PostgresServer, start_server

FULL = RunSizes(
    rounds=3,
    single=1500,
    crowded=6000,
    bulk=20_000,
    drain=20_000,
    drain_at_most_s=15.0,
    pickups=100,
    aged=1_000_000,
    turns=3,
)
QUICK = RunSizes(
    rounds=1,
    single=300,
    crowded=2000,
    bulk=10_000,
    drain=5_000,
    drain_at_most_s=3.0,
    pickups=40,
    aged=100_000,
)


@click.command("orchestrator")
@add_options
@click.option("--aged", type=int, help="Finished jobs in the tables of the second half.")
def compare(quick: bool, rounds: int | None, aged: int | None, out: Path | None) -> int:
    """Measure the orchestrator and its peers on one PostgreSQL; exit code 1 if a goal is missed."""
    sizes = (QUICK if quick else FULL).with_sizes(rounds=rounds, aged=aged)
    return run_comparison(partial(_measure_all, sizes, quick), out)


def _measure_all(sizes: RunSizes, quick: bool, folder: Path, print_line: PrintLine) -> PeerFindings:
    run_facts = describe_run(ours.SYSTEM, sizes, quick=quick)
    peers = ensure_installed()
    with start_server() as server:
        results = asyncio.run(_measure_halves(server, peers, folder, sizes, print_line))
        versions = {"postgresql": server.version(), **peers.versions()}
    return PeerFindings(**run_facts, **results, versions=versions, goals=evaluate_goals(results["halves"]))


async def _measure_halves(
    server: PostgresServer, peers: Environment, folder: Path, sizes: RunSizes, print_line: PrintLine
) -> dict[str, Any]:
    bench = PostgresBench(server, folder)
    queues = [
        contestants.create_procrastinate(server, peers),
        contestants.create_pgqueuer(server, peers),
        await ours.create_queue(server),
    ]
    # A drain of the fastest takes two seconds, and repeats differ by a quarter.
    close = (contestants.PGQUEUER_100, ours.SLOTS[200])
    run = ComparisonRun(bench, queues, PgbenchCeiling(server), sizes, print_line, close_drains=close)
    empty = await run.measure_half(aged=False)
    guards = await measure_without_guards(bench, sizes, print_line)
    run.age()
    return {"halves": {"empty": empty, "aged": await run.measure_half(aged=True)}, "guards": guards}


def main(arguments: list[str]) -> int:
    """Run the comparison."""
    return invoke(compare, arguments)
