"""What has to be better than what, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.peers.findings import Goal, Half, Measure, Table
from bench.peers.goals import PICKUP_TITLE, TITLES, ratio
from bench.peers.on_redis.contestants import BULLMQ, PYTHON_PEERS
from bench.peers.on_redis.ours import BESIDE, IN_PROCESS, OVER_HTTP, SLOTS

DEPTH_LEAST = 0.8
"""What has to be left of a rate when very many tasks wait besides."""
HTTP_LEAST = 1000.0
OURS: Mapping[Measure, str] = {"single-1": IN_PROCESS, "bulk": IN_PROCESS, "drain": SLOTS[100]}
"""Peers are called within the process that submits, and so is our producer there."""


def goals(halves: Mapping[Table, Half]) -> tuple[Goal, ...]:
    """Every goal, with what was measured."""
    found = [goal for table, half in halves.items() for goal in _of(table, half)]
    if "deep" in halves:
        found += _depth(halves["deep"])
    return tuple(found)


def _of(table: Table, half: Half) -> Iterator[Goal]:
    for measure, own in OURS.items():
        rates = half.rates[measure]
        for peer in (each for each in PYTHON_PEERS if each in rates):
            value = ratio(rates[own], rates[peer])
            yield Goal(name=TITLES[measure], table=table, ours=own, theirs=peer, value=value, bar=1.0)
    drains, own = half.rates["drain"], OURS["drain"]
    if BULLMQ in drains:
        value = ratio(drains[own], drains[BULLMQ])
        yield Goal(
            name=TITLES["drain"], table=table, ours=own, theirs=BULLMQ, value=value, bar=1.0, equal=True
        )
    for peer in (each for each in PYTHON_PEERS if each in half.pickups):
        value = round(half.pickups[IN_PROCESS].waited.p50_ms / half.pickups[peer].waited.p50_ms, 3)
        yield Goal(
            name=f"{PICKUP_TITLE}, ratio of p50",
            table=table,
            ours=IN_PROCESS,
            theirs=peer,
            value=value,
            bar=1.0,
            less=True,
        )
    yield Goal(
        name=f"{TITLES['single-16']}, tasks/s",
        table=table,
        ours=OVER_HTTP,
        theirs="at least 1,000",
        value=half.rates["single-16"][OVER_HTTP].per_s,
        bar=HTTP_LEAST,
        equal=True,
    )


def _depth(deep: Half) -> Iterator[Goal]:
    """A queue that carries much against one that carries nothing, both in the same rounds."""
    for measure, own in OURS.items():
        value = ratio(deep.rates[measure][own], deep.rates[measure][f"{own}{BESIDE}"])
        yield Goal(
            name=f"{TITLES[measure]}, what is left of the rate",
            table="deep",
            ours=own,
            theirs=f"{own}{BESIDE}",
            value=value,
            bar=DEPTH_LEAST,
            equal=True,
        )
