"""Differences of lifecycle.yaml in uniqueness, indexes, leases, public states and due transitions."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from codegen.language.lifecycle import Entity
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
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


@kind("holder.added", "One more component applies the transitions of an entity.", Verdict.WIDENS)
def find_holder_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for holder in list_gained(before.shared_with, after.shared_with):
            path = (*get_entity_path(name), "shared_with")
            yield SpecChange(f"{name} {holder}", f"{name} is now shared with {holder}", path)


@kind("holder.removed", "A component no longer applies the transitions of an entity.", Verdict.BEHAVIOUR)
def find_holder_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for holder in list_gained(after.shared_with, before.shared_with):
            path = (*get_entity_path(name), "shared_with")
            yield SpecChange(f"{name} {holder}", f"{name} is no longer shared with {holder}", path)


@kind("unique.changed", "Something else is unique among entities, or for how long.", Verdict.BEHAVIOUR)
def find_unique_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        was, now = _map_unique(before), _map_unique(after)
        for field in sorted({*was, *now}):
            if was.get(field) != now.get(field):
                text = f"{name} unique {field}: {format_change(was.get(field), now.get(field))}"
                path = get_entity_path(name)
                paths = ((*path, "unique_for", field), (*path, "unique"))
                yield SpecChange(f"{name}.{field}", text, *paths)


def _map_unique(entity: Entity) -> dict[str, str]:
    """Map the unique fields of an entity to how long a value is."""
    return {**dict.fromkeys(entity.unique, "for ever"), **entity.unique_for}


@kind("entity.expires", "Entities that have ended are kept for another time.", Verdict.CONFIGURATION)
def find_entity_expires(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        if before.expires != after.expires:
            text = f"{name} expires: {format_change(before.expires, after.expires)}"
            yield SpecChange(name, text, (*get_entity_path(name), "expires"))


@kind("index.added", "There is one more index, in which what was stored before is not.", Verdict.STORED)
def find_index_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for index, _ in iter_added(before.indexes, after.indexes):
            text = f"the index {index} of {name} is added; what was stored before is not in it"
            yield SpecChange(f"{name}.{index}", text, (*get_entity_path(name), "indexes", index))


@kind("index.removed", "An index is gone, and what was in it is never removed.", Verdict.BEHAVIOUR)
def find_index_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for index, _ in iter_added(after.indexes, before.indexes):
            path = (*get_entity_path(name), "indexes", index)
            yield SpecChange(f"{name}.{index}", f"the index {index} of {name} is removed", path)


@kind("index.changed", "An index has another order or content.", Verdict.STORED)
def find_index_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for index, was, now in iter_common(before.indexes, after.indexes):
            for word, left, right in iter_changed_meanings(was, now):
                text = f"the index {index} of {name} {word}: {format_change(left, right)}"
                path = (*get_entity_path(name), "indexes", index, word)
                yield SpecChange(f"{name}.{index}.{word}", text, path)


@kind("entity.lease", "The lease of an entity changes.", Verdict.BEHAVIOUR)
def find_entity_lease(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_parts(old, new, "lease", "lease")


@kind("entity.public_status", "A state is shown to clients as another value.", Verdict.BEHAVIOUR)
def find_public_status(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        path = (*get_entity_path(name), "public_status")
        if before.public_status is None or after.public_status is None:
            if before.public_status is not after.public_status:
                yield SpecChange(
                    name,
                    f"{name} is shown as {format_change(before.public_status, after.public_status)}",
                    path,
                )
            continue
        if before.public_status.enum != after.public_status.enum:
            text = (
                f"{name} is shown as a {format_change(before.public_status.enum, after.public_status.enum)}"
            )
            yield SpecChange(name, text, (*path, "enum"))
        was, now = before.public_status.as_, after.public_status.as_
        for state in sorted({*was, *now}):
            if was.get(state) != now.get(state):
                text = f"{name} in {state} is shown as {format_change(was.get(state), now.get(state))}"
                yield SpecChange(f"{name}.{state}", text, (*path, "as", state))


@kind("edge.increment", "A transition increments something else.", Verdict.BEHAVIOUR)
def find_edge_increment(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_edge_key(old, new, "increment")


@kind("edge.backoff", "The backoff after a transition changes.", Verdict.BEHAVIOUR)
def find_edge_backoff(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_edge_key(old, new, "backoff")


@kind("edge.dead_letter", "The dead-letter condition of a transition changes.", Verdict.BEHAVIOUR)
def find_edge_dead_letter(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_edge_key(old, new, "dead_letter")


@kind(
    "edge.due", "The clock drives a transition at other times, or another component does.", Verdict.BEHAVIOUR
)
def find_edge_due(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_edge_key(old, new, "due")


def _compare_parts(old: Spec, new: Spec, word: str, verb: str) -> Iterator[SpecChange]:
    """Compare the keys of a part of an entity."""
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        path = (*get_entity_path(name), word)
        yield from _compare_part(name, getattr(before, word), getattr(after, word), path, verb)


def _compare_part(name: str, was: object, now: object, path: Path, verb: str) -> Iterator[SpecChange]:
    if isinstance(was, BaseModel) and isinstance(now, BaseModel):
        for part, left, right in iter_changed_meanings(was, now):
            yield SpecChange(
                f"{name}.{part}", f"{name} {verb} {part} {format_change(left, right)}", (*path, part)
            )
    elif was is not now:
        yield SpecChange(name, f"{name} {verb} {format_change(was, now)}", path)


def _compare_edge_key(old: Spec, new: Spec, word: str) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, word, None), getattr(edge.after, word, None)
        if was != now:
            text = f"{edge.label} {word.replace('_', ' ')}: {format_value(was)} -> {format_value(now)}"
            yield SpecChange(edge.name, text, (*edge.path, word))
