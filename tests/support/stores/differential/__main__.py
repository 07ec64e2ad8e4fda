"""Run the differential test of an engine for as long as you like, or one sequence again that it has named.

python -m tests.support.stores.differential --engine redis --seed 7 --lifecycle 12 --sequence 3
python -m tests.support.stores.differential --engine redis --lifecycles 8000
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom

import click

from tests.support.memory_folder import use_memory
from tests.support.postgres_clusters import SHARED, Clusters, open_session
from tests.support.stores.differential.comparing import compare_setting
from tests.support.stores.differential.lanes import NAMES
from tests.support.stores.postgres_engine import Server

PROGRESS = 100
"""After so many lifecycles a line says how far it is."""


@click.command()
@click.option("--engine", type=click.Choice(NAMES), required=True)
@click.option("--seed", type=int, help="what chance begins with; another one each time otherwise")
@click.option("--lifecycle", type=int, help="one lifecycle alone, by its number")
@click.option("--sequence", type=int, help="one sequence of it alone")
@click.option("--lifecycles", default=80, help="how many lifecycles")
@click.option("--sequences", default=25, help="how many sequences of each")
@click.option("--every", default=1, help="only every so many of the lifecycles")
@click.option("--going", is_flag=True, help="go on after a difference")
@click.option("--quick", is_flag=True, help="make a difference no shorter before it is told")
def main(
    engine: str,
    seed: int | None,
    lifecycle: int | None,
    sequence: int | None,
    lifecycles: int,
    sequences: int,
    every: int,
    going: bool,
    quick: bool,
) -> None:
    """Compare an engine with the oracle."""
    seed = SystemRandom().randrange(1 << 32) if seed is None else seed
    chosen = range(0, lifecycles, every) if lifecycle is None else range(lifecycle, lifecycle + 1)
    parts = range(sequences) if sequence is None else range(sequence, sequence + 1)
    print(f"{engine}, seed {seed}: {len(chosen)} lifecycles, {len(parts)} sequences each", flush=True)
    differences = 0
    with _servers(engine):
        for done, number in enumerate(chosen):
            if done and not done % PROGRESS:
                print(f"{done * len(parts)} sequences", flush=True)
            try:
                asyncio.run(compare_setting(engine, seed, number, parts, shrinks=not quick))
            except AssertionError as difference:
                differences += 1
                print(difference, "\n", flush=True)
                if not going:
                    break
    print(f"{differences or 'no'} differences")
    raise SystemExit(bool(differences))


@contextmanager
def _servers(engine: str) -> Iterator[None]:
    """Start the server of an engine that needs one from outside."""
    folders = [each for each in (use_memory(), open_session()) if each is not None]
    try:
        if engine == "postgres":
            place = Path(tempfile.mkdtemp(prefix="charter-differential-"))
            place.chmod(0o711)
            folders.append(str(place))
            with Clusters(place).started(**SHARED) as server:
                Server.url = server.url
                yield
        else:
            yield
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
