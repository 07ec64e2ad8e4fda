"""`generated/<system>/metrics.py`: the tables from which the engine exports the metrics of the spec."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.python.lifecycle import list_states
from codegen.emit.python.metric_counts import bounds, label_names, list_happenings, series, words
from codegen.language.lifecycle import Entity
from codegen.language.metrics import Metric
from codegen.language.storage.layouts import KeptInRedis, PlacedIndex
from codegen.source.spec import Spec, field_enum

_FIELD = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def emit(spec: Spec) -> Iterator[Artefact]:
    if spec.metrics.metrics:
        rows = {
            name: (find_entity_name(metric), format_source(spec, metric))
            for name, metric in spec.metrics.metrics.items()
        }
        yield Artefact(
            f"generated/{spec.name}/metrics.py", render_template("python/metrics.py.j2", spec, rows=rows)
        )


def find_entity_name(metric: Metric) -> str:
    """Find the entity of a metric, the first one where it has several."""
    events = metric.counts.on if metric.counts else ()
    sources = (metric.size_of, metric.age_in, metric.states_of, metric.used_of, *events)
    return next(each for each in sources if each).partition(".")[0]


def list_labels(metric: Metric) -> tuple[str, ...]:
    """List the labels of an exported metric."""
    if metric.counts:
        return label_names(metric)
    own = (metric.label,) if metric.label else ()
    return (*own, "percentile") if len(metric.percentiles) > 1 else own


def format_source(spec: Spec, metric: Metric) -> str:
    """Format the source of a metric as a Python expression."""
    entity = spec.lifecycle.entities[find_entity_name(metric)]
    store = _require_redis(entity)
    if metric.counts:
        return _format_counts(spec, metric, store)
    if reference := metric.size_of or metric.age_in:
        index = store.indexes[reference.partition(".")[2]]
        keys = list_index_keys(spec, entity, index)
        if metric.age_in:
            return f"Ages({keys!r}, {metric.label!r}, {metric.percentiles!r})"
        return f"IndexSizes({keys!r}, {metric.label!r}, {index.score is not None!r})"
    if metric.states_of:
        keys = list_state_keys(spec, entity)
        states = words(spec, entity, entity.status)
        ended = sorted(word for word, state in states.items() if state in entity.terminal)
        return f"States({keys!r}, {metric.label!r}, frozenset({ended!r}), {store.expires!r})"
    return _format_used(spec, entity)


def list_index_keys(spec: Spec, entity: Entity, index: PlacedIndex) -> dict[str, str]:
    """List the keys of an index by the enum word in them; one key under the empty word where it has none."""
    for field in _FIELD.findall(index.key):
        if field_enum(spec, spec.messages[entity.record].fields[field]) is not None:
            states = set(index.in_) if field == entity.status else None
            return {
                word: index.key.replace(f"{{{field}}}", word)
                for word, value in words(spec, entity, field).items()
                if states is None or value in states
            }
    return {"": index.key}


def list_state_keys(spec: Spec, entity: Entity) -> dict[str, str]:
    """List the keys of the state index, by the word of the state."""
    return list_index_keys(spec, entity, find_state_index(spec, entity))


def find_state_index(spec: Spec, entity: Entity) -> PlacedIndex:
    """Find the index that has every entity under its state."""
    for index in _require_redis(entity).indexes.values():
        whole = index.score is not None and index.only_if is None and index.only_unless is None
        if whole and f"{{{entity.status}}}" in index.key and set(index.in_) >= set(list_states(spec, entity)):
            return index
    raise ValueError(f"no index of {entity.record} has its entities by state")


def _format_counts(spec: Spec, metric: Metric, store: KeptInRedis) -> str:
    words_of_series = tuple(series(spec, metric))
    return (
        f"Counts({store.metrics!r}, {label_names(metric)!r}, {words_of_series!r}, {bounds(metric)!r}, "
        f"{metric.seconds!r}, {metric.since!r}, {list_happenings(spec, metric)!r})"
    )


def _format_used(spec: Spec, entity: Entity) -> str:
    if entity.lease is None or entity.lease.holder is None:
        raise ValueError(f"{entity.record} has no lease to an owner with a capacity")
    lease, owner = entity.lease, spec.lifecycle.entities[entity.lease.holder.entity]
    leased = list_state_keys(spec, entity)[_find_state_word(spec, entity, lease.state)]
    owner_keys = list_state_keys(spec, owner)
    living = tuple(
        owner_keys[word]
        for word, state in words(spec, owner, owner.status).items()
        if state not in owner.terminal
    )
    pattern = _require_redis(owner).hash.replace(f"{{{owner.key}}}", "{}")
    return f"Used({leased!r}, {living!r}, {pattern!r}, {entity.lease.holder.capacity!r})"


def _find_state_word(spec: Spec, entity: Entity, state: str) -> str:
    return next(word for word, value in words(spec, entity, entity.status).items() if value == state)


def _require_redis(entity: Entity) -> KeptInRedis:
    if entity.in_redis is None:
        raise ValueError(f"{entity.record} is not stored in Redis")
    return entity.in_redis
