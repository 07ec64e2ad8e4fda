"""Benchmark `nox -s bench -- priority`: the priority queue against Python's and Node's queues on Redis."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import click

from bench.peers.comparison import add_options, describe_run, invoke, run_comparison
from bench.peers.findings import HalfFindings, PeerFindings, RunSizes, Table
from bench.peers.on_redis import contestants, ours
from bench.peers.on_redis.ceiling import ScriptCeiling
from bench.peers.on_redis.contestants import RedisQueue
from bench.peers.on_redis.goals import evaluate_goals
from bench.peers.on_redis.install import PeerEnvironments, ensure_all_installed
from bench.peers.on_redis.measurement import RedisBench
from bench.peers.on_redis.server import RedisServer, start_server
from bench.peers.rounds import ComparisonRun, PrintLine

FULL = RunSizes(
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
QUICK = RunSizes(
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
@add_options
@click.option("--depth", type=int, help="Other waiting tasks in the second half; 0 skips it.")
@click.option("--only", multiple=True, metavar="PEER", help="Only this peer; may be repeated.")
def compare(
    quick: bool, rounds: int | None, depth: int | None, only: tuple[str, ...], out: Path | None
) -> int:
    """Measure the priority queue and its peers on one Redis; exit code 1 if a goal is missed."""
    sizes = (QUICK if quick else FULL).with_sizes(rounds=rounds, aged=depth)
    return run_comparison(partial(_measure_all, sizes, quick or bool(only), only), out)


def _measure_all(
    sizes: RunSizes, quick: bool, only: tuple[str, ...], folder: Path, print_line: PrintLine
) -> PeerFindings:
    run_facts = describe_run(ours.SYSTEM, sizes, quick=quick)
    peers = ensure_all_installed()
    with start_server() as server:
        halves = asyncio.run(_measure_halves(server, peers, folder, sizes, only, print_line))
        versions = {"redis-server": server.version(), **peers.versions()}
    return PeerFindings(**run_facts, halves=halves, versions=versions, goals=evaluate_goals(halves))


async def _measure_halves(
    server: RedisServer,
    peers: PeerEnvironments,
    folder: Path,
    sizes: RunSizes,
    only: tuple[str, ...],
    print_line: PrintLine,
) -> dict[Table, HalfFindings]:
    others = [each for each in contestants.create_peers(server, peers) if not only or each.name in only]
    bench, own, bare = RedisBench(server, folder), ours.create_queue(server, 10), ScriptCeiling(server, 11)

    def make_rounds(*queues: RedisQueue) -> ComparisonRun[RedisQueue]:
        # They differ by less than this machine does from one minute to the next.
        close = (contestants.HUEY, ours.IN_PROCESS, ours.IN_PROCESS + ours.BESIDE)
        draining = (contestants.BULLMQ, ours.SLOTS[100], ours.SLOTS[100] + ours.BESIDE)
        return ComparisonRun(
            bench,
            queues,
            bare,
            sizes,
            print_line,
            close_singles=close,
            close_drains=draining,
            close_pickups=close,
        )

    halves: dict[Table, HalfFindings] = {"shallow": await make_rounds(*others, own).measure_half(aged=False)}
    if sizes.aged:
        run = make_rounds(*others, own, ours.create_empty_queue(server, 12))
        run.age()
        halves["deep"] = await run.measure_half(aged=True)
    return halves


def main(arguments: list[str]) -> int:
    """Run the comparison."""
    return invoke(compare, arguments)
