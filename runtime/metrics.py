"""Prometheus metrics of a node: calls, transitions, and what its stores hold."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Count = Callable[[str, str, float], None]
"""Takes the code, the caller and the seconds of a finished call."""

Refresh = Callable[[], Awaitable[None]]
"""Reads anew what a collector tells, without ever failing."""

_PATIENCE_S = 2.0
"""How long a scrape waits for what has to be read from elsewhere; then it tells what is known."""
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_SHORTEST = _SECONDS[0]


class Census(Protocol):
    """Something that can say how many entities it holds in each state."""

    def census(self) -> Iterable[tuple[str, str, int, float]]:
        """Rows of (entity, state, how many, age of the oldest in seconds)."""
        ...


class Metrics:
    """The metrics of one node, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._refreshes: list[Refresh] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.registry.register(_Beforehand(self._refresh_from_thread))
        self._tallies = _CallCollector()
        self.registry.register(self._tallies)
        self._moves: Counts[tuple[str, str, str]] = Counts()
        self.registry.register(_MoveCollector(self._moves))

    @property
    def served(self) -> int:
        """How many calls were answered, whatever the answer."""
        return sum(each.answers.total() for each in self._tallies.tallies.values())

    def calls(self, method: str) -> Count:
        """Counts the calls of a method. What is counted is put in Prometheus' form when somebody looks."""
        tally = self._tallies.tallies.setdefault(method, Tally())
        answers, buckets = tally.answers, tally.buckets

        def count(code: str, caller: str, seconds: float) -> None:
            answers[code, caller] += 1
            buckets[0 if seconds <= _SHORTEST else bisect_left(_SECONDS, seconds)] += 1
            tally.seconds += seconds

        return count

    def transition(self, entity: str, name: str, actor: str, count: int = 1) -> None:
        """Counts a state change, or several of a kind."""
        self._moves[entity, name, actor] += count

    def events(self, names: Iterable[str]) -> dict[str, int]:
        """Where some events are to be counted. They are there from the start, so that a rate can be taken."""
        counts = dict.fromkeys(names, 0)
        self.registry.register(_EventCollector(counts))
        return counts

    def watch(self, source: Census) -> None:
        """Adds the states that a store holds; they are counted when somebody looks."""
        self.registry.register(_StateCollector(source))

    def add(self, collector: Collector, refresh: Refresh) -> None:
        """Adds what is read from elsewhere whenever somebody looks."""
        self._refreshes.append(refresh)
        self.registry.register(collector)

    async def text(self) -> bytes:
        """All of it in Prometheus' form."""
        await self._refresh()
        return generate_latest(self.registry)

    async def _refresh(self) -> None:
        if self._refreshes:
            await asyncio.wait(
                [asyncio.ensure_future(each()) for each in self._refreshes], timeout=_PATIENCE_S
            )

    def _refresh_from_thread(self) -> None:
        """The port of its own is served by threads, but whatever is read is read by the loop."""
        if self._loop is None or not self._refreshes or self._loop is _running_loop():
            return
        with suppress(TimeoutError, RuntimeError):
            asyncio.run_coroutine_threadsafe(self._refresh(), self._loop).result(2 * _PATIENCE_S)

    def serve(self, port: int) -> Callable[[], None]:
        """Offers the metrics on a port; returns what stops it."""
        self._loop = _running_loop()
        server, thread = start_http_server(port, registry=self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop


class _Beforehand(Collector):
    """Tells nothing. It was registered first, so it is asked before all others."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def collect(self) -> Iterator[Metric]:
        self._act()
        return iter(())


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@dataclass(slots=True)
class Tally:
    """The calls of one method: answers by code and caller, and how long they took, by bucket."""

    answers: Counts[tuple[str, str]] = field(default_factory=Counts)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(_SECONDS) + 1))
    seconds: float = 0.0


class _CallCollector(Collector):
    """Prometheus' own counters cost three times as much for each call, under a lock that nobody needs."""

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}

    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily("charter_calls", "Calls answered.", labels=("method", "code", "caller"))
        took = HistogramMetricFamily("charter_call_seconds", "Time to answer a call.", labels=("method",))
        for method, tally in self.tallies.items():
            for (code, caller), count in list(tally.answers.items()):
                calls.add_metric((method, code, caller), count)
            bounds = [*map(str, _SECONDS), "+Inf"]
            took.add_metric(
                (method,), list(zip(bounds, accumulate(tally.buckets), strict=True)), tally.seconds
            )
        yield calls
        yield took


class _MoveCollector(Collector):
    def __init__(self, moves: Counts[tuple[str, str, str]]) -> None:
        self._moves = moves

    def collect(self) -> Iterator[Metric]:
        moves = CounterMetricFamily(
            "charter_transitions", "State changes.", labels=("entity", "transition", "actor")
        )
        for labels, count in list(self._moves.items()):
            moves.add_metric(labels, count)
        yield moves


class _EventCollector(Collector):
    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        told = CounterMetricFamily("charter_events", "Events of the spec.", labels=("event",))
        for name, count in self._counts.items():
            told.add_metric((name,), count)
        yield told


class _StateCollector(Collector):
    def __init__(self, source: Census) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        held = GaugeMetricFamily("charter_entities", "Entities held.", labels=("entity", "state"))
        oldest = GaugeMetricFamily(
            "charter_oldest_age_seconds", "Age of the oldest entity in a state.", labels=("entity", "state")
        )
        for entity, state, count, age in self._source.census():
            held.add_metric((entity, state), count)
            oldest.add_metric((entity, state), age)
        yield held
        yield oldest
