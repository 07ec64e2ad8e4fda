"""Arrival times and kinds of requests, all of them from the seed."""

from __future__ import annotations

from collections import Counter
from itertools import islice, pairwise

import pytest

from bench.generator.arrivals import generate_arrivals, seed_random, shuffle_kinds, split_level
from bench.workload import Load, Mix
from tests.support.bench.canned_findings import WORKLOAD

LOAD = next(each for each in WORKLOAD.loads() if each.loop == "open")


def arrivals(load: Load, index: int = 0) -> list[float]:
    return list(generate_arrivals(load.level, 50.0, seed_random(load, "arrivals", index)))


@pytest.mark.req("TQ-201")
def test_the_same_seed_gives_the_same_arrivals() -> None:
    """Both designs get their requests at the same times; another seed or process has others."""
    assert arrivals(LOAD) == arrivals(LOAD)
    assert arrivals(LOAD) != arrivals(LOAD.model_copy(update={"seed": LOAD.seed + 1}))
    assert arrivals(LOAD) != arrivals(LOAD, index=1)


def test_arrivals_are_those_of_a_poisson_process() -> None:
    """They come at the rate, in order, and the gaps between them spread as much as they are long."""
    times = arrivals(LOAD)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert times == sorted(times)
    assert 0.95 * LOAD.level < len(times) / 50.0 < 1.05 * LOAD.level
    assert 0.9 < spread / mean < 1.1


@pytest.mark.req("TQ-203")
def test_a_cycle_has_the_mix_exactly() -> None:
    """Every cycle is shuffled and complete, so that the shortest run has the right mix."""
    kinds = shuffle_kinds(Mix(submit=1, status=2, result=1, cancel=1), seed_random(LOAD, "user 0"))
    hands = [list(islice(kinds, 5)) for _ in range(20)]
    assert all(Counter(hand) == {"submit": 1, "status": 2, "result": 1, "cancel": 1} for hand in hands)
    assert len({tuple(hand) for hand in hands}) > 1


def test_levels_are_split_over_client_processes() -> None:
    """Users are whole and every process has one; a rate is split evenly."""
    assert split_level(1, 2, whole=True) == [1]
    assert split_level(8, 3, whole=True) == [3, 3, 2]
    assert split_level(100, 4, whole=False) == [25, 25, 25, 25]
