"""Differences of lifecycle.yaml in updates, and in what edges copy, clear and limit."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.base import get_value
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.kinds.lifecycle.transitions import get_entity_path, iter_edge_pairs
from codegen.review.kinds.pairs import (
    format_change,
    format_value,
    iter_added,
    iter_changed_meanings,
    iter_common,
    list_gained,
)
from codegen.source.spec import Spec


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
