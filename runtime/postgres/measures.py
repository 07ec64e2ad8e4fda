"""What is measured of a store beside its transitions: leases, waits, and what is in each state."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
_known: WeakKeyDictionary[CollectorRegistry, tuple[Counter, Counter, Counter, Histogram]] = (
    WeakKeyDictionary()
)


class Measures:
    """The counters of one kind of entity; kinds of one node share the series."""

    def __init__(self, registry: CollectorRegistry, entity: str) -> None:
        lost, expired, given_up, waited = _series(registry)
        self.lease_lost = lost.labels(entity).inc
        self.lease_expired = expired.labels(entity).inc
        self.given_up = given_up.labels(entity).inc
        self.waited = waited.labels(entity).observe
        self.states: list[tuple[str, str, int, float]] = []
        """What the last count of the table found."""

    def census(self) -> Iterable[tuple[str, str, int, float]]:
        """Rows of (entity, state, how many, age of the oldest in seconds)."""
        return self.states


def _series(registry: CollectorRegistry) -> tuple[Counter, Counter, Counter, Histogram]:
    if registry not in _known:
        _known[registry] = (
            Counter(
                "charter_leases_lost", "Writes refused for a lost lease.", ("entity",), registry=registry
            ),
            Counter("charter_leases_expired", "Leases that ended unrenewed.", ("entity",), registry=registry),
            Counter("charter_given_up", "Entities given up for good.", ("entity",), registry=registry),
            Histogram(
                "charter_acquisition_wait_seconds",
                "Time from when an entity could be acquired until it was.",
                ("entity",),
                buckets=_SECONDS,
                registry=registry,
            ),
        )
    return _known[registry]
