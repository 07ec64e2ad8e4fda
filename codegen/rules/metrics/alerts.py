"""Rules of metrics.yaml about the metrics and labels that alerts read."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.diagnostics import Place
from codegen.language.metrics import Metric
from codegen.rules.lookup import get_fields
from codegen.rules.metrics.promql import NotPromQL, Selector, parse_selectors
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.rules.storage.redis_keys import placeholders
from codegen.source.spec import Spec, field_enum

_OF_ANY_PROCESS = ("charter_", "process_", "python_", "up")
_OF_HISTOGRAMS = ("_bucket", "_sum", "_count")
_OF_SCRAPERS = ("instance", "job")
_EXAMPLE = "Write it in PromQL, such as 'sum by (label) (rate(metric_total[5m])) > 1'."


@rule(
    "E857",
    "Prometheus refuses the expression of an alert, or it uses a metric that is undeclared or not exported.",
    wrong="YardFull: {expr: yard_bike > 100, …}",
    right="YardFull: {expr: yard_bikes > 100, …}",
    needs=("metrics",),
    spreads=True,
)
def check_alert_metrics(spec: Spec) -> Iterator[Finding]:
    exported = _map_exported_metrics(spec)
    for name, alert in spec.metrics.alerts.items():
        place = spec.place("metrics", "alerts", name, "expr")
        try:
            found = parse_selectors(alert.expr)
        except NotPromQL as problem:
            yield Finding(place, f"Prometheus refuses the expression of '{name}': {problem}.", _EXAMPLE)
            continue
        for selector in found:
            if selector.metric.startswith(_OF_ANY_PROCESS):
                continue
            metric = spec.metrics.metrics.get(selector.metric)
            if not selector.metric:
                message = f"'{name}' selects by labels or by a pattern, and names no metric."
                yield Finding(place, message, "Write the name of a metric before the labels.")
            elif metric and metric.type == "window":
                message = f"'{name}' looks at '{selector.metric}', which is a window and not exported."
                yield Finding(place, message, "Count the same in a counter, and look at that.")
            elif metric and metric.type == "histogram":
                parts = ", ".join(f"{selector.metric}{part}" for part in _OF_HISTOGRAMS)
                message = f"'{name}' looks at '{selector.metric}', which is a histogram and has parts only."
                yield Finding(place, message, f"Known: {parts}.")
            else:
                lack = "which no metric is called"
                yield from report_unknown(spec, place, f"'{name}' looks at", selector.metric, exported, lack)
        if not found:
            yield Finding(place, f"'{name}' looks at no metric.", "Name one in its expression.")


@rule(
    "E858",
    "An alert looks at a label that a metric does not have, or at a value that it never has.",
    wrong="YardFull: {expr: 'yard_bikes{size=\"tiny\"} > 100', …}",
    right="YardFull: {expr: 'yard_bikes{size=\"small\"} > 100', …}",
    needs=("metrics", "lifecycle", "types"),
)
def check_alert_labels(spec: Spec) -> Iterator[Finding]:
    exported = _map_exported_metrics(spec)
    for name, alert in spec.metrics.alerts.items():
        place = spec.place("metrics", "alerts", name, "expr")
        try:
            found = parse_selectors(alert.expr)
        except NotPromQL:
            continue
        for selector in found:
            if selector.metric in exported:
                yield from _check_labels(spec, place, name, selector, exported[selector.metric])


def _check_labels(
    spec: Spec, place: Place, name: str, selector: Selector, metric: Metric
) -> Iterator[Finding]:
    labels = find_labels(spec, metric)
    known = [*labels, *(["le"] if selector.metric.endswith("_bucket") else []), *_OF_SCRAPERS]
    for label, operator, text in selector.labels:
        lack = f"which {selector.metric} does not have"
        yield from report_unknown(spec, place, f"'{name}' compares the label", label, known, lack)
        values = labels.get(label, ())
        # A pattern may be anything; most are words with bars between them.
        texts = text.split("|") if operator in ("=~", "!~") else [text]
        for each in texts if values and text.replace("|", "").replace("_", "").isalnum() else ():
            lack = f"which '{label}' of {selector.metric} never is"
            yield from report_unknown(spec, place, f"'{name}' compares with", each, values, lack)


def _map_exported_metrics(spec: Spec) -> dict[str, Metric]:
    """Map the names under which metrics are exported to their metrics."""
    found: dict[str, Metric] = {}
    for name, metric in spec.metrics.metrics.items():
        if metric.type == "histogram":
            found |= {f"{name}{part}": metric for part in _OF_HISTOGRAMS}
        elif metric.type != "window":
            found[name] = metric
    return found


def find_labels(spec: Spec, metric: Metric) -> dict[str, tuple[str, ...]]:
    """Find the labels of a metric and all their values; none where they are not known."""
    found: dict[str, dict[str, None]] = {}
    if counts := metric.counts:
        for change in counts.on:
            fixed = counts.fixed.get(change, {})
            for label in (*counts.labels, *fixed):
                values = [fixed[label]] if label in fixed else counts.values.get(label)
                if values is None:
                    values = _list_enum_words(spec, change.partition(".")[0], counts.labels[label])
                found.setdefault(label, {}).update(dict.fromkeys(values))
    if metric.label:
        found[metric.label] = dict.fromkeys(_list_gauge_values(spec, metric))
    if len(metric.percentiles) > 1:
        found["percentile"] = dict.fromkeys(map(str, metric.percentiles))
    return {label: tuple(values) for label, values in found.items()}


def _list_gauge_values(spec: Spec, metric: Metric) -> tuple[str, ...]:
    title, _, which = (metric.size_of or metric.age_in or metric.states_of or "").partition(".")
    entity = spec.lifecycle.entities.get(title)
    if entity is None or entity.in_redis is None:
        return ()
    index = entity.in_redis.indexes.get(which)
    named = placeholders(index.key) if index else [entity.status]
    return _list_enum_words(spec, title, named[0]) if named else ()


def _list_enum_words(spec: Spec, title: str, field: str) -> tuple[str, ...]:
    """List the values of an enum field of a record, as they are spelled in labels."""
    entity = spec.lifecycle.entities.get(title)
    row = (get_fields(spec, entity.record) or {}).get(field) if entity else None
    enum = field_enum(spec, row) if row else None
    return tuple(enum.word(value) for value, each in enum.values.items() if each.number) if enum else ()
