"""What is measured in each process beside the transitions: leases that were lost, ended, or given up."""

from __future__ import annotations

from runtime.observe.metrics import Metrics


class RedisMeasures:
    """The counters of one kind of entity; kinds of one node share the series."""

    def __init__(self, metrics: Metrics, entity: str) -> None:
        self.lease_lost = metrics.counter(
            "charter_redis_leases_lost", "Writes refused for a lost lease.", entity
        ).add
        self.lease_expired = metrics.counter(
            "charter_redis_leases_expired", "Leases that ended unrenewed.", entity
        ).add
        self.given_up = metrics.counter("charter_redis_given_up", "Entities given up for good.", entity).add
        self.forgotten = metrics.counter(
            "charter_redis_forgotten", "Keys in indexes whose entity was gone.", entity
        ).add
