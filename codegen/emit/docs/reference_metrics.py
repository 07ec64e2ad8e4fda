"""Tables of the reference about metrics and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.docs.markdown import code, codes, prose, table
from codegen.emit.python.metrics_module import find_entity_name, list_index_keys, list_labels, list_state_keys
from codegen.emit.redis.lua_metrics import series
from codegen.language.metrics import Metric
from codegen.source.spec import Spec


def metrics(spec: Spec) -> str:
    """Every metric: its type, its labels with all values that there are from the start, and what it says."""
    headers = ("Metric", "Type", "Labels", "Meaning")
    exported = {name: row for name, row in spec.metrics.metrics.items() if row.type != "window"}
    return table(
        headers,
        (
            (code(name), row.type, "; ".join(_labels(spec, row)), prose(row.doc))
            for name, row in exported.items()
        ),
    )


def windows(spec: Spec) -> str:
    """What is counted for a while only, and not exported."""
    headers = ("Count", "Length", "Meaning")
    rows = ((name, row) for name, row in spec.metrics.metrics.items() if row.type == "window")
    return table(headers, ((code(name), code(row.seconds), prose(row.doc)) for name, row in rows))


def alerts(spec: Spec) -> str:
    """Every alert and its rule."""
    headers = ("Alert", "Severity", "For", "When", "Meaning")
    return table(
        headers,
        (
            (code(name), row.severity, row.for_, prose(row.summary), prose(row.doc))
            for name, row in spec.metrics.alerts.items()
        ),
    )


def tellers(spec: Spec) -> list[str]:
    """The components whose nodes tell the metrics."""
    entities = [find_entity_name(metric) for metric in spec.metrics.metrics.values()]
    return [*dict.fromkeys(spec.lifecycle.entities[each].held_by for each in entities)]


def _labels(spec: Spec, metric: Metric) -> Iterator[str]:
    for number, label in enumerate(list_labels(metric)):
        values = dict.fromkeys(row[number] for row in series(spec, metric))
        yield f"{code(label)}: {codes(values or _values(spec, metric, label))}"


def _values(spec: Spec, metric: Metric, label: str) -> list[str]:
    """The values of the label of a gauge."""
    if label == "percentile" and label != metric.label:
        return [f"p{each}" for each in metric.percentiles]
    if metric.states_of:
        return [*list_state_keys(spec, spec.lifecycle.entities[metric.states_of])]
    entity, _, index = (metric.size_of or metric.age_in or "").partition(".")
    kept = spec.lifecycle.entities[entity].in_redis
    return [*list_index_keys(spec, spec.lifecycle.entities[entity], kept.indexes[index])] if kept else []
