"""Differences of the states of an entity: which there are, which can be reached and which are final."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.review.difference import Found, Verdict, kind
from codegen.review.kinds.members import Held, enums, state_enums
from codegen.review.kinds.pairs import gained, kept
from codegen.source.spec import Spec


@kind("state.added", "An entity has one more state.", Verdict.COMPATIBLE)
def state_added(old: Spec, new: Spec) -> Iterator[Found]:
    for entity, held in _states(old, new):
        for name, value in held.came():
            text = f"{entity} gains the state {name} = {value.number}"
            yield Found(f"{entity}.{name}", text, (*held.new_at, "values", name))


@kind("state.removed", "An entity lacks a state, whose number and name have to be reserved.", Verdict.WIRE)
def state_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for entity, held in _states(old, new):
        for name, value in held.went():
            text, verdict = held.deletion(name, value)
            path = (*held.old_at, "values", name)
            yield Found(f"{entity}.{name}", f"{entity} loses a state: {text}", path, verdict=verdict)


@kind("state.renamed", "The number of a state has another name.", Verdict.WIRE)
def state_renamed(old: Spec, new: Spec) -> Iterator[Found]:
    for entity, held in _states(old, new):
        for name, other, number in held.renamed():
            text = f"{entity} state {name} = {number} becomes {other}"
            paths = (*held.old_at, "values", name), (*held.new_at, "values", other)
            yield Found(f"{entity}.{name}", text, *paths)


@kind("state.terminal", "A state is final that was not, or is no longer.", Verdict.BEHAVIOUR)
def state_terminal(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        path = ("lifecycle", "entities", name, "terminal")
        for state in gained(before.terminal, after.terminal):
            yield Found(f"{name}.{state}", f"state {state} of {name} becomes terminal", path)
        for state in gained(after.terminal, before.terminal):
            yield Found(f"{name}.{state}", f"state {state} of {name} is no longer terminal", path)


@kind("state.unreachable", "No path leads to a state any more.", Verdict.BEHAVIOUR)
def state_unreachable(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for state in sorted(_reached(before) - _reached(after)):
            yield Found(f"{name}.{state}", f"state {state} becomes unreachable")


@kind("state.stuck", "A state that is not terminal can no longer be left.", Verdict.BEHAVIOUR)
def state_stuck(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for state in sorted((_stuck(after) - _stuck(before)) & _reached(after)):
            yield Found(f"{name}.{state}", f"state {state} can no longer be left")


def _states(old: Spec, new: Spec) -> Iterator[tuple[str, Held]]:
    held = {each.name: each for each in enums(old, new)}
    yield from ((entity, held[enum]) for entity, enum in state_enums(old, new).items())


def _reached(entity: Entity) -> set[str]:
    reached = {entity.initial}
    while more := {each.to for each in entity.transitions.values() if each.from_ in reached} - reached:
        reached |= more
    return reached


def _stuck(entity: Entity) -> set[str]:
    left = {each.from_ for each in entity.transitions.values()}
    return _reached(entity) - left - set(entity.terminal)
