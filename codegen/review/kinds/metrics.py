"""Differences of metrics.yaml: what is measured, and when somebody is told."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.review.difference import Found, Verdict, kind
from codegen.review.kinds.pairs import added, kept, meant, turn, words
from codegen.source.spec import Spec


@kind("metric.added", "There is one more metric.", Verdict.COMPATIBLE)
def metric_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, metric in added(old.metrics.metrics, new.metrics.metrics):
        yield Found(name, f"the {metric.type} {name} is added", ("metrics", "metrics", name))


@kind("metric.removed", "A metric is gone, and whoever looks at it sees nothing.", Verdict.BEHAVIOUR)
def metric_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, metric in added(new.metrics.metrics, old.metrics.metrics):
        yield Found(name, f"the {metric.type} {name} is removed", ("metrics", "metrics", name))


@kind("metric.changed", "A metric measures something else, or has other labels.", Verdict.BEHAVIOUR)
def metric_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.metrics.metrics, new.metrics.metrics):
        for word, was, now in meant(before, after):
            verdict = Verdict.COMPATIBLE if word == "area" else None
            text = f"{name} {word}: {turn(was, now)}"
            yield Found(f"{name}.{word}", text, ("metrics", "metrics", name, word), verdict=verdict)


@kind("alert.added", "Somebody is told of one more thing.", Verdict.COMPATIBLE)
def alert_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, alert in added(old.metrics.alerts, new.metrics.alerts):
        yield Found(name, f"the {alert.severity} alert {name} is added", ("metrics", "alerts", name))


@kind("alert.removed", "Nobody is told of something any more.", Verdict.BEHAVIOUR)
def alert_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.metrics.alerts, old.metrics.alerts):
        yield Found(name, f"the alert {name} is removed", ("metrics", "alerts", name))


@kind("alert.changed", "Somebody is told at another time, or otherwise.", Verdict.BEHAVIOUR)
def alert_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.metrics.alerts, new.metrics.alerts):
        for word, was, now in words(before, after):
            text = f"{name} {word}: {turn(was, now)}"
            yield Found(f"{name}.{word}", text, ("metrics", "alerts", name, word))
