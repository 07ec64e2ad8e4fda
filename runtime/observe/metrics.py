"""Metrics of a node: calls, transitions, events, and the states of its stores. Rendered at a scrape."""

from __future__ import annotations

import asyncio
import importlib
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from time import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.registry import Collector

Count = Callable[[str, str, float], None]
"""Counts a finished call: its code, its caller and its seconds."""

Refresh = Callable[[], Awaitable[None]]
"""Refreshes the values of a collector; never fails."""

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the latency buckets of calls."""
_SHORTEST = SECONDS[0]
_PATIENCE_S = 2.0
"""How long a scrape waits for a refresh; then it renders the last known values."""


class Census(Protocol):
    """A store that counts its entities by state."""

    def census(self) -> Iterable[tuple[str, str, int, float]]:
        """Rows of (entity, state, how many, age of the oldest in seconds)."""
        ...


class CallStats:
    """The calls of one method: counts by code and caller, and latencies by bucket."""

    def __init__(self) -> None:
        self.answers: Counts[tuple[str, str]] = Counts()
        self.buckets = [0] * (len(SECONDS) + 1)
        self.seconds = 0.0


class SweepStats:
    """The sweeps of one due transition."""

    def __init__(self) -> None:
        self.since = time()
        self.at = 0.0
        """When the last sweep ended, in seconds since the epoch."""
        self.took = 0.0
        self.changed = 0
        self.failed = 0


class Counter:
    """A counter."""

    def __init__(self) -> None:
        self.since = time()
        self.value = 0.0

    def add(self, count: float = 1.0) -> None:
        """Increment the counter."""
        self.value += count


class Histogram:
    """A histogram."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add_all(self, sizes: Iterable[float]) -> None:
        """Observe each value."""
        for each in sizes:
            self.buckets[bisect_left(self.bounds, each)] += 1
            self.total += each


class ProcessMetrics:
    """The current values of all metrics that the process counts itself."""

    def __init__(self) -> None:
        self.calls: dict[str, CallStats] = {}
        """By method."""
        self.transitions: Counts[tuple[str, str, str]] = Counts()
        """Transitions, by entity, name and actor."""
        self.events: list[dict[str, int]] = []
        self.stores: list[Census] = []
        self.sweeps: dict[tuple[str, str], SweepStats] = {}
        """By entity and change."""
        self.counters: dict[tuple[str, str], dict[str, Counter]] = {}
        """By the name and the meaning of a metric, and by entity."""
        self.histograms: dict[tuple[str, str], dict[str, Histogram]] = {}


class Metrics:
    """The metrics of one node."""

    def __init__(self) -> None:
        self._values = ProcessMetrics()
        self._refreshes: list[Refresh] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def registry(self) -> CollectorRegistry:
        """The registry for Prometheus, whose library is loaded at the first scrape, never by a command."""
        from runtime.observe.collectors import make_registry

        return make_registry(self._values, before_scrape=self._refresh_from_thread)

    @property
    def served(self) -> int:
        """The number of answered calls, failures included."""
        return sum(each.answers.total() for each in self._values.calls.values())

    def call_counter(self, method: str) -> Count:
        """Return the function that counts the calls of a method; it is rendered at a scrape."""
        stats = self._values.calls.setdefault(method, CallStats())
        answers, buckets = stats.answers, stats.buckets

        def count(code: str, caller: str, seconds: float) -> None:
            answers[code, caller] += 1
            buckets[0 if seconds <= _SHORTEST else bisect_left(SECONDS, seconds)] += 1
            stats.seconds += seconds

        return count

    def count_transition(self, entity: str, name: str, actor: str, count: int = 1) -> None:
        """Count a transition, or several of a kind."""
        self._values.transitions[entity, name, actor] += count

    def record_sweep(
        self, entity: str, change: str, at_ms: int, took_s: float, changed: int, *, failed: bool
    ) -> None:
        """Record a sweep, so that alerts can see that sweeps happen at all."""
        known = self._values.sweeps.setdefault((entity, change), SweepStats())
        known.at, known.took = at_ms / 1000, took_s
        known.changed += changed
        known.failed += failed

    def counter(self, name: str, meaning: str, entity: str) -> Counter:
        """Return a counter of an entity. It is exported from the start, at 0, so that a rate can be taken."""
        return self._values.counters.setdefault((name, meaning), {}).setdefault(entity, Counter())

    def histogram(self, name: str, meaning: str, entity: str, bounds: Sequence[float]) -> Histogram:
        """Return a histogram of an entity."""
        return self._values.histograms.setdefault((name, meaning), {}).setdefault(entity, Histogram(bounds))

    def event_counters(self, names: Iterable[str]) -> dict[str, int]:
        """Return the counters of events. They are exported at 0 from the start, for rates."""
        counts = dict.fromkeys(names, 0)
        self._values.events.append(counts)
        return counts

    def add_census(self, source: Census, refresh: Refresh | None = None) -> None:
        """Add the state counts of a store, read at each scrape; by `refresh` where that has to wait."""
        self._values.stores.append(source)
        if refresh is not None:
            self._refreshes.append(refresh)

    def add_collector(self, collector: Collector, refresh: Refresh) -> None:
        """Add a collector whose values are refreshed at each scrape."""
        self._refreshes.append(refresh)
        self.registry.register(collector)

    async def render(self) -> bytes:
        """Render all metrics in the text format of Prometheus."""
        await self._refresh()
        if "registry" not in vars(self):
            # In a thread, as the import takes a while.
            await asyncio.to_thread(importlib.import_module, "runtime.observe.collectors")
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    async def _refresh(self) -> None:
        if self._refreshes:
            await asyncio.wait(
                [asyncio.ensure_future(each()) for each in self._refreshes], timeout=_PATIENCE_S
            )

    def _refresh_from_thread(self) -> None:
        """Refresh from the thread that serves the metrics port, as all reads belong to the event loop."""
        if self._loop is None or not self._refreshes or self._loop is _running_loop():
            return
        with suppress(TimeoutError, RuntimeError):
            asyncio.run_coroutine_threadsafe(self._refresh(), self._loop).result(2 * _PATIENCE_S)

    def serve(self, port: int) -> Callable[[], None]:
        """Serve the metrics on a port of their own; return the function that stops it."""
        from prometheus_client import start_http_server

        self._loop = _running_loop()
        server, thread = start_http_server(port, registry=self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
