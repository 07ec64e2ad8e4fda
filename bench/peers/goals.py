"""Goals of the comparison on PostgreSQL."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from bench.peers.contestants import PGQUEUER, PGQUEUER_100, PROCRASTINATE
from bench.peers.findings import HalfFindings, Measure, MedianRate, PeerGoal, Table
from bench.peers.ours import IN_DATABASE, OVER_HTTP, SLOTS

PICKUP_MS = 10.0
TITLES: Mapping[Measure, str] = {
    "single-1": "submit, one at a time",
    "single-16": "submit, 16 in flight",
    "bulk": "submit, 1,000 a call",
    "drain": "drain",
}
PICKUP_TITLE = "from submit to start when idle"
SUBMITS: Sequence[Measure] = ("single-1", "single-16", "bulk")
DRAINS: Mapping[str, tuple[str, bool]] = {
    PROCRASTINATE: (SLOTS[1], False),
    PGQUEUER: (SLOTS[10], False),
    PGQUEUER_100: (SLOTS[200], True),
}
"""By their worker, the worker of ours that is compared with it, and whether equal speed is enough.

procrastinate runs one job at a time by default. pgqueuer takes 10 at a time and runs as many as it has taken.
With batches of 100 it refuses to run fewer than 200 at a time. A worker of ours with 200 slots is alike: it
exchanges halves of 100 with the database, the one while it runs the other or exchanges that too.
"""


def evaluate_goals(halves: Mapping[Table, HalfFindings]) -> tuple[PeerGoal, ...]:
    """Evaluate every goal by the measurements."""
    return tuple(goal for table, half in halves.items() for goal in _evaluate_half(table, half))


def compute_ratio(ours: MedianRate, theirs: MedianRate) -> float:
    """Compute the median of the ratios within the same turn of the same round.

    Of a contestant that was measured several times in a round, only as many turns count as the other has.
    """
    rounds = min(len(ours.rounds), len(theirs.rounds))
    own, other = (each.rounds[:: len(each.rounds) // rounds] for each in (ours, theirs))
    pairs = zip(own, other, strict=True)
    return round(statistics.median(one.per_s / max(other.per_s, 0.1) for one, other in pairs), 3)


def _evaluate_half(table: Table, half: HalfFindings) -> Iterator[PeerGoal]:
    for measure in SUBMITS:
        rates = half.rates[measure]
        for peer in (PROCRASTINATE, PGQUEUER):
            value = compute_ratio(rates[IN_DATABASE], rates[peer])
            yield PeerGoal(
                name=TITLES[measure], table=table, ours=IN_DATABASE, theirs=peer, value=value, bar=1.0
            )
    drains = half.rates["drain"]
    for peer, (own, equal) in DRAINS.items():
        value = compute_ratio(drains[own], drains[peer])
        yield PeerGoal(
            name=TITLES["drain"], table=table, ours=own, theirs=peer, value=value, bar=1.0, equal=equal
        )
    own_ms = half.pickups[OVER_HTTP].waited.p50_ms
    bound = "at most 10 ms"
    yield PeerGoal(
        name=f"{PICKUP_TITLE}, p50 ms",
        table=table,
        ours=OVER_HTTP,
        theirs=bound,
        value=own_ms,
        bar=PICKUP_MS,
        less=True,
    )
    for peer in (PROCRASTINATE, PGQUEUER):
        yield PeerGoal(
            name=f"{PICKUP_TITLE}, ratio of p50",
            table=table,
            ours=IN_DATABASE,
            theirs=peer,
            value=round(half.pickups[IN_DATABASE].waited.p50_ms / half.pickups[peer].waited.p50_ms, 3),
            bar=1.0,
            less=True,
        )
