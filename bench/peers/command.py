"""`nox -s bench -- orchestrator`: the orchestrator beside procrastinate, pgqueuer and pgbench."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.peers import contestants, ours
from bench.peers.bare import Bare
from bench.peers.findings import Findings, Sizes
from bench.peers.goals import goals
from bench.peers.guards import without_guards
from bench.peers.install import Environment, installed
from bench.peers.measure import Bench
from bench.peers.outcome import circumstances, compared, invoked, options
from bench.peers.run import Run, Tell
from bench.peers.server import Server, serving

FULL = Sizes(
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
QUICK = Sizes(
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
@options
@click.option("--aged", type=int, help="Finished jobs in the tables of the second half.")
def compare(quick: bool, rounds: int | None, aged: int | None, out: Path | None) -> int:
    """Measure the orchestrator and its peers on one PostgreSQL; 1 if a goal is missed."""
    sizes = (QUICK if quick else FULL).but(rounds=rounds, aged=aged)
    return compared(partial(_measured, sizes, quick), out)


def _measured(sizes: Sizes, quick: bool, folder: Path, tell: Tell) -> Findings:
    about = circumstances(ours.SYSTEM, sizes, quick=quick)
    peers = installed()
    with serving() as server:
        found = asyncio.run(_halves(server, peers, folder, sizes, tell))
        versions = {"postgresql": server.version(), **peers.versions()}
    return Findings(**about, **found, versions=versions, goals=goals(found["halves"]))


async def _halves(
    server: Server, peers: Environment, folder: Path, sizes: Sizes, tell: Tell
) -> dict[str, Any]:
    bench = Bench(server, folder)
    queues = [
        contestants.procrastinate(server, peers),
        contestants.pgqueuer(server, peers),
        await ours.queue(server),
    ]
    # A drain of the fastest takes two seconds, and one differs from the next by a quarter.
    close = (contestants.PGQUEUER_100, ours.SLOTS[200])
    run = Run(bench, queues, Bare(server), sizes, tell, close_drains=close)
    empty = await run.half(aged=False)
    guards = await without_guards(bench, sizes, tell)
    run.age()
    return {"halves": {"empty": empty, "aged": await run.half(aged=True)}, "guards": guards}


def main(arguments: list[str]) -> int:
    """Run the comparison."""
    return invoked(compare, arguments)
