"""Goals of the comparison on Redis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.peers.findings import HalfFindings, Measure, PeerGoal, Table
from bench.peers.goals import PICKUP_TITLE, TITLES, compute_ratio
from bench.peers.on_redis.contestants import BULLMQ, PYTHON_PEERS
from bench.peers.on_redis.ours import BESIDE, IN_PROCESS, OVER_HTTP, SLOTS

DEPTH_LEAST = 0.8
"""The least fraction of a rate that must remain with very many other tasks in the queue."""
HTTP_LEAST = 1000.0
OURS: Mapping[Measure, str] = {"single-1": IN_PROCESS, "bulk": IN_PROCESS, "drain": SLOTS[100]}
"""By measure, our contestant: peers submit within the producer process, and so does ours."""


def evaluate_goals(halves: Mapping[Table, HalfFindings]) -> tuple[PeerGoal, ...]:
    """Evaluate every goal by the measurements."""
    found = [goal for table, half in halves.items() for goal in _evaluate_half(table, half)]
    if "deep" in halves:
        found += _evaluate_depth(halves["deep"])
    return tuple(found)


def _evaluate_half(table: Table, half: HalfFindings) -> Iterator[PeerGoal]:
    for measure, own in OURS.items():
        rates = half.rates[measure]
        for peer in (each for each in PYTHON_PEERS if each in rates):
            value = compute_ratio(rates[own], rates[peer])
            yield PeerGoal(name=TITLES[measure], table=table, ours=own, theirs=peer, value=value, bar=1.0)
    drains, own = half.rates["drain"], OURS["drain"]
    if BULLMQ in drains:
        value = compute_ratio(drains[own], drains[BULLMQ])
        yield PeerGoal(
            name=TITLES["drain"], table=table, ours=own, theirs=BULLMQ, value=value, bar=1.0, equal=True
        )
    for peer in (each for each in PYTHON_PEERS if each in half.pickups):
        value = round(half.pickups[IN_PROCESS].waited.p50_ms / half.pickups[peer].waited.p50_ms, 3)
        yield PeerGoal(
            name=f"{PICKUP_TITLE}, ratio of p50",
            table=table,
            ours=IN_PROCESS,
            theirs=peer,
            value=value,
            bar=1.0,
            less=True,
        )
    yield PeerGoal(
        name=f"{TITLES['single-16']}, tasks/s",
        table=table,
        ours=OVER_HTTP,
        theirs="at least 1,000",
        value=half.rates["single-16"][OVER_HTTP].per_s,
        bar=HTTP_LEAST,
        equal=True,
    )


def _evaluate_depth(deep: HalfFindings) -> Iterator[PeerGoal]:
    """Compare a deep queue with an empty one, both in the same rounds."""
    for measure, own in OURS.items():
        value = compute_ratio(deep.rates[measure][own], deep.rates[measure][f"{own}{BESIDE}"])
        yield PeerGoal(
            name=f"{TITLES[measure]}, what is left of the rate",
            table="deep",
            ours=own,
            theirs=f"{own}{BESIDE}",
            value=value,
            bar=DEPTH_LEAST,
            equal=True,
        )
