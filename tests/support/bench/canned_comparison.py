"""Canned findings of a comparison, for tests of its tables and page."""

from __future__ import annotations

from functools import cache

from bench.peers.ceiling import DRAINS as BARE
from bench.peers.ceiling import PGBENCH
from bench.peers.contestants import PGQUEUER, PGQUEUER_100, PROCRASTINATE
from bench.peers.findings import HalfFindings, JobRate, MedianRate, PeerFindings, Pickup, RunSizes
from bench.peers.goals import evaluate_goals
from bench.peers.guards import WHOLE, WITHOUT
from bench.peers.ours import IN_DATABASE, OVER_HTTP, SLOTS, WITH_KEYS
from tests.support.bench.canned_findings import create_histogram

SUBMITTING = {
    PROCRASTINATE: 500.0,
    PGQUEUER: 1000.0,
    IN_DATABASE: 1500.0,
    WITH_KEYS: 1200.0,
    OVER_HTTP: 800.0,
    PGBENCH: 2000.0,
}
DRAINING = {
    PROCRASTINATE: 200.0,
    PGQUEUER: 4000.0,
    PGQUEUER_100: 8000.0,
    **dict(zip(SLOTS.values(), (600.0, 5000.0, 8000.0), strict=True)),
    **dict.fromkeys(BARE, 9000.0),
}
WAITING = {PROCRASTINATE: 7.0, PGQUEUER: 5.0, IN_DATABASE: 4.0, OVER_HTTP: 6.0}


def create_median(*per_s: float) -> MedianRate:
    """Create a median rate of these rounds."""
    return MedianRate.from_rounds([JobRate(per_s=each, cpu_us=100.0, count=1000) for each in per_s])


def create_half(slower: float = 1.0) -> HalfFindings:
    """Create a half of three rounds; our drains are slower by that factor."""
    pickups = {name: create_histogram(ms, ms, 9 * ms) for name, ms in WAITING.items()}
    drains = {name: each / slower if name in SLOTS.values() else each for name, each in DRAINING.items()}
    return HalfFindings(
        rates={
            "single-1": {name: create_median(each, each, each) for name, each in SUBMITTING.items()},
            "single-16": {name: create_median(each, each, each) for name, each in SUBMITTING.items()},
            "bulk": {name: create_median(each, each, each) for name, each in SUBMITTING.items()},
            "drain": {name: create_median(each, each, each) for name, each in drains.items()},
        },
        pickups={
            name: Pickup(waited=each.summarize(), histogram=each.encode()) for name, each in pickups.items()
        },
    )


@cache
def create_findings(slower: float = 1.0) -> PeerFindings:
    """Create the findings of a run; with an aged table our drains are slower by that factor."""
    return PeerFindings(
        stamp="20260210T000000Z",
        command="nox -s bench -- orchestrator",
        commit="0123456789ab",
        quick=False,
        machine={"cores": 2, "load_before": [0.1, 0.2, 0.3], "python": "3.11.7", "system": "Linux"},
        versions={"postgresql": "18.0", "pgqueuer": "1.6.0"},
        sizes=RunSizes(
            rounds=3,
            single=10,
            crowded=10,
            bulk=1000,
            drain=1000,
            drain_at_most_s=1,
            pickups=3,
            aged=1_000_000,
        ),
        halves={"empty": create_half(), "aged": create_half(slower)},
        guards={WHOLE: create_median(8000.0), **{name: create_median(10000.0) for name in WITHOUT}},
        goals=evaluate_goals({"empty": create_half(), "aged": create_half(slower)}),
    )
