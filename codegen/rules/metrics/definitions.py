"""Rules of metrics.yaml: what is measured, and of what."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.language.metrics import Metric
from codegen.rules.lifecycle.entity_changes import appliers
from codegen.rules.lookup import fields_of, is_other_type, listed
from codegen.rules.rule import Finding, rule, unknown
from codegen.source.spec import Spec, field_enum

SOURCES = ("size_of", "age_in", "states_of", "used_of")
"""What a gauge is of; it says exactly one."""
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
def wrong_words(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        place, needed = spec.place("metrics", "metrics", name, key=True), _NEEDED[metric.type]
        said = [word for word in ("counts", "since", "buckets", "seconds", *SOURCES) if getattr(metric, word)]
        lacking = [word for word in needed if word not in said]
        of = [word for word in said if word in SOURCES]
        odd = [
            word for word in said if word not in needed and not (metric.type == "gauge" and word in SOURCES)
        ]
        if lacking:
            message = f"'{name}' is a {metric.type} and lacks {listed(lacking)}."
            yield Finding(place, message, f"Add '{lacking[0]}: …'.")
        elif odd:
            there = spec.place("metrics", "metrics", name, odd[0], key=True)
            message = f"'{name}' is a {metric.type}, for which '{odd[0]}' means nothing."
            yield Finding(there, message, "Remove it, or change the type.")
        elif metric.type == "gauge" and len(of) != 1:
            message = f"'{name}' is a gauge of {listed(of) if of else 'nothing'}."
            yield Finding(place, message, f"Say exactly one of {listed(list(SOURCES))}.")
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
def bad_name(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        place = spec.place("metrics", "metrics", name, key=True)
        if metric.type == "counter" and not name.endswith("_total"):
            yield Finding(place, f"'{name}' is a counter.", f"Call it '{name}_total'.")
        elif name.endswith(("_bucket", "_sum", "_count")):
            message = f"'{name}' ends like a part of a histogram, and could not be told from one."
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
def unknown_happening(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        for index, happening in enumerate(metric.counts.on if metric.counts else ()):
            place = spec.place("metrics", "metrics", name, "counts", "on", index)
            title, _, what = happening.partition(".")
            subject = f"'{name}' counts"
            entity = spec.lifecycle.entities.get(title)
            if entity is None:
                known = [f"{each}.{what}" for each in spec.lifecycle.entities]
                yield from unknown(spec, place, subject, happening, known, f"and there is no {title}")
            elif entity.in_redis is None or entity.in_redis.metrics is None:
                message = f"{subject} '{happening}', and nothing says where scripts count that."
                yield Finding(place, message, f"Say 'kept_in: {{store: redis, metrics: …}}' of {title}.")
            else:
                known = [f"{title}.{each}" for each in happenings(entity)]
                yield from unknown(spec, place, subject, happening, known, "which never happens")
        for happening in metric.counts.fixed if metric.counts else ():
            place = spec.place("metrics", "metrics", name, "counts", "fixed", happening, key=True)
            lack, known = "which it does not count", list(metric.counts.on if metric.counts else ())
            yield from unknown(spec, place, f"'{name}' has fixed labels for", happening, known, lack)


def happenings(entity: Entity) -> list[str]:
    """What can be counted of an entity."""
    deletion = ["delete"] if entity.delete else []
    return ["create", *entity.transitions, *entity.shifts, *deletion]


@rule(
    "E854",
    "A label of a metric has no value for something that is counted, or one that is not said.",
    wrong="drops_total: {counts: {on: [bike.drop], labels: {reason: reason}}, …}",
    right="drops_total: {counts: {on: [bike.drop], labels: {reason: reason}, values: {reason: [late]}}, …}",
    needs=("lifecycle", "types", "metrics"),
)
def bad_label(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        if (counts := metric.counts) is None:
            continue
        path = ("metrics", name, "counts")
        fixed = {label for labels in counts.fixed.values() for label in labels}
        for label in dict.fromkeys((*counts.labels, *sorted(fixed))):
            yield from _without_value(spec, name, metric, label)
        for label in counts.values:
            place = spec.place("metrics", *path, "values", label, key=True)
            known = [*counts.labels, *fixed]
            yield from unknown(
                spec, place, f"'{name}' has values of", label, known, "which is no label of it"
            )
        for happening, labels in counts.fixed.items():
            for label, text in labels.items():
                place = spec.place("metrics", *path, "fixed", happening, label)
                if label in counts.values and text not in counts.values[label]:
                    lack = f"which is none of the values of '{label}'"
                    yield from unknown(spec, place, f"'{name}' is fixed to", text, counts.values[label], lack)
                elif "|" in text:
                    yield Finding(place, "A value of a label has a '|' in it.", "Leave it out.")
        for label, texts in counts.values.items():
            for index, text in enumerate(texts):
                if "|" in text:
                    place = spec.place("metrics", *path, "values", label, index)
                    yield Finding(place, "A value of a label has a '|' in it.", "Leave it out.")


def _without_value(spec: Spec, name: str, metric: Metric, label: str) -> Iterator[Finding]:
    """The happenings in which a label has no value."""
    counts = metric.counts
    for happening in counts.on if counts else ():
        title, _, what = happening.partition(".")
        entity = spec.lifecycle.entities.get(title)
        if counts is None or entity is None or label in counts.fixed.get(happening, {}):
            continue
        source = counts.labels.get(label)
        if source is None:
            place = spec.place("metrics", "metrics", name, "counts", "fixed", key=True)
            message = f"'{name}' has no '{label}' for {happening}."
            yield Finding(place, message, "Say it in 'fixed' for each, or in 'labels' for all.")
            return
        place = spec.place("metrics", "metrics", name, "counts", "labels", label)
        record = fields_of(spec, entity.record) or {}
        edge = entity.transitions.get(what)
        if source in record:
            if field_enum(spec, record[source]) is None:
                message = f"'{label}' of '{name}' is '{source}', which is of type {record[source].type}."
                yield Finding(place, message, "Only an enum has a bounded number of values.")
                return
        elif edge is None or edge.reason != source:
            enums = [field for field, row in record.items() if field_enum(spec, row)]
            lack = f"which {happening} does not have"
            reasons = [edge.reason] if edge and edge.reason else []
            yield from unknown(spec, place, f"'{label}' of '{name}' is", source, [*enums, *reasons], lack)
            return
        elif label not in counts.values:
            message = (
                f"'{label}' of '{name}' is what {happening} is given, and nothing says what that can be."
            )
            yield Finding(place, message, f"Add 'values: {{{label}: […]}}'.")
            return


@rule(
    "E856",
    "A histogram or a window measures by something that is no time, or no number of seconds.",
    wrong="bike_seconds: {type: histogram, since: plate, …}",
    right="bike_seconds: {type: histogram, since: left_at, …}",
    needs=("lifecycle", "types", "environment", "metrics"),
)
def bad_measure(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        if metric.since:
            yield from _bad_start(spec, name, metric)
        if metric.seconds:
            yield from _bad_window(spec, name, metric)


def _bad_start(spec: Spec, name: str, metric: Metric) -> Iterator[Finding]:
    place, since = spec.place("metrics", "metrics", name, "since"), metric.since or ""
    for title, entity in _entities(spec, metric).items():
        record = fields_of(spec, entity.record) or {}
        if since not in record:
            times = [field for field, row in record.items() if row.type == "timestamp"]
            lack = f"which a {title} does not have"
            yield from unknown(spec, place, f"'{name}' measures from", since, times, lack)
        elif is_other_type(spec, record[since], "timestamp"):
            message = f"'{name}' measures from '{since}', which is of type {record[since].type}."
            yield Finding(place, message, "Name a timestamp.")
        elif record[since].optional:
            message = f"'{name}' measures from '{since}', which may be unset."
            yield Finding(place, message, "Name a time that is always there.")


def _bad_window(spec: Spec, name: str, metric: Metric) -> Iterator[Finding]:
    place, variable = spec.place("metrics", "metrics", name, "seconds"), metric.seconds or ""
    row, subject = spec.environment.variables.get(variable), f"The window of '{name}' is"
    if row is None:
        known = [
            each for each, other in spec.environment.variables.items() if other.type in ("int", "number")
        ]
        yield from unknown(spec, place, subject, variable, known)
        return
    readers = [
        each for entity in _entities(spec, metric).values() for each in appliers(entity, (entity.held_by,))
    ]
    deaf = [each for each in readers if row.read_by != "everyone" and each not in row.read_by]
    if row.type not in ("int", "number"):
        message = f"{subject} {variable}, which is of type {row.type}."
        yield Finding(place, message, "Name a variable of type int or number.")
    elif row.max is None or row.max > _LONGEST_WINDOW:
        message = f"{subject} {variable}, which may be longer than the engine remembers."
        yield Finding(place, message, f"Say 'max: {_LONGEST_WINDOW}' of {variable} in environment.yaml.")
    elif deaf:
        message = f"{subject} {variable}, which {listed(deaf)} does not read."
        yield Finding(place, message, f"Add it to 'read_by' of {variable} in environment.yaml.")


def _entities(spec: Spec, metric: Metric) -> dict[str, Entity]:
    """The entities that a metric counts."""
    names = [each.partition(".")[0] for each in (metric.counts.on if metric.counts else ())]
    return {name: spec.lifecycle.entities[name] for name in names if name in spec.lifecycle.entities}
