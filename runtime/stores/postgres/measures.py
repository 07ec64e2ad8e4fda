"""Metrics of a store beside its transitions: leases, waits, and counts by state."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.observe.metrics import Metrics

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)


class PostgresMeasures:
    """The counters of one kind of entity; kinds of one node share the series."""

    def __init__(self, metrics: Metrics, entity: str) -> None:
        self.waited_all = metrics.histogram(
            "charter_acquisition_wait_seconds",
            "Time from when an entity could be acquired until it was.",
            entity,
            _SECONDS,
        ).add_all
        self.lease_lost = metrics.counter(
            "charter_leases_lost", "Writes refused for a lost lease.", entity
        ).add
        self.lease_expired = metrics.counter(
            "charter_leases_expired", "Leases that ended unrenewed.", entity
        ).add
        self.given_up = metrics.counter("charter_given_up", "Entities given up for good.", entity).add
        self.states: list[tuple[str, str, int, float]] = []
        """Result of the last count of the table."""

    def census(self) -> Iterable[tuple[str, str, int, float]]:
        """Return rows of (entity, state, count, age of the oldest in seconds)."""
        return self.states
