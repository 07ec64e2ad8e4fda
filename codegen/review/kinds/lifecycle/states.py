"""Differences of the states of an entity: set of states, reachability and terminal states."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.kinds.members import TypePair, find_state_enums, iter_enum_pairs
from codegen.review.kinds.pairs import iter_common, list_gained
from codegen.source.spec import Spec


@kind("state.added", "An entity has one more state.", Verdict.COMPATIBLE)
def find_state_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for entity, pair in _iter_state_enums(old, new):
        for name, value in pair.iter_added_members():
            text = f"{entity} gains the state {name} = {value.number}"
            yield SpecChange(f"{entity}.{name}", text, (*pair.new_at, "values", name))


@kind("state.removed", "An entity lacks a state, whose number and name have to be reserved.", Verdict.WIRE)
def find_state_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for entity, pair in _iter_state_enums(old, new):
        for name, value in pair.iter_removed_members():
            text, verdict = pair.describe_removal(name, value)
            path = (*pair.old_at, "values", name)
            yield SpecChange(f"{entity}.{name}", f"{entity} loses a state: {text}", path, verdict=verdict)


@kind("state.renamed", "The number of a state has another name.", Verdict.WIRE)
def find_state_renamed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for entity, pair in _iter_state_enums(old, new):
        for name, other, number in pair.iter_renamed_members():
            text = f"{entity} state {name} = {number} becomes {other}"
            paths = (*pair.old_at, "values", name), (*pair.new_at, "values", other)
            yield SpecChange(f"{entity}.{name}", text, *paths)


@kind("state.terminal", "A state becomes terminal, or no longer is.", Verdict.BEHAVIOUR)
def find_state_terminal(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        path = ("lifecycle", "entities", name, "terminal")
        for state in list_gained(before.terminal, after.terminal):
            yield SpecChange(f"{name}.{state}", f"state {state} of {name} becomes terminal", path)
        for state in list_gained(after.terminal, before.terminal):
            yield SpecChange(f"{name}.{state}", f"state {state} of {name} is no longer terminal", path)


@kind("state.unreachable", "A state becomes unreachable.", Verdict.BEHAVIOUR)
def find_state_unreachable(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for state in sorted(_find_reachable(before) - _find_reachable(after)):
            yield SpecChange(f"{name}.{state}", f"state {state} becomes unreachable")


@kind("state.stuck", "A state that is not terminal can no longer be left.", Verdict.BEHAVIOUR)
def find_state_stuck(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for state in sorted((_find_stuck(after) - _find_stuck(before)) & _find_reachable(after)):
            yield SpecChange(f"{name}.{state}", f"state {state} can no longer be left")


def _iter_state_enums(old: Spec, new: Spec) -> Iterator[tuple[str, TypePair]]:
    pairs = {each.name: each for each in iter_enum_pairs(old, new)}
    yield from ((entity, pairs[enum]) for entity, enum in find_state_enums(old, new).items())


def _find_reachable(entity: Entity) -> set[str]:
    reached = {*entity.beginnings}
    while more := {each.to for each in entity.transitions.values() if {*each.sources} & reached} - reached:
        reached |= more
    return reached


def _find_stuck(entity: Entity) -> set[str]:
    with_exit = {state for each in entity.transitions.values() for state in each.sources}
    return _find_reachable(entity) - with_exit - set(entity.terminal)
