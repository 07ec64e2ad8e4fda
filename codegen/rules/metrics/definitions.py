"""Rules of metrics.yaml about metrics: keys, names, counted changes, labels and measures."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.language.metrics import Metric
from codegen.rules.lifecycle.entity_changes import find_appliers
from codegen.rules.lookup import format_list, get_fields, is_other_type
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec, field_enum

SOURCES = ("size_of", "age_in", "states_of", "used_of")
"""The keys that say what a gauge measures; it has exactly one."""
_NEEDED = {
    "counter": ("counts",),
    "histogram": ("counts", "since", "buckets"),
    "window": ("counts", "seconds"),
    "gauge": (),
}
_LONGEST_WINDOW = 120
_RESERVED = ("charter_", "process_", "python_")


@rule(
    "E851",
    "A metric lacks what its type needs, or says what another type has.",
    wrong="bike_seconds: {type: histogram, counts: {on: [bike.home]}, since: left_at, …}",
    right="bike_seconds: {type: histogram, counts: {on: [bike.home]}, since: left_at, buckets: [1, 10], …}",
    spreads=True,
)
def check_metric_keys(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        place, needed = spec.place("metrics", "metrics", name, key=True), _NEEDED[metric.type]
        present = [
            word for word in ("counts", "since", "buckets", "seconds", *SOURCES) if getattr(metric, word)
        ]
        lacking = [word for word in needed if word not in present]
        sources = [word for word in present if word in SOURCES]
        unexpected = [
            word
            for word in present
            if word not in needed and not (metric.type == "gauge" and word in SOURCES)
        ]
        if lacking:
            message = f"'{name}' is a {metric.type} and lacks {format_list(lacking)}."
            yield Finding(place, message, f"Add '{lacking[0]}: …'.")
        elif unexpected:
            there = spec.place("metrics", "metrics", name, unexpected[0], key=True)
            message = f"'{name}' is a {metric.type}, for which '{unexpected[0]}' means nothing."
            yield Finding(there, message, "Remove it, or change the type.")
        elif metric.type == "gauge" and len(sources) != 1:
            message = f"'{name}' is a gauge of {format_list(sources) if sources else 'nothing'}."
            yield Finding(place, message, f"Say exactly one of {format_list(list(SOURCES))}.")
        elif metric.buckets != tuple(sorted(set(metric.buckets))):
            there = spec.place("metrics", "metrics", name, "buckets")
            yield Finding(there, f"The buckets of '{name}' do not rise.", "Sort them.")
        elif bool(metric.percentiles) != bool(metric.age_in):
            message = f"'{name}' says only one of 'age_in' and 'percentiles', which go together."
            yield Finding(place, message, "Say both or neither.")
        elif any(not 1 <= each <= 100 for each in metric.percentiles):
            there = spec.place("metrics", "metrics", name, "percentiles")
            yield Finding(there, f"'{name}' has a percentile that there is not.", "They go from 1 to 100.")


@rule(
    "E852",
    "A metric has a name that its type or the engine does not allow.",
    wrong="bikes_left: {type: counter, …}",
    right="bikes_left_total: {type: counter, …}",
)
def check_metric_names(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        place = spec.place("metrics", "metrics", name, key=True)
        if metric.type == "counter" and not name.endswith("_total"):
            yield Finding(place, f"'{name}' is a counter.", f"Call it '{name}_total'.")
        elif name.endswith(("_bucket", "_sum", "_count")):
            message = f"'{name}' ends like a part of a histogram, and cannot be distinguished from one."
            yield Finding(place, message, "Choose another name.")
        elif name.startswith(_RESERVED):
            message = f"'{name}' begins like the metrics that every process has."
            yield Finding(place, message, "Choose another name.")


@rule(
    "E853",
    "A metric counts something that does not happen, or that no script counts.",
    wrong="bikes_lost_total: {counts: {on: [bike.loose]}, …}",
    right="bikes_lost_total: {counts: {on: [bike.lose]}, …}",
    needs=("lifecycle",),
    spreads=True,
)
def check_counted_changes(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        for index, change in enumerate(metric.counts.on if metric.counts else ()):
            place = spec.place("metrics", "metrics", name, "counts", "on", index)
            title, _, what = change.partition(".")
            subject = f"'{name}' counts"
            entity = spec.lifecycle.entities.get(title)
            if entity is None:
                known = [f"{each}.{what}" for each in spec.lifecycle.entities]
                yield from report_unknown(spec, place, subject, change, known, f"and there is no {title}")
            elif entity.in_redis is None or entity.in_redis.metrics is None:
                message = f"{subject} '{change}', and nothing says where scripts count that."
                yield Finding(place, message, f"Name {title} and 'metrics' below 'redis' in storage.yaml.")
            else:
                known = [f"{title}.{each}" for each in list_countable_changes(entity)]
                yield from report_unknown(spec, place, subject, change, known, "which never happens")
        for change in metric.counts.fixed if metric.counts else ():
            place = spec.place("metrics", "metrics", name, "counts", "fixed", change, key=True)
            lack, known = "which it does not count", list(metric.counts.on if metric.counts else ())
            yield from report_unknown(spec, place, f"'{name}' has fixed labels for", change, known, lack)


def list_countable_changes(entity: Entity) -> list[str]:
    """List the changes of an entity that a metric can count."""
    deletion = ["delete"] if entity.delete else []
    return ["create", *entity.transitions, *entity.updates, *deletion]


@rule(
    "E854",
    "A label of a metric has no value for something that is counted, or one that is not said.",
    wrong="drops_total: {counts: {on: [bike.drop], labels: {reason: reason}}, …}",
    right="drops_total: {counts: {on: [bike.drop], labels: {reason: reason}, values: {reason: [late]}}, …}",
    needs=("lifecycle", "types", "metrics"),
)
def check_labels(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        if (counts := metric.counts) is None:
            continue
        path = ("metrics", name, "counts")
        fixed = {label for labels in counts.fixed.values() for label in labels}
        for label in dict.fromkeys((*counts.labels, *sorted(fixed))):
            yield from _check_label_values(spec, name, metric, label)
        for label in counts.values:
            place = spec.place("metrics", *path, "values", label, key=True)
            known = [*counts.labels, *fixed]
            yield from report_unknown(
                spec, place, f"'{name}' has values of", label, known, "which is no label of it"
            )
        for change, labels in counts.fixed.items():
            for label, text in labels.items():
                place = spec.place("metrics", *path, "fixed", change, label)
                if label in counts.values and text not in counts.values[label]:
                    lack = f"which is none of the values of '{label}'"
                    yield from report_unknown(
                        spec, place, f"'{name}' is fixed to", text, counts.values[label], lack
                    )
                elif "|" in text:
                    yield Finding(place, "A value of a label has a '|' in it.", "Leave it out.")
        for label, texts in counts.values.items():
            for index, text in enumerate(texts):
                if "|" in text:
                    place = spec.place("metrics", *path, "values", label, index)
                    yield Finding(place, "A value of a label has a '|' in it.", "Leave it out.")


def _check_label_values(spec: Spec, name: str, metric: Metric, label: str) -> Iterator[Finding]:
    """Check that a label has a value for each counted change."""
    counts = metric.counts
    for change in counts.on if counts else ():
        title, _, what = change.partition(".")
        entity = spec.lifecycle.entities.get(title)
        if counts is None or entity is None or label in counts.fixed.get(change, {}):
            continue
        source = counts.labels.get(label)
        if source is None:
            place = spec.place("metrics", "metrics", name, "counts", "fixed", key=True)
            message = f"'{name}' has no '{label}' for {change}."
            yield Finding(place, message, "Say it in 'fixed' for each, or in 'labels' for all.")
            return
        place = spec.place("metrics", "metrics", name, "counts", "labels", label)
        record = get_fields(spec, entity.record) or {}
        edge = entity.transitions.get(what)
        if source in record:
            if field_enum(spec, record[source]) is None:
                message = f"'{label}' of '{name}' is '{source}', which is of type {record[source].type}."
                yield Finding(place, message, "Only an enum has a bounded number of values.")
                return
        elif edge is None or edge.reason != source:
            enums = [field for field, row in record.items() if field_enum(spec, row)]
            lack = f"which {change} does not have"
            reasons = [edge.reason] if edge and edge.reason else []
            yield from report_unknown(
                spec, place, f"'{label}' of '{name}' is", source, [*enums, *reasons], lack
            )
            return
        elif label not in counts.values:
            message = f"'{label}' of '{name}' is what {change} is given, and nothing says what that can be."
            yield Finding(place, message, f"Add 'values: {{{label}: […]}}'.")
            return


@rule(
    "E856",
    "A histogram or a window measures by something that is no time, or no number of seconds.",
    wrong="bike_seconds: {type: histogram, since: plate, …}",
    right="bike_seconds: {type: histogram, since: left_at, …}",
    needs=("lifecycle", "types", "environment", "metrics"),
)
def check_measures(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        if metric.since:
            yield from _check_start(spec, name, metric)
        if metric.seconds:
            yield from _check_window(spec, name, metric)


def _check_start(spec: Spec, name: str, metric: Metric) -> Iterator[Finding]:
    place, since = spec.place("metrics", "metrics", name, "since"), metric.since or ""
    for title, entity in _find_entities(spec, metric).items():
        record = get_fields(spec, entity.record) or {}
        if since not in record:
            times = [field for field, row in record.items() if row.type == "timestamp"]
            lack = f"which a {title} does not have"
            yield from report_unknown(spec, place, f"'{name}' measures from", since, times, lack)
        elif is_other_type(spec, record[since], "timestamp"):
            message = f"'{name}' measures from '{since}', which is of type {record[since].type}."
            yield Finding(place, message, "Name a timestamp.")
        elif record[since].optional:
            message = f"'{name}' measures from '{since}', which may be unset."
            yield Finding(place, message, "Name a time that is always there.")


def _check_window(spec: Spec, name: str, metric: Metric) -> Iterator[Finding]:
    place, variable = spec.place("metrics", "metrics", name, "seconds"), metric.seconds or ""
    row, subject = spec.environment.variables.get(variable), f"The window of '{name}' is"
    if row is None:
        known = [
            each for each, other in spec.environment.variables.items() if other.type in ("int", "number")
        ]
        yield from report_unknown(spec, place, subject, variable, known)
        return
    readers = [
        each
        for entity in _find_entities(spec, metric).values()
        for each in find_appliers(entity, (entity.held_by,))
    ]
    not_reading = [each for each in readers if row.read_by != "everyone" and each not in row.read_by]
    if row.type not in ("int", "number"):
        message = f"{subject} {variable}, which is of type {row.type}."
        yield Finding(place, message, "Name a variable of type int or number.")
    elif row.max is None or row.max > _LONGEST_WINDOW:
        message = f"{subject} {variable}, which may be longer than the engine remembers."
        yield Finding(place, message, f"Say 'max: {_LONGEST_WINDOW}' of {variable} in environment.yaml.")
    elif not_reading:
        message = f"{subject} {variable}, which {format_list(not_reading)} does not read."
        yield Finding(place, message, f"Add it to 'read_by' of {variable} in environment.yaml.")


def _find_entities(spec: Spec, metric: Metric) -> dict[str, Entity]:
    """Find the entities that a metric counts."""
    names = [each.partition(".")[0] for each in (metric.counts.on if metric.counts else ())]
    return {name: spec.lifecycle.entities[name] for name in names if name in spec.lifecycle.entities}
