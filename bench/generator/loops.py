"""Closed and open loops: users that wait for their answers, and arrivals at given times."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bench.generator.traffic import Traffic
from bench.percentiles import LatencyHistogram
from bench.workload import SECONDARY, RequestKind
from runtime.call.conditions import Failure

Clock = Callable[[], float]
"""Seconds on the clock that the event loop sleeps by."""


class Recorder:
    """Recorder of the requests whose intended time is in the window."""

    def __init__(self, clock: Clock, start: float, end: float) -> None:
        self.clock = clock
        self.start, self.end = start, end
        self.latencies: dict[RequestKind, LatencyHistogram] = {}
        self.answered: Counter[RequestKind] = Counter()
        """Successful answers that came within the window, whenever the requests were sent."""
        self.failures: dict[RequestKind, Counter[str]] = {}
        self.lag = LatencyHistogram()
        """How much later than intended requests were sent."""
        self.recent, self.recent_calls = LatencyHistogram(), 0

    async def send(self, traffic: Traffic, kind: RequestKind, intended: float) -> None:
        """Send a request and measure from its intended time, however late it was really sent."""
        sent = self.clock()
        # A timer may fire a little early, which must not shorten the latency.
        origin = min(intended, sent)
        code = None
        try:
            kind = await traffic.send(kind, origin)
        except Failure as failure:
            code = failure.grpc
        self._record(kind, origin, sent, code)

    def _record(self, kind: RequestKind, origin: float, sent: float, code: str | None) -> None:
        done = self.clock()
        if self.start <= done < self.end and code is None:
            self.answered[kind] += 1
            if kind not in SECONDARY:
                self.recent.record(done - origin)
                self.recent_calls += 1
        if self.start <= origin < self.end:
            self.latencies.setdefault(kind, LatencyHistogram()).record(done - origin)
            self.lag.record(sent - origin)
            if code is not None:
                self.failures.setdefault(kind, Counter())[code] += 1


async def run_closed_loop(
    recorder: Recorder, users: Iterable[tuple[Traffic, Iterator[RequestKind]]], until: float
) -> None:
    """Let each user send its next request as soon as the last is answered."""

    async def use(user: Traffic, kinds: Iterator[RequestKind]) -> None:
        while (now := recorder.clock()) < until:
            await recorder.send(user, next(kinds), now)

    await asyncio.gather(*(use(user, kinds) for user, kinds in users))


async def run_open_loop(
    recorder: Recorder, user: Traffic, kinds: Iterator[RequestKind], times: Iterable[float]
) -> None:
    """Send at the given times, whether or not earlier requests have been answered."""
    in_flight: set[asyncio.Task[Any]] = set()
    for intended in times:
        if (early := intended - recorder.clock()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(recorder.send(user, next(kinds), intended))
        in_flight.add(task)
        task.add_done_callback(in_flight.discard)
    await asyncio.gather(*in_flight)
