"""`nox -s bench -- priority`: the priority queue beside the queues that Python and Node have on Redis."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import click

from bench.peers.findings import Findings, Half, Sizes, Table
from bench.peers.on_redis import contestants, ours
from bench.peers.on_redis.ceiling import Bare
from bench.peers.on_redis.contestants import Queue
from bench.peers.on_redis.goals import goals
from bench.peers.on_redis.install import Peers, everything_installed
from bench.peers.on_redis.measure import Bench
from bench.peers.on_redis.server import Server, serving
from bench.peers.outcome import circumstances, compared, invoked, options
from bench.peers.run import Run, Tell

FULL = Sizes(
    rounds=3,
    single=2000,
    crowded=6000,
    bulk=20_000,
    drain=20_000,
    drain_at_most_s=15.0,
    pickups=60,
    aged=1_000_000,
    turns=5,
)
QUICK = Sizes(
    rounds=1,
    single=300,
    crowded=1000,
    bulk=3000,
    drain=5000,
    drain_at_most_s=3.0,
    pickups=20,
    aged=100_000,
)


@click.command("priority")
@options
@click.option("--depth", type=int, help="Tasks that wait besides in the second half; 0 leaves it out.")
@click.option("--only", multiple=True, metavar="PEER", help="Of the peers only this one; can be given again.")
def compare(
    quick: bool, rounds: int | None, depth: int | None, only: tuple[str, ...], out: Path | None
) -> int:
    """Measure the priority queue and its peers on one Redis; 1 if a goal is missed."""
    sizes = (QUICK if quick else FULL).but(rounds=rounds, aged=depth)
    return compared(partial(_measured, sizes, quick or bool(only), only), out)


def _measured(sizes: Sizes, quick: bool, only: tuple[str, ...], folder: Path, tell: Tell) -> Findings:
    about = circumstances(ours.SYSTEM, sizes, quick=quick)
    peers = everything_installed()
    with serving() as server:
        halves = asyncio.run(_halves(server, peers, folder, sizes, only, tell))
        versions = {"redis-server": server.version(), **peers.versions()}
    return Findings(**about, halves=halves, versions=versions, goals=goals(halves))


async def _halves(
    server: Server, peers: Peers, folder: Path, sizes: Sizes, only: tuple[str, ...], tell: Tell
) -> dict[Table, Half]:
    others = [each for each in contestants.peers(server, peers) if not only or each.name in only]
    bench, own, bare = Bench(server, folder), ours.queue(server, 10), Bare(server, 11)

    def running(*queues: Queue) -> Run[Queue]:
        # They differ by less than a minute of this machine does from the next.
        close = (contestants.HUEY, ours.IN_PROCESS, ours.IN_PROCESS + ours.BESIDE)
        draining = (contestants.BULLMQ, ours.SLOTS[100], ours.SLOTS[100] + ours.BESIDE)
        return Run(
            bench,
            queues,
            bare,
            sizes,
            tell,
            close_singles=close,
            close_drains=draining,
            close_pickups=close,
        )

    halves: dict[Table, Half] = {"shallow": await running(*others, own).half(aged=False)}
    if sizes.aged:
        run = running(*others, own, ours.unburdened(server, 12))
        run.age()
        halves["deep"] = await run.half(aged=True)
    return halves


def main(arguments: list[str]) -> int:
    """Run the comparison."""
    return invoked(compare, arguments)
