"""Benchmark `nox -s bench -- stores`: what a guard, a line of history and an index cost on each engine.

A store takes and puts back entities, one step after the other. Beside it stores of the same engine do so,
each of which lacks one thing; all of them in turns, so that a drift of the machine affects all. No engine
waits for a disk, which would take longer than all that is measured.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

from bench.peers.comparison import invoke
from bench.report.terminal import narrow_table
from bench.stores.removals import skip_disk
from bench.stores.variants import CLIENT, STEPS, ChoreRecord, Variant, list_variants
from runtime.call import Call
from runtime.launch.embedded.postgres import EmbeddedPostgres
from tests.runtime.hand_world import make_call
from tests.support.stores.engines import close_opened
from tests.support.stores.postgres_engine import Server
from tests.support.stores.shop import Shop

PrintLine = Callable[[str], None]
ENTITIES = {"memory": 200, "sqlite": 50, "redis": 50, "postgres": 50, "s3": 8}
"""By engine, how many entities a store moves before it is another one's turn."""
_MOVES = 8
"""How many steps each of them takes, so that histories have the length of an ordinary one."""


class StepCost(NamedTuple):
    """What something costs: the median of all turns, and how far the middle half of them is apart."""

    title: str
    microseconds: float
    spread: float


class _Place:
    """An open store, and entities that are made for each turn."""

    def __init__(self, store: Any, call: Call) -> None:
        self._store, self._call = store, call
        self._made = 0

    async def take_steps(self, count: int) -> float:
        """Let that many new entities take their steps; return how many microseconds each step took."""
        keys = [f"chore-{self._made + number}" for number in range(count)]
        self._made += count
        for key in keys:
            await self._store.create(ChoreRecord(key=key, wanted=True, mode=1), self._call)
        begun = time.perf_counter()
        for move in range(_MOVES):
            for key in keys:
                done = await self._store.transition(key, STEPS[move % len(STEPS)], self._call)
                assert done.applied
        return (time.perf_counter() - begun) / (count * _MOVES) * 1e6


async def measure_engine(engine: str, turns: int) -> list[StepCost]:
    """Measure a step on an engine, and what is saved by each thing that a variant lacks."""
    places, count = [await _open(engine, each) for each in list_variants(engine)], ENTITIES[engine]
    for place in places:
        await place.take_steps(count)
    taken: list[list[float]] = [[] for _ in places]
    for turn in range(turns):
        # Each of them comes first, and next to each other one, as often as the others.
        for number in sorted(range(len(places)), key=lambda each: (each + turn) % len(places)):
            taken[number].append(await places[number].take_steps(count))
    await close_opened()
    whole = taken[0]
    saved = [
        whole,
        *([all_of_it - each for all_of_it, each in zip(whole, rest, strict=True)] for rest in taken[1:]),
    ]
    return [_sum_up(each.title, times) for each, times in zip(list_variants(engine), saved, strict=True)]


async def _open(engine: str, variant: Variant) -> _Place:
    shop = Shop(engine)
    store = await shop.open(variant.lifecycle)
    place = _Place(store, make_call(shop.world, caller=CLIENT, level="ERROR"))
    await place.take_steps(1)
    await skip_disk(engine, store)
    if variant.remove is not None:
        await variant.remove(store)
    return place


def _sum_up(title: str, times: Sequence[float]) -> StepCost:
    lower, middle, upper = statistics.quantiles(times, n=4)
    return StepCost(title, middle, upper - lower)


@click.command("stores")
@click.option(
    "--engine", "engines", type=click.Choice([*ENTITIES]), multiple=True, help="All of them by default."
)
@click.option("--quick", is_flag=True, help="A minute: fewer turns.")
def measure(engines: Sequence[str], quick: bool) -> int:
    """Measure what is optional in a step, and print it."""
    console = Console()
    table = narrow_table("engine, and what of a step", "µs", "± half of the turns")
    for engine in engines or ENTITIES:
        with _server(engine):
            costs = asyncio.run(measure_engine(engine, 7 if quick else 40))
        for cost in costs:
            table.add_row(f"{engine}: {cost.title}", f"{cost.microseconds:.1f}", f"{cost.spread / 2:.1f}")
    console.print(table)
    return 0


@contextmanager
def _server(engine: str) -> Iterator[None]:
    """Have the server that an engine needs and does not start itself. It does not wait for the disk."""
    if engine != "postgres":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        Path(folder).chmod(0o711)
        server = EmbeddedPostgres(Path(folder, "postgres"), settings={"fsync": "off"})
        server.start()
        try:
            Server.url = server.url
            yield
        finally:
            server.remove()


def main(arguments: list[str]) -> int:
    """Run the command line."""
    return invoke(measure, arguments)
