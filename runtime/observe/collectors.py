"""Collectors for Prometheus: the metrics of a node, converted at a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from runtime.observe.metrics import SECONDS, ProcessMetrics


def make_registry(values: ProcessMetrics, *, before_scrape: Callable[[], None]) -> CollectorRegistry:
    """Make a registry of the metrics of a process; `before_scrape` is called at each scrape."""
    registry = CollectorRegistry()
    for collector in (
        _ScrapeHook(before_scrape),
        _Calls(values),
        _Transitions(values),
        _Events(values),
        _States(values),
        _Sweeps(values),
        _Counters(values),
        _Histograms(values),
    ):
        registry.register(collector)
    return registry


class _ScrapeHook(Collector):
    """Collects nothing, but is called before all others, as it is registered first."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def collect(self) -> Iterator[Metric]:
        self._act()
        return iter(())


class _ProcessCollector(Collector):
    """Base of the collectors. Prometheus' own counters cost three times as much, under a needless lock."""

    def __init__(self, values: ProcessMetrics) -> None:
        self._values = values


class _Calls(_ProcessCollector):
    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily("charter_calls", "Calls answered.", labels=("method", "code", "caller"))
        took = HistogramMetricFamily("charter_call_seconds", "Time to answer a call.", labels=("method",))
        for method, stats in self._values.calls.items():
            for (code, caller), count in list(stats.answers.items()):
                calls.add_metric((method, code, caller), count)
            bounds = [*map(str, SECONDS), "+Inf"]
            took.add_metric(
                (method,), list(zip(bounds, accumulate(stats.buckets), strict=True)), stats.seconds
            )
        yield calls
        yield took


class _Transitions(_ProcessCollector):
    def collect(self) -> Iterator[Metric]:
        transitions = CounterMetricFamily(
            "charter_transitions", "State changes.", labels=("entity", "transition", "actor")
        )
        for labels, count in list(self._values.transitions.items()):
            transitions.add_metric(labels, count)
        yield transitions


class _Events(_ProcessCollector):
    def collect(self) -> Iterator[Metric]:
        for counts in self._values.events:
            events = CounterMetricFamily("charter_events", "Events of the spec.", labels=("event",))
            for name, count in counts.items():
                events.add_metric((name,), count)
            yield events


class _States(_ProcessCollector):
    def collect(self) -> Iterator[Metric]:
        for store in self._values.stores:
            entities = GaugeMetricFamily("charter_entities", "Entities held.", labels=("entity", "state"))
            oldest = GaugeMetricFamily(
                "charter_oldest_age_seconds",
                "Age of the oldest entity in a state.",
                labels=("entity", "state"),
            )
            for entity, state, count, age in store.census():
                entities.add_metric((entity, state), count)
                oldest.add_metric((entity, state), age)
            yield entities
            yield oldest


class _Sweeps(_ProcessCollector):
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
        for sweep, known in list(self._values.sweeps.items()):
            at.add_metric(sweep, known.at)
            took.add_metric(sweep, known.took)
            changed.add_metric(sweep, known.changed, created=known.since)
            failed.add_metric(sweep, known.failed, created=known.since)
        if self._values.sweeps:
            yield from (at, took, changed, failed)


class _Counters(_ProcessCollector):
    def collect(self) -> Iterator[Metric]:
        for (name, meaning), entities in list(self._values.counters.items()):
            family = CounterMetricFamily(name, meaning, labels=("entity",))
            for entity, found in list(entities.items()):
                family.add_metric((entity,), found.value, created=found.since)
            yield family


class _Histograms(_ProcessCollector):
    def collect(self) -> Iterator[Metric]:
        for (name, meaning), entities in list(self._values.histograms.items()):
            family = HistogramMetricFamily(name, meaning, labels=("entity",))
            for entity, found in list(entities.items()):
                bounds = [*map(str, found.bounds), "+Inf"]
                counts = accumulate(found.buckets)
                family.add_metric((entity,), list(zip(bounds, counts, strict=True)), found.total)
            yield family
