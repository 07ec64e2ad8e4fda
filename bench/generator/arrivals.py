"""When requests are sent and of which kind they are: all of it from the seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.workload import Kind, Load, Mix


def chance(load: Load, purpose: str, index: int = 0) -> random.Random:
    """A source of chance for one purpose. The same load has the same one, whatever design it is sent to."""
    return random.Random(f"{load.seed}/{load.step}/{load.level:g}/{purpose}/{index}")


def poisson(rate: float, seconds: float, source: random.Random) -> Iterator[float]:
    """The times of independent arrivals at a rate, in seconds from the start."""
    at = source.expovariate(rate)
    while at < seconds:
        yield at
        at += source.expovariate(rate)


def deal(mix: Mix, source: random.Random) -> Iterator[Kind]:
    """Kinds of requests for ever. Each deal is shuffled, so that short runs have the mix exactly, too."""
    hand = list(mix.deal())
    while True:
        source.shuffle(hand)
        yield from hand


def shares(level: float, clients: int, *, whole: bool) -> list[float]:
    """A level split over client processes; none is left without a user."""
    if not whole:
        return [level / clients] * clients
    used = min(clients, int(level))
    return [float(int(level) // used + (index < int(level) % used)) for index in range(used)]
