"""Rules of metrics.yaml about gauges."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.language.metrics import Metric
from codegen.rules.lookup import get_fields
from codegen.rules.metrics.definitions import SOURCES
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.rules.storage.indexes import has_listing
from codegen.rules.storage.redis_keys import placeholders
from codegen.source.spec import Spec, field_enum
from codegen.source.yaml_reader import Path


@rule(
    "E855",
    "A gauge is of something that does not exist, or that cannot be measured.",
    wrong="yard_bikes: {type: gauge, size_of: bike.waitng, label: size, …}",
    right="yard_bikes: {type: gauge, size_of: bike.waiting, label: size, …}",
    needs=("lifecycle", "types", "metrics"),
    spreads=True,
)
def check_gauges(spec: Spec) -> Iterator[Finding]:
    for name, metric in spec.metrics.metrics.items():
        for word in SOURCES:
            source = getattr(metric, word)
            if source is None:
                continue
            place, subject = spec.place("metrics", "metrics", name, word), f"'{name}' is of"
            entity = spec.lifecycle.entities.get(source.partition(".")[0])
            in_redis = {each: row for each, row in spec.lifecycle.entities.items() if row.in_redis}
            if entity is None or entity.in_redis is None:
                known = [f"{each}.{source.partition('.')[2]}" if "." in source else each for each in in_redis]
                yield from report_unknown(spec, place, subject, source, known, "which Redis does not keep")
            elif word in ("size_of", "age_in"):
                yield from _check_index(spec, name, metric, word, entity)
            else:
                yield from _check_state_counts(spec, name, metric, word, entity)


def _check_index(spec: Spec, name: str, metric: Metric, word: str, entity: Entity) -> Iterator[Finding]:
    source = str(getattr(metric, word))
    title, _, which = source.partition(".")
    place = spec.place("metrics", "metrics", name, word)
    indexes = entity.in_redis.indexes if entity.in_redis else {}
    known = [f"{title}.{each}" for each in indexes]
    yield from report_unknown(spec, place, f"'{name}' is of", source, known, "which is no index")
    if (index := indexes.get(which)) is None:
        return
    record = get_fields(spec, entity.record) or {}
    named = [field for field in placeholders(index.key) if field in record]
    enums = [field for field in named if field_enum(spec, record[field])]
    if word == "age_in" and index.score is None:
        message = f"'{name}' is the age of what is in '{source}', which has no times."
        yield Finding(place, message, "Name an index with a score.")
    elif named and not enums:
        message = f"'{name}' is of '{source}', of which there is one for each '{named[0]}'."
        yield Finding(place, message, "Name an index that has no owner in its key.")
    else:
        yield from _check_gauge_label(spec, name, metric, bool(enums), f"'{source}' is kept apart by an enum")


def _check_state_counts(
    spec: Spec, name: str, metric: Metric, word: str, entity: Entity
) -> Iterator[Finding]:
    source = str(getattr(metric, word))
    place = spec.place("metrics", "metrics", name, word)
    holder = entity.lease.holder if entity.lease else None
    counted = {source: entity}
    if word == "used_of":
        if holder is None:
            message = f"'{name}' is the use of what holds a {source}, and nothing does."
            yield Finding(place, message, "Name an entity whose lease has a holder.")
            return
        counted |= {holder.entity: spec.lifecycle.entities.get(holder.entity, entity)}
    for each, row in counted.items():
        if not has_listing(spec, row):
            message = f"'{name}' goes by how many {each}s are in each state, and no index has them all by it."
            hint = f"Add an index to {each} with {{{row.status}}} in its key, all states and a score."
            yield Finding(place, message, hint)
            return
    wants = word == "states_of"
    yield from _check_gauge_label(spec, name, metric, wants, "there is a number for each state")


def _check_gauge_label(spec: Spec, name: str, metric: Metric, wanted: bool, why: str) -> Iterator[Finding]:
    path: Path = ("metrics", name)
    if wanted and metric.label is None:
        message = f"'{name}' has no label, and {why}."
        yield Finding(spec.place("metrics", *path, key=True), message, "Add 'label'.")
    elif metric.label and not wanted:
        message = f"'{name}' has the label '{metric.label}', and it is one number."
        yield Finding(spec.place("metrics", *path, "label", key=True), message, "Remove 'label'.")
