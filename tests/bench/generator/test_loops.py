"""Latency is measured from the intended time of a request, so that no loop hides a stall."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import repeat

import pytest

from bench.generator.arrivals import generate_arrivals, seed_random
from bench.generator.loops import Recorder, run_closed_loop, run_open_loop
from bench.workload import RequestKind
from runtime.call.conditions import CallFailed
from runtime.simulation import SimulatedWorld, simulate
from tests.support.bench.canned_findings import WORKLOAD

LOAD = next(WORKLOAD.loads())
STALL = (2.0, 3.0)
ANSWER_S = 0.001


class StallingTraffic:
    """A server that answers in a millisecond, and not at all for one whole second."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world

    async def send(self, kind: RequestKind, _origin: float) -> RequestKind:
        await asyncio.sleep(ANSWER_S)
        now = asyncio.get_running_loop().time()
        if STALL[0] <= now < STALL[1]:
            await asyncio.sleep(STALL[1] - now)
        return kind


class FailingTraffic:
    """A server that does not run."""

    async def send(self, _kind: RequestKind, _origin: float) -> RequestKind:
        raise CallFailed("UNAVAILABLE", "nothing listens", "gateway")


def create_recorder(start: float = 0.0, end: float = 5.0) -> Recorder:
    return Recorder(asyncio.get_running_loop().time, start, end)


def test_an_open_loop_hides_no_stall() -> None:
    """Every request that was due during the stall waited to its end, and counts with that time."""

    async def run(world: SimulatedWorld) -> Recorder:
        found = create_recorder()
        times = list(generate_arrivals(100, 5.0, seed_random(LOAD, "arrivals")))
        await run_open_loop(found, StallingTraffic(world), repeat("status"), times)
        stalled = sum(STALL[0] <= each < STALL[1] for each in times)
        late = found.latencies["status"]
        assert late.percentiles((100,))[0] > 900
        assert round(late.count * (1 - _share_within(found, 2.0))) >= stalled * 0.95
        return found

    found = simulate(run)
    assert found.latencies["status"].percentiles((90,))[0] > 400


def test_a_closed_loop_sees_a_stall_once_for_each_user() -> None:
    """That is why there are both loops: for a stalled second, two users record two slow answers."""

    async def run(world: SimulatedWorld) -> Recorder:
        found = create_recorder()
        kinds: Iterator[RequestKind] = repeat("status")
        await run_closed_loop(found, [(StallingTraffic(world), kinds) for _ in range(2)], until=5.0)
        return found

    found = simulate(run)
    assert round(found.latencies["status"].count * (1 - _share_within(found, 2.0))) == 2


def test_a_request_that_is_sent_late_is_timed_from_when_it_was_meant() -> None:
    """A client that cannot keep up does not make the server look better."""

    async def run(world: SimulatedWorld) -> Recorder:
        found = create_recorder()
        await asyncio.sleep(1.0)
        await found.send(StallingTraffic(world), "submit", intended=0.25)
        return found

    found = simulate(run)
    assert found.latencies["submit"].percentiles((50,))[0] >= 750
    assert found.lag.percentiles((50,))[0] >= 750


def test_requests_of_the_warm_up_do_not_count() -> None:
    """Only requests that were to be sent within the window are in the latencies."""

    async def run(world: SimulatedWorld) -> Recorder:
        found = create_recorder(start=1.0, end=1.5)
        await run_closed_loop(found, [(StallingTraffic(world), repeat("status"))], until=1.5)
        return found

    found = simulate(run)
    assert found.latencies["status"].count == pytest.approx(500, abs=2)
    assert found.answered["status"] == pytest.approx(500, abs=2)


def test_failures_are_timed_and_counted_and_are_no_answers() -> None:
    """A failed request is in the latencies and among the failures, and not in the rate."""

    async def run(_world: SimulatedWorld) -> Recorder:
        found = create_recorder()
        await found.send(FailingTraffic(), "submit", intended=0.0)
        return found

    found = simulate(run)
    assert found.failures == {"submit": {"UNAVAILABLE": 1}}
    assert found.latencies["submit"].count == 1
    assert not found.answered


def _share_within(found: Recorder, milliseconds: float) -> float:
    return max(
        (share for ms, share in found.latencies["status"].to_distribution() if ms <= milliseconds), default=0
    )
