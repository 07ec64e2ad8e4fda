"""Prometheus metrics of a node: calls, transitions, and what its stores hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Count = Callable[[str, str, float], None]
"""Takes the code, the caller and the seconds of a finished call."""

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Census(Protocol):
    """Something that can say how many entities it holds in each state."""

    def census(self) -> Iterable[tuple[str, str, int, float]]:
        """Rows of (entity, state, how many, age of the oldest in seconds)."""
        ...


class Metrics:
    """The metrics of one node, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "charter_calls", "Calls answered.", ("method", "code", "caller"), registry=self.registry
        )
        self._seconds = Histogram(
            "charter_call_seconds",
            "Time to answer a call.",
            ("method",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._transitions = Counter(
            "charter_transitions", "State changes.", ("entity", "transition", "actor"), registry=self.registry
        )
        self._moves: dict[tuple[str, str, str], Callable[[], None]] = {}
        self._served = 0

    @property
    def served(self) -> int:
        """How many calls were answered, whatever the answer."""
        return self._served

    def calls(self, method: str) -> Count:
        """Counts the calls of a method; the series are looked up once, not for each call."""
        observe = self._seconds.labels(method).observe
        known: dict[tuple[str, str], Callable[[], None]] = {}

        def count(code: str, caller: str, seconds: float) -> None:
            self._served += 1
            series = known.get((code, caller))
            if series is None:
                series = known[code, caller] = self._calls.labels(method, code, caller).inc
            series()
            observe(seconds)

        return count

    def transition(self, entity: str, name: str, actor: str) -> None:
        """Counts a state change."""
        series = self._moves.get((entity, name, actor))
        if series is None:
            series = self._moves[entity, name, actor] = self._transitions.labels(entity, name, actor).inc
        series()

    def watch(self, source: Census) -> None:
        """Adds the states that a store holds; they are counted when somebody looks."""
        self.registry.register(_StateCollector(source))

    def serve(self, port: int) -> Callable[[], None]:
        """Offers the metrics on a port; returns what stops it."""
        server, thread = start_http_server(port, registry=self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop


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
