"""What is measured of a store beside its transitions: leases, waits, and what is in each state."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
_known: WeakKeyDictionary[CollectorRegistry, tuple[Counter, Counter, Counter, _Waits]] = WeakKeyDictionary()


class Measures:
    """The counters of one kind of entity; kinds of one node share the series."""

    def __init__(self, registry: CollectorRegistry, entity: str) -> None:
        lost, expired, given_up, waited = _series(registry)
        self.lease_lost = lost.labels(entity).inc
        self.lease_expired = expired.labels(entity).inc
        self.given_up = given_up.labels(entity).inc
        self._waits = waited.by_entity.setdefault(entity, [0.0] * (len(_SECONDS) + 2))
        self.states: list[tuple[str, str, int, float]] = []
        """What the last count of the table found."""

    def waited_all(self, seconds: Iterable[float]) -> None:
        """How long some waited until they were acquired."""
        waits = self._waits
        for each in seconds:
            waits[bisect_left(_SECONDS, each)] += 1
            waits[-1] += each

    def census(self) -> Iterable[tuple[str, str, int, float]]:
        """Rows of (entity, state, how many, age of the oldest in seconds)."""
        return self.states


class _Waits(Collector):
    """A histogram that costs next to nothing until somebody looks; every acquisition adds to it."""

    def __init__(self) -> None:
        self.by_entity: dict[str, list[float]] = {}
        """How many there are in each bucket, and at the end the seconds of all of them."""

    def collect(self) -> Iterator[Metric]:
        found = HistogramMetricFamily(
            "charter_acquisition_wait_seconds",
            "Time from when an entity could be acquired until it was.",
            labels=("entity",),
        )
        bounds = [*map(str, _SECONDS), "+Inf"]
        for entity, waits in self.by_entity.items():
            found.add_metric((entity,), list(zip(bounds, accumulate(waits[:-1]), strict=True)), waits[-1])
        yield found


def _series(registry: CollectorRegistry) -> tuple[Counter, Counter, Counter, _Waits]:
    if registry not in _known:
        waits = _Waits()
        registry.register(waits)
        _known[registry] = (
            Counter(
                "charter_leases_lost", "Writes refused for a lost lease.", ("entity",), registry=registry
            ),
            Counter("charter_leases_expired", "Leases that ended unrenewed.", ("entity",), registry=registry),
            Counter("charter_given_up", "Entities given up for good.", ("entity",), registry=registry),
            waits,
        )
    return _known[registry]
