"""The two ways to send: users who wait for their answer, and arrivals that wait for nobody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bench.generator.traffic import Traffic
from bench.percentiles import Times
from bench.workload import SECONDARY, Kind
from runtime.call.conditions import Failure

Clock = Callable[[], float]
"""Seconds on the clock that the event loop sleeps by."""


class Recorder:
    """Takes down every request whose time to be sent lies in the window."""

    def __init__(self, clock: Clock, start: float, end: float) -> None:
        self.clock = clock
        self.start, self.end = start, end
        self.latencies: dict[Kind, Times] = {}
        self.answered: Counter[Kind] = Counter()
        """Good answers that came within the window, whenever they were asked for."""
        self.failures: dict[Kind, Counter[str]] = {}
        self.lag = Times()
        """How much later than intended requests were sent."""
        self.recent, self.recent_calls = Times(), 0

    async def send(self, traffic: Traffic, kind: Kind, intended: float) -> None:
        """Sends a request and measures from when it was to be sent, however late that really was."""
        sent = self.clock()
        # A timer may ring a little early; nobody is to gain by that.
        origin = min(intended, sent)
        code = None
        try:
            kind = await traffic.send(kind, origin)
        except Failure as failure:
            code = failure.grpc
        self._take_down(kind, origin, sent, code)

    def _take_down(self, kind: Kind, origin: float, sent: float, code: str | None) -> None:
        done = self.clock()
        if self.start <= done < self.end and code is None:
            self.answered[kind] += 1
            if kind not in SECONDARY:
                self.recent.record(done - origin)
                self.recent_calls += 1
        if self.start <= origin < self.end:
            self.latencies.setdefault(kind, Times()).record(done - origin)
            self.lag.record(sent - origin)
            if code is not None:
                self.failures.setdefault(kind, Counter())[code] += 1


async def closed(recorder: Recorder, users: Iterable[tuple[Traffic, Iterator[Kind]]], until: float) -> None:
    """Each user sends its next request as soon as the last is answered."""

    async def use(user: Traffic, kinds: Iterator[Kind]) -> None:
        while (now := recorder.clock()) < until:
            await recorder.send(user, next(kinds), now)

    await asyncio.gather(*(use(user, kinds) for user, kinds in users))


async def arriving(recorder: Recorder, user: Traffic, kinds: Iterator[Kind], times: Iterable[float]) -> None:
    """Sends at the given times, whether or not earlier requests have been answered."""
    under_way: set[asyncio.Task[Any]] = set()
    for intended in times:
        if (early := intended - recorder.clock()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(recorder.send(user, next(kinds), intended))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
