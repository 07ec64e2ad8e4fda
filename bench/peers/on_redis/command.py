"""`nox -s bench -- priority`: the priority queue beside the queues that Python and Node have on Redis."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console

from bench.designs.manifest import commit
from bench.machine import describe
from bench.peers.findings import Findings, Half, Sizes, Table
from bench.peers.install import NotInstalled
from bench.peers.on_redis import contestants, ours
from bench.peers.on_redis.ceiling import Bare
from bench.peers.on_redis.goals import goals
from bench.peers.on_redis.install import Peers, everything_installed
from bench.peers.on_redis.measure import Bench
from bench.peers.on_redis.server import Server, serving
from bench.peers.outcome import kept
from bench.peers.programs import Stuck
from bench.peers.run import Run
from runtime.embedded.programs import EmbeddedError

FULL = Sizes(
    rounds=3,
    single=2000,
    crowded=6000,
    bulk=20_000,
    drain=20_000,
    drain_at_most_s=15.0,
    pickups=100,
    aged=1_000_000,
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
@click.option("--quick", is_flag=True, help="A few minutes: fewer tasks, one round.")
@click.option("--rounds", type=int, help="How often everything is measured.")
@click.option("--depth", type=int, help="Tasks that wait besides in the second half; 0 leaves it out.")
@click.option("--only", multiple=True, metavar="PEER", help="Of the peers only this one; can be given again.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Where to write the report.")
def compare(
    quick: bool, rounds: int | None, depth: int | None, only: tuple[str, ...], out: Path | None
) -> int:
    """Measures the priority queue and its peers on one Redis; 1 if a goal is missed."""
    console = Console()
    given = {name: value for name, value in (("rounds", rounds), ("aged", depth)) if value is not None}
    sizes = (QUICK if quick else FULL).model_copy(update=given)
    try:
        peers = everything_installed()
        with serving() as server, tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
            found = asyncio.run(_measured(console, server, peers, Path(folder), sizes, quick, only))
    except (EmbeddedError, NotInstalled, Stuck) as error:
        raise click.ClickException(str(error)) from error
    return kept(found, console, out)


async def _measured(
    console: Console,
    server: Server,
    peers: Peers,
    folder: Path,
    sizes: Sizes,
    quick: bool,
    only: tuple[str, ...],
) -> Findings:
    machine, stamp = describe(), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())

    def tell(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    others = [each for each in contestants.peers(server, peers) if not only or each.name in only]
    queues = [*others, ours.queue(server, 10)]
    run = Run(Bench(server, folder), queues, Bare(server, 11), sizes, tell)
    halves: dict[Table, Half] = {"shallow": await run.half(aged=False)}
    if sizes.aged:
        run.age()
        halves["deep"] = await run.half(aged=True)
    return Findings(
        system=ours.SYSTEM,
        stamp=stamp,
        command=f"nox -s bench -- {shlex.join(sys.argv[1:])}",
        commit=commit(),
        quick=quick or bool(only),
        machine=machine,
        versions={"redis-server": server.version(), **peers.versions()},
        sizes=sizes,
        halves=halves,
        goals=goals(halves),
    )


def main(arguments: list[str]) -> int:
    """Runs the comparison."""
    try:
        missed: int = compare.main(arguments, prog_name="nox -s bench -- priority", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return missed
