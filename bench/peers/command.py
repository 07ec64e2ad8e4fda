"""`nox -s bench -- orchestrator`: the orchestrator beside procrastinate, pgqueuer and pgbench."""

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
from bench.peers import contestants, ours
from bench.peers.bare import Bare
from bench.peers.findings import Findings, Sizes
from bench.peers.goals import goals
from bench.peers.guards import without_guards
from bench.peers.install import Environment, NotInstalled, installed
from bench.peers.measure import Bench
from bench.peers.outcome import kept
from bench.peers.programs import Stuck
from bench.peers.run import Run
from bench.peers.server import Server, SqlFailed, serving
from runtime.embedded.programs import EmbeddedError

FULL = Sizes(
    rounds=3,
    single=1500,
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
    crowded=2000,
    bulk=10_000,
    drain=5_000,
    drain_at_most_s=3.0,
    pickups=40,
    aged=100_000,
)


@click.command("orchestrator")
@click.option("--quick", is_flag=True, help="About three minutes: fewer jobs, one round.")
@click.option("--rounds", type=int, help="How often everything is measured.")
@click.option("--aged", type=int, help="Finished jobs in the tables of the second half.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Where to write the report.")
def compare(quick: bool, rounds: int | None, aged: int | None, out: Path | None) -> int:
    """Measures the orchestrator and its peers on one PostgreSQL; 1 if a goal is missed."""
    console = Console()
    given = {name: value for name, value in (("rounds", rounds), ("aged", aged)) if value is not None}
    sizes = (QUICK if quick else FULL).model_copy(update=given)
    try:
        peers = installed()
        with serving() as server, tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
            found = asyncio.run(_measured(console, server, peers, Path(folder), sizes, quick))
    except (EmbeddedError, NotInstalled, SqlFailed, Stuck) as error:
        raise click.ClickException(str(error)) from error
    return kept(found, console, out)


async def _measured(
    console: Console, server: Server, peers: Environment, folder: Path, sizes: Sizes, quick: bool
) -> Findings:
    machine, stamp = describe(), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())

    def tell(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    bench = Bench(server, folder)
    queues = [
        contestants.procrastinate(server, peers),
        contestants.pgqueuer(server, peers),
        await ours.queue(server),
    ]
    run = Run(bench, queues, Bare(server), sizes, tell)
    empty = await run.half(aged=False)
    guards = await without_guards(bench, sizes, tell)
    run.age()
    aged = await run.half(aged=True)
    return Findings(
        stamp=stamp,
        command=f"nox -s bench -- {shlex.join(sys.argv[1:])}",
        commit=commit(),
        quick=quick,
        machine=machine,
        versions={"postgresql": server.version(), **peers.versions()},
        sizes=sizes,
        halves={"empty": empty, "aged": aged},
        guards=guards,
        goals=goals({"empty": empty, "aged": aged}),
    )


def main(arguments: list[str]) -> int:
    """Runs the comparison."""
    try:
        missed: int = compare.main(arguments, prog_name="nox -s bench -- orchestrator", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return missed
