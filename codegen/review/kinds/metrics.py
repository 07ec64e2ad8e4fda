"""Differences of metrics.yaml: metrics and alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.language.metrics import Counted
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.kinds.lifecycle.transitions import list_merged
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
    merged = list_merged(old, new)
    for name, before, after in iter_common(old.metrics.metrics, new.metrics.metrics):
        for word, was, now in iter_changed_meanings(before, after):
            is_same = word == "area" or (word == "counts" and _counts_the_same(was, now, merged))
            verdict = Verdict.COMPATIBLE if is_same else None
            text = f"{name} {word}: {format_change(was, now)}"
            yield SpecChange(f"{name}.{word}", text, ("metrics", "metrics", name, word), verdict=verdict)


def _counts_the_same(was: Counted | None, now: Counted | None, merged: Mapping[str, str]) -> bool:
    """Whether a metric counts the same changes, some of which are a part of others now."""
    if was is None or now is None:
        return False
    on = tuple(sorted({merged.get(change, change) for change in was.on}))
    return was.model_copy(update={"on": on}) == now.model_copy(update={"on": tuple(sorted(now.on))})


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
