"""Arrival times and kinds of requests, all of them from the seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from bench.workload import Load, Mix, RequestKind


def seed_random(load: Load, purpose: str, index: int = 0) -> random.Random:
    """Create a random generator for one purpose; the same load has the same one for every design."""
    return random.Random(f"{load.seed}/{load.step}/{load.level:g}/{purpose}/{index}")


def generate_arrivals(rate: float, seconds: float, source: random.Random) -> Iterator[float]:
    """Generate the times of a Poisson process at a rate, in seconds from the start."""
    at = source.expovariate(rate)
    while at < seconds:
        yield at
        at += source.expovariate(rate)


def shuffle_kinds(mix: Mix, source: random.Random) -> Iterator[RequestKind]:
    """Generate kinds of requests for ever; each cycle is shuffled, so that short runs have the mix, too."""
    kinds = list(mix.expand())
    while True:
        source.shuffle(kinds)
        yield from kinds


def split_level(level: float, clients: int, *, whole: bool) -> list[float]:
    """Split a level over client processes; each has at least one user."""
    if not whole:
        return [level / clients] * clients
    used = min(clients, int(level))
    return [float(int(level) // used + (index < int(level) % used)) for index in range(used)]
