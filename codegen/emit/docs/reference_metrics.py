"""Reference tables about metrics and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.docs.markdown import code, codes, format_table, prose
from codegen.emit.python.metric_counts import series
from codegen.emit.python.metrics_module import find_entity_name, list_index_keys, list_labels, list_state_keys
from codegen.language.metrics import Metric
from codegen.source.spec import Spec


def render_metrics(spec: Spec) -> str:
    """Render the table of metrics: type, labels with all their values, and meaning."""
    headers = ("Metric", "Type", "Labels", "Meaning")
    exported = {name: row for name, row in spec.metrics.metrics.items() if row.type != "window"}
    return format_table(
        headers,
        (
            (code(name), row.type, "; ".join(_format_labels(spec, row)), prose(row.doc))
            for name, row in exported.items()
        ),
    )


def render_windows(spec: Spec) -> str:
    """Render the table of counts over a time window, which are not exported."""
    headers = ("Count", "Length", "Meaning")
    rows = ((name, row) for name, row in spec.metrics.metrics.items() if row.type == "window")
    return format_table(headers, ((code(name), code(row.seconds), prose(row.doc)) for name, row in rows))


def render_alerts(spec: Spec) -> str:
    """Render the table of alerts and their rules."""
    headers = ("Alert", "Severity", "For", "When", "Meaning")
    return format_table(
        headers,
        (
            (code(name), row.severity, row.for_, prose(row.summary), prose(row.doc))
            for name, row in spec.metrics.alerts.items()
        ),
    )


def list_exporters(spec: Spec) -> list[str]:
    """List the components whose nodes export the metrics."""
    entities = [find_entity_name(metric) for metric in spec.metrics.metrics.values()]
    return [*dict.fromkeys(spec.lifecycle.entities[each].held_by for each in entities)]


def _format_labels(spec: Spec, metric: Metric) -> Iterator[str]:
    for number, label in enumerate(list_labels(metric)):
        values = dict.fromkeys(row[number] for row in series(spec, metric))
        yield f"{code(label)}: {codes(values or _list_label_values(spec, metric, label))}"


def _list_label_values(spec: Spec, metric: Metric, label: str) -> list[str]:
    """List the values of a label of a gauge."""
    if label == "percentile" and label != metric.label:
        return [f"p{each}" for each in metric.percentiles]
    if metric.states_of:
        return [*list_state_keys(spec, spec.lifecycle.entities[metric.states_of])]
    entity, _, index = (metric.size_of or metric.age_in or "").partition(".")
    store = spec.lifecycle.entities[entity].in_redis
    return [*list_index_keys(spec, spec.lifecycle.entities[entity], store.indexes[index])] if store else []
