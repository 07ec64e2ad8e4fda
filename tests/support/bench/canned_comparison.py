"""A small comparison that never happened, for tests of what is made of one."""

from __future__ import annotations

from functools import cache

from bench.peers.ceiling import DRAINS as BARE
from bench.peers.ceiling import PGBENCH
from bench.peers.contestants import PGQUEUER, PGQUEUER_100, PROCRASTINATE
from bench.peers.findings import HalfFindings, JobRate, MedianRate, PeerFindings, Pickup, RunSizes
from bench.peers.goals import evaluate_goals
from bench.peers.guards import WHOLE, WITHOUT
from bench.peers.ours import IN_DATABASE, OVER_HTTP, SLOTS, WITH_KEYS
from tests.support.bench.canned_findings import times

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


def middle(*per_s: float) -> MedianRate:
    """A rate of so many rounds."""
    return MedianRate.from_rounds([JobRate(per_s=each, cpu_us=100.0, count=1000) for each in per_s])


def half(slower: float = 1.0) -> HalfFindings:
    """Three rounds; our drains are slower by that factor."""
    pickups = {name: times(ms, ms, 9 * ms) for name, ms in WAITING.items()}
    drains = {name: each / slower if name in SLOTS.values() else each for name, each in DRAINING.items()}
    return HalfFindings(
        rates={
            "single-1": {name: middle(each, each, each) for name, each in SUBMITTING.items()},
            "single-16": {name: middle(each, each, each) for name, each in SUBMITTING.items()},
            "bulk": {name: middle(each, each, each) for name, each in SUBMITTING.items()},
            "drain": {name: middle(each, each, each) for name, each in drains.items()},
        },
        pickups={
            name: Pickup(waited=each.summarize(), histogram=each.encode()) for name, each in pickups.items()
        },
    )


@cache
def findings(slower: float = 1.0) -> PeerFindings:
    """All that a run gives; with an aged table our drains are slower by that factor."""
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
        halves={"empty": half(), "aged": half(slower)},
        guards={WHOLE: middle(8000.0), **{name: middle(10000.0) for name in WITHOUT}},
        goals=evaluate_goals({"empty": half(), "aged": half(slower)}),
    )
