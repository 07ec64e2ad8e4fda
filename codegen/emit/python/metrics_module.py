"""`generated/<system>/metrics.py`: what the engine reads to tell the metrics of the spec."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.python.lifecycle import states_of
from codegen.emit.redis.lua_metrics import bounds, label_names, series, words
from codegen.language.lifecycle import Entity
from codegen.language.metrics import Metric
from codegen.language.persistence import Index, KeptInRedis
from codegen.source.spec import Spec, field_enum

_FIELD = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def emit(spec: Spec) -> Iterator[Artefact]:
    if spec.metrics.metrics:
        rows = {
            name: (entity_of(metric), source(spec, metric)) for name, metric in spec.metrics.metrics.items()
        }
        yield Artefact(
            f"generated/{spec.name}/metrics.py", render_template("python/metrics.py.j2", spec, rows=rows)
        )


def entity_of(metric: Metric) -> str:
    """The entity that a metric is about, or the first of them."""
    happenings = metric.counts.on if metric.counts else ()
    said = (metric.size_of, metric.age_in, metric.states_of, metric.used_of, *happenings)
    return next(each for each in said if each).partition(".")[0]


def labels_of(metric: Metric) -> tuple[str, ...]:
    """The labels that a metric is exported with."""
    if metric.counts:
        return label_names(metric)
    own = (metric.label,) if metric.label else ()
    return (*own, "percentile") if len(metric.percentiles) > 1 else own


def source(spec: Spec, metric: Metric) -> str:
    """Where a metric comes from, as an expression of Python."""
    entity = spec.lifecycle.entities[entity_of(metric)]
    kept = _kept(entity)
    if metric.counts:
        return _counts(spec, metric, kept)
    if reference := metric.size_of or metric.age_in:
        index = kept.indexes[reference.partition(".")[2]]
        keys = index_keys(spec, entity, index)
        if metric.age_in:
            return f"Ages({keys!r}, {metric.label!r}, {metric.percentiles!r})"
        return f"IndexSizes({keys!r}, {metric.label!r}, {index.score is not None!r})"
    if metric.states_of:
        keys = state_keys(spec, entity)
        states = words(spec, entity, entity.status)
        ended = sorted(word for word, state in states.items() if state in entity.terminal)
        return f"States({keys!r}, {metric.label!r}, frozenset({ended!r}), {kept.expires!r})"
    return _used(spec, entity)


def index_keys(spec: Spec, entity: Entity, index: Index) -> dict[str, str]:
    """The keys of an index by the word of the enum in them; one key under no word where there is none."""
    for field in _FIELD.findall(index.key):
        if field_enum(spec, spec.messages[entity.record].fields[field]) is not None:
            states = set(index.in_) if field == entity.status else None
            return {
                word: index.key.replace(f"{{{field}}}", word)
                for word, value in words(spec, entity, field).items()
                if states is None or value in states
            }
    return {"": index.key}


def state_keys(spec: Spec, entity: Entity) -> dict[str, str]:
    """The key of the index for each state, by the word of the state."""
    return index_keys(spec, entity, state_index(spec, entity))


def state_index(spec: Spec, entity: Entity) -> Index:
    """The index that has every entity under its state."""
    for index in _kept(entity).indexes.values():
        whole = index.score is not None and index.only_if is None and index.only_unless is None
        if whole and f"{{{entity.status}}}" in index.key and set(index.in_) >= set(states_of(spec, entity)):
            return index
    raise ValueError(f"no index of {entity.record} has its entities by state")


def _counts(spec: Spec, metric: Metric, kept: KeptInRedis) -> str:
    words_of_series = tuple(series(spec, metric))
    return (
        f"Counts({kept.metrics!r}, {label_names(metric)!r}, {words_of_series!r}, {bounds(metric)!r}, "
        f"{metric.seconds!r})"
    )


def _used(spec: Spec, entity: Entity) -> str:
    if entity.lease is None or entity.lease.holder is None:
        raise ValueError(f"{entity.record} is leased to no holder that has a capacity")
    lease, holder = entity.lease, spec.lifecycle.entities[entity.lease.holder.entity]
    leased = state_keys(spec, entity)[_word(spec, entity, lease.state)]
    of_holders = state_keys(spec, holder)
    living = tuple(
        of_holders[word]
        for word, state in words(spec, holder, holder.status).items()
        if state not in holder.terminal
    )
    pattern = _kept(holder).hash.replace(f"{{{holder.key}}}", "{}")
    return f"Used({leased!r}, {living!r}, {pattern!r}, {entity.lease.holder.capacity!r})"


def _word(spec: Spec, entity: Entity, state: str) -> str:
    return next(word for word, value in words(spec, entity, entity.status).items() if value == state)


def _kept(entity: Entity) -> KeptInRedis:
    if entity.in_redis is None:
        raise ValueError(f"{entity.record} is not kept in Redis")
    return entity.in_redis
