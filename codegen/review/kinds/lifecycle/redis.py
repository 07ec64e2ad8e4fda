"""Differences of lifecycle.yaml in entities in Redis: their keys, indexes and history."""

from __future__ import annotations

from collections.abc import Iterator

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
_RUNTIME_KEYS = frozenset({"trace", "wakes", "by"})
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


@kind("shift.added", "An entity has one more update.", Verdict.WIDENS)
def find_shift_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for shift, row in iter_added(before.shifts, after.shifts):
            text = f"{shift} of {name} in {format_value(row.in_)} is added for {format_value(row.by)}"
            yield SpecChange(f"{name}.{shift}", text, (*get_entity_path(name), "shifts", shift))


@kind("shift.removed", "An entity lacks an update.", Verdict.BEHAVIOUR)
def find_shift_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for shift, _ in iter_added(after.shifts, before.shifts):
            text = f"{shift} of {name} is removed"
            yield SpecChange(f"{name}.{shift}", text, (*get_entity_path(name), "shifts", shift))


@kind(
    "shift.changed",
    "An update applies in other states, or writes other fields.",
    Verdict.BEHAVIOUR,
)
def find_shift_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for shift, was, now in iter_common(before.shifts, after.shifts):
            path, subject = (*get_entity_path(name), "shifts", shift), f"{name}.{shift}"
            for word, left, right in iter_changed_meanings(was, now, "by", "in_"):
                text = f"{shift} of {name} {word}: {format_change(left, right)}"
                yield SpecChange(f"{subject}.{word}", text, (*path, word))
            for word, left, right in (("by", was.by, now.by), ("in", was.in_, now.in_)):
                for each in list_gained(left, right):
                    text = f"{shift} of {name} {word} gains {each}"
                    yield SpecChange(f"{subject}.{word} {each}", text, (*path, word), verdict=Verdict.WIDENS)
                for each in list_gained(right, left):
                    yield SpecChange(
                        f"{subject}.{word} {each}", f"{shift} of {name} {word} loses {each}", (*path, word)
                    )


@kind("edge.copies", "Other fields of an entity are copied.", Verdict.BEHAVIOUR)
def find_edge_copies(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_entries(old, new, "copies")


@kind("edge.fills", "A field without a value is filled in from other variables.", Verdict.BEHAVIOUR)
def find_edge_fills(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_entries(old, new, "fills")


@kind("edge.grows", "A number of an entity grows otherwise.", Verdict.BEHAVIOUR)
def find_edge_grows(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_entries(old, new, "grows")


@kind("edge.clears", "A transition clears other fields.", Verdict.BEHAVIOUR)
def find_edge_clears(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, "clears", ()), getattr(edge.after, "clears", ())
        path = (*edge.path, "clears")
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
        for word in ("refuses", "unless_holding", "reason"):
            was, now = getattr(edge.before, word, None), getattr(edge.after, word, None)
            if was != now:
                text = f"{edge.label} {word.replace('_', ' ')}: {format_change(was, now)}"
                yield SpecChange(f"{edge.name}.{word}", text, (*edge.path, word))


def _compare_entries(old: Spec, new: Spec, word: str) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, word, {}), getattr(edge.after, word, {})
        for name in sorted({*was, *now}):
            if was.get(name) != now.get(name):
                text = f"{edge.label} {word} {name}: {format_change(was.get(name), now.get(name))}"
                yield SpecChange(f"{edge.name} {name}", text, (*edge.path, word, name))


def _iter_redis_pairs(old: Spec, new: Spec) -> Iterator[tuple[str, KeptInRedis, KeptInRedis, Path]]:
    """Iterate over the entities that are in Redis in both specs."""
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        if before.in_redis and after.in_redis:
            yield name, before.in_redis, after.in_redis, (*get_entity_path(name), "kept_in")
