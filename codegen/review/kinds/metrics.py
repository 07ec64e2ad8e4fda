"""Differences of metrics.yaml: metrics and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.kinds.pairs import (
    format_change,
    iter_added,
    iter_changed_keys,
    iter_changed_meanings,
    iter_common,
)
from codegen.source.spec import Spec


@kind("metric.added", "There is one more metric.", Verdict.COMPATIBLE)
def find_metric_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, metric in iter_added(old.metrics.metrics, new.metrics.metrics):
        yield SpecChange(name, f"the {metric.type} {name} is added", ("metrics", "metrics", name))


@kind("metric.removed", "A metric is gone, and dashboards that use it are empty.", Verdict.BEHAVIOUR)
def find_metric_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, metric in iter_added(new.metrics.metrics, old.metrics.metrics):
        yield SpecChange(name, f"the {metric.type} {name} is removed", ("metrics", "metrics", name))


@kind("metric.changed", "A metric measures something else, or has other labels.", Verdict.BEHAVIOUR)
def find_metric_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.metrics.metrics, new.metrics.metrics):
        for word, was, now in iter_changed_meanings(before, after):
            verdict = Verdict.COMPATIBLE if word == "area" else None
            text = f"{name} {word}: {format_change(was, now)}"
            yield SpecChange(f"{name}.{word}", text, ("metrics", "metrics", name, word), verdict=verdict)


@kind("alert.added", "There is one more alert.", Verdict.COMPATIBLE)
def find_alert_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, alert in iter_added(old.metrics.alerts, new.metrics.alerts):
        yield SpecChange(name, f"the {alert.severity} alert {name} is added", ("metrics", "alerts", name))


@kind("alert.removed", "An alert is gone.", Verdict.BEHAVIOUR)
def find_alert_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.metrics.alerts, old.metrics.alerts):
        yield SpecChange(name, f"the alert {name} is removed", ("metrics", "alerts", name))


@kind("alert.changed", "An alert has another expression, delay, severity or summary.", Verdict.BEHAVIOUR)
def find_alert_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.metrics.alerts, new.metrics.alerts):
        for word, was, now in iter_changed_keys(before, after):
            text = f"{name} {word}: {format_change(was, now)}"
            yield SpecChange(f"{name}.{word}", text, ("metrics", "alerts", name, word))
