"""What a node counts, in Prometheus' form. It is put in it when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from runtime.observe.metrics import SECONDS, Counted


def registry_of(counted: Counted, *, beforehand: Callable[[], None]) -> CollectorRegistry:
    """A registry that tells what is counted, after it has done something else each time."""
    registry = CollectorRegistry()
    for collector in (
        _Beforehand(beforehand),
        _Calls(counted),
        _Moves(counted),
        _Events(counted),
        _States(counted),
        _Sweeps(counted),
        _Sums(counted),
        _Spreads(counted),
    ):
        registry.register(collector)
    return registry


class _Beforehand(Collector):
    """Tells nothing. It was registered first, so it is asked before all others."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def collect(self) -> Iterator[Metric]:
        self._act()
        return iter(())


class _Told(Collector):
    """Prometheus' own counters cost three times as much for each call, under a lock that nobody needs."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted


class _Calls(_Told):
    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily("charter_calls", "Calls answered.", labels=("method", "code", "caller"))
        took = HistogramMetricFamily("charter_call_seconds", "Time to answer a call.", labels=("method",))
        for method, tally in self._counted.calls.items():
            for (code, caller), count in list(tally.answers.items()):
                calls.add_metric((method, code, caller), count)
            bounds = [*map(str, SECONDS), "+Inf"]
            took.add_metric(
                (method,), list(zip(bounds, accumulate(tally.buckets), strict=True)), tally.seconds
            )
        yield calls
        yield took


class _Moves(_Told):
    def collect(self) -> Iterator[Metric]:
        moves = CounterMetricFamily(
            "charter_transitions", "State changes.", labels=("entity", "transition", "actor")
        )
        for labels, count in list(self._counted.moves.items()):
            moves.add_metric(labels, count)
        yield moves


class _Events(_Told):
    def collect(self) -> Iterator[Metric]:
        for counts in self._counted.events:
            told = CounterMetricFamily("charter_events", "Events of the spec.", labels=("event",))
            for name, count in counts.items():
                told.add_metric((name,), count)
            yield told


class _States(_Told):
    def collect(self) -> Iterator[Metric]:
        for store in self._counted.stores:
            held = GaugeMetricFamily("charter_entities", "Entities held.", labels=("entity", "state"))
            oldest = GaugeMetricFamily(
                "charter_oldest_age_seconds",
                "Age of the oldest entity in a state.",
                labels=("entity", "state"),
            )
            for entity, state, count, age in store.census():
                held.add_metric((entity, state), count)
                oldest.add_metric((entity, state), age)
            yield held
            yield oldest


class _Sweeps(_Told):
    def collect(self) -> Iterator[Metric]:
        labels = ("entity", "change")
        at = GaugeMetricFamily(
            "charter_sweep_last_run_seconds",
            "When the last look for what is due ended, since the epoch.",
            labels=labels,
        )
        took = GaugeMetricFamily("charter_sweep_last_seconds", "How long the last look took.", labels=labels)
        changed = CounterMetricFamily("charter_swept", "Entities changed by the clock.", labels=labels)
        failed = CounterMetricFamily("charter_sweep_failures", "Looks that failed.", labels=labels)
        for sweep, known in list(self._counted.sweeps.items()):
            at.add_metric(sweep, known.at)
            took.add_metric(sweep, known.took)
            changed.add_metric(sweep, known.changed, created=known.since)
            failed.add_metric(sweep, known.failed, created=known.since)
        if self._counted.sweeps:
            yield from (at, took, changed, failed)


class _Sums(_Told):
    def collect(self) -> Iterator[Metric]:
        for (name, meaning), entities in list(self._counted.sums.items()):
            family = CounterMetricFamily(name, meaning, labels=("entity",))
            for entity, found in list(entities.items()):
                family.add_metric((entity,), found.value, created=found.since)
            yield family


class _Spreads(_Told):
    def collect(self) -> Iterator[Metric]:
        for (name, meaning), entities in list(self._counted.spreads.items()):
            family = HistogramMetricFamily(name, meaning, labels=("entity",))
            for entity, found in list(entities.items()):
                bounds = [*map(str, found.bounds), "+Inf"]
                counts = accumulate(found.buckets)
                family.add_metric((entity,), list(zip(bounds, counts, strict=True)), found.total)
            yield family
