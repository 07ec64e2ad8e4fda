"""Runs in flight of a worker: distinct even when a store hands out the same fence twice."""

from __future__ import annotations

from typing import Any, cast

from runtime.stores.contract import LeaseProof
from runtime.worker.in_flight import InFlightRuns


def test_a_run_that_is_handed_out_twice_is_dropped_once() -> None:
    """A store that lost its last writes at a failover counts anew; the later run stays in flight."""
    in_flight: InFlightRuns[str] = InFlightRuns(cast("Any", None), 10.0, 1.0)
    first = in_flight.add("a", LeaseProof("worker", 1), "first", 0.0, 10.0)
    second = in_flight.add("a", LeaseProof("worker", 1), "second", 1.0, 10.0)
    in_flight.remove(first)
    assert len(in_flight) == 1
    in_flight.remove(second)
    in_flight.remove(second)
    assert len(in_flight) == 0
