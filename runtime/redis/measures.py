"""What is measured in each process beside the transitions: leases that were lost, ended, or given up."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter

_known: WeakKeyDictionary[CollectorRegistry, tuple[Counter, Counter, Counter, Counter]] = WeakKeyDictionary()


class Measures:
    """The counters of one kind of entity; kinds of one node share the series."""

    def __init__(self, registry: CollectorRegistry, entity: str) -> None:
        lost, expired, given_up, ghosts = _series(registry)
        self.lease_lost = lost.labels(entity).inc
        self.lease_expired = expired.labels(entity).inc
        self.given_up = given_up.labels(entity).inc
        self.forgotten = ghosts.labels(entity).inc


def _series(registry: CollectorRegistry) -> tuple[Counter, Counter, Counter, Counter]:
    if registry not in _known:
        _known[registry] = (
            Counter(
                "charter_redis_leases_lost",
                "Writes refused for a lost lease.",
                ("entity",),
                registry=registry,
            ),
            Counter(
                "charter_redis_leases_expired", "Leases that ended unrenewed.", ("entity",), registry=registry
            ),
            Counter("charter_redis_given_up", "Entities given up for good.", ("entity",), registry=registry),
            Counter(
                "charter_redis_forgotten",
                "Keys in indexes whose entity was gone.",
                ("entity",),
                registry=registry,
            ),
        )
    return _known[registry]
