"""Differences of lifecycle.yaml in entities in Redis: their keys, indexes and history."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.base import get_value
from codegen.language.persistence import KeptInRedis
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.lifecycle.transitions import get_entity_path, iter_edge_pairs
from codegen.review.kinds.pairs import (
    format_change,
    format_value,
    iter_added,
    iter_changed_keys,
    iter_changed_meanings,
    iter_common,
    list_gained,
)
from codegen.source.spec import Spec

_VARIABLE_KEYS = frozenset({"url", "prefix", "expires", "replicas"})
"""Keys that name variables; with the same value of the new one no data is lost."""
_RUNTIME_KEYS = frozenset({"trace", "wake_up", "by"})
"""Keys of which nothing is stored."""


@kind(
    "redis.keys",
    "Redis keeps an entity under another key, for another time, or counts it elsewhere.",
    Verdict.STORED,
)
def find_redis_keys(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_redis_pairs(old, new):
        for word, was, now in iter_changed_keys(before, after, "unique", "indexes", "outbox"):
            verdict = Verdict.CONFIGURATION if word in _VARIABLE_KEYS else Verdict.STORED
            verdict = Verdict.BEHAVIOUR if word in _RUNTIME_KEYS else verdict
            text = f"{name} in redis, {word}: {format_change(was, now)}"
            yield SpecChange(f"{name}.{word}", text, (*path, word), verdict=verdict)


@kind("index.added", "There is one more index, in which what was stored before is not.", Verdict.STORED)
def find_index_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_redis_pairs(old, new):
        for index, _ in iter_added(before.indexes, after.indexes):
            text = f"the index {index} of {name} is added; what was stored before is not in it"
            yield SpecChange(f"{name}.{index}", text, (*path, "indexes", index))


@kind("index.removed", "An index is gone, and what was in it is never removed.", Verdict.BEHAVIOUR)
def find_index_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_redis_pairs(old, new):
        for index, _ in iter_added(after.indexes, before.indexes):
            yield SpecChange(
                f"{name}.{index}", f"the index {index} of {name} is removed", (*path, "indexes", index)
            )


@kind("index.changed", "An index has another key, order or content.", Verdict.STORED)
def find_index_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_redis_pairs(old, new):
        for index, was, now in iter_common(before.indexes, after.indexes):
            for word, left, right in iter_changed_meanings(was, now):
                text = f"the index {index} of {name} {word}: {format_change(left, right)}"
                yield SpecChange(f"{name}.{index}.{word}", text, (*path, "indexes", index, word))


@kind(
    "unique.changed", "Something else is unique among entities in Redis, or for how long.", Verdict.BEHAVIOUR
)
def find_unique_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_redis_pairs(old, new):
        was, now = before.unique, after.unique
        for field in sorted({*was, *now}):
            if was.get(field) != now.get(field):
                text = f"{name} unique {field}: {format_change(was.get(field), now.get(field))}"
                yield SpecChange(f"{name}.{field}", text, (*path, "unique", field))


@kind("outbox.changed", "The outbox of entities in Redis has another destination.", Verdict.STORED)
def find_outbox_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_redis_pairs(old, new):
        was, now, here = before.outbox, after.outbox, (*path, "outbox")
        if was is None or now is None:
            if was is not now:
                verdict = Verdict.COMPATIBLE if now else Verdict.BEHAVIOUR
                yield SpecChange(name, f"{name} outbox {format_change(was, now)}", here, verdict=verdict)
            continue
        for word, left, right in iter_changed_keys(was, now):
            verdict = Verdict.CONFIGURATION if word in _VARIABLE_KEYS else Verdict.STORED
            verdict = Verdict.BEHAVIOUR if word in _RUNTIME_KEYS else verdict
            text = f"{name} outbox {word} {format_change(left, right)}"
            yield SpecChange(f"{name}.{word}", text, (*here, word), verdict=verdict)


@kind("update.added", "An entity has one more update.", Verdict.WIDENS)
def find_update_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for update, row in iter_added(before.updates, after.updates):
            text = f"{update} of {name} in {format_value(row.in_)} is added for {format_value(row.by)}"
            yield SpecChange(f"{name}.{update}", text, (*get_entity_path(name), "updates", update))


@kind("update.removed", "An entity lacks an update.", Verdict.BEHAVIOUR)
def find_update_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for update, _ in iter_added(after.updates, before.updates):
            text = f"{update} of {name} is removed"
            yield SpecChange(f"{name}.{update}", text, (*get_entity_path(name), "updates", update))


@kind(
    "update.changed",
    "An update applies in other states, or writes other fields.",
    Verdict.BEHAVIOUR,
)
def find_update_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for update, was, now in iter_common(before.updates, after.updates):
            path, subject = (*get_entity_path(name), "updates", update), f"{name}.{update}"
            for word, left, right in iter_changed_meanings(was, now, "by", "in_"):
                text = f"{update} of {name} {word}: {format_change(left, right)}"
                yield SpecChange(f"{subject}.{word}", text, (*path, word))
            for word, left, right in (("by", was.by, now.by), ("in", was.in_, now.in_)):
                for each in list_gained(left, right):
                    text = f"{update} of {name} {word} gains {each}"
                    yield SpecChange(f"{subject}.{word} {each}", text, (*path, word), verdict=Verdict.WIDENS)
                for each in list_gained(right, left):
                    yield SpecChange(
                        f"{subject}.{word} {each}", f"{update} of {name} {word} loses {each}", (*path, word)
                    )


@kind("edge.copy", "Other fields of an entity are copied.", Verdict.BEHAVIOUR)
def find_edge_copy(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_entries(old, new, "copy")


@kind("edge.defaults", "A field without a value has another default.", Verdict.BEHAVIOUR)
def find_edge_defaults(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_entries(old, new, "defaults")


@kind("edge.multiply", "A number of an entity is multiplied otherwise.", Verdict.BEHAVIOUR)
def find_edge_multiply(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_entries(old, new, "multiply")


@kind("edge.clear", "A transition clears other fields.", Verdict.BEHAVIOUR)
def find_edge_clear(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, "clear", ()), getattr(edge.after, "clear", ())
        path = (*edge.path, "clear")
        for field in list_gained(was, now):
            yield SpecChange(f"{edge.name} {field}", f"{edge.label} clears {field}", path)
        for field in list_gained(now, was):
            yield SpecChange(f"{edge.name} {field}", f"{edge.label} no longer clears {field}", path)


@kind(
    "edge.limits",
    "A limit on creation or deletion, or the reason of a transition, changes.",
    Verdict.BEHAVIOUR,
)
def find_edge_limits(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        for word in ("ceiling", "unless_holding", "reason"):
            was, now = getattr(edge.before, word, None), getattr(edge.after, word, None)
            if was != now:
                text = f"{edge.label} {word.replace('_', ' ')}: {format_change(was, now)}"
                yield SpecChange(f"{edge.name}.{word}", text, (*edge.path, word))


def _compare_entries(old: Spec, new: Spec, word: str) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = get_value(edge.before, word, {}), get_value(edge.after, word, {})
        for name in sorted({*was, *now}):
            if was.get(name) != now.get(name):
                text = f"{edge.label} {word} {name}: {format_change(was.get(name), now.get(name))}"
                yield SpecChange(f"{edge.name} {name}", text, (*edge.path, word, name))


def _iter_redis_pairs(old: Spec, new: Spec) -> Iterator[tuple[str, KeptInRedis, KeptInRedis, Path]]:
    """Iterate over the entities that are in Redis in both specs."""
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        if before.in_redis and after.in_redis:
            yield name, before.in_redis, after.in_redis, (*get_entity_path(name), "kept_in")
