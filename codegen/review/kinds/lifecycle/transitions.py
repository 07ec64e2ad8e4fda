"""Differences of lifecycle.yaml: entities and the edges between their states.

The states are in states.py; where entities are kept and what the clock does to them is in persistence.py, and
what Redis adds to that in redis.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codegen.language.lifecycle import Creation, Deletion, Entity, Transition
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import added, gained, kept, same, shown, turn, words
from codegen.source.spec import Spec

EDGES = ("create", "delete", "transitions", "shifts")
KEEPING = ("shared_with", "kept_in", "lease", "shown")
"""Words of an entity whose kinds are in persistence.py."""


class Edge(NamedTuple):
    """A creation, a deletion or a transition that both have."""

    name: str
    shown: str
    before: Creation | Deletion | Transition
    after: Creation | Deletion | Transition
    path: Path


@kind("entity.added", "There is one more entity.", Verdict.COMPATIBLE)
def entity_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(old.lifecycle.entities, new.lifecycle.entities):
        yield Found(name, f"entity {name} is added", entity_path(name))


@kind("entity.removed", "An entity is gone.", Verdict.BEHAVIOUR)
def entity_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.lifecycle.entities, old.lifecycle.entities):
        yield Found(name, f"entity {name} is removed", entity_path(name))


@kind(
    "entity.changed", "An entity has another key, record, holder, driver or initial state.", Verdict.BEHAVIOUR
)
def entity_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for word, was, now in words(before, after, "terminal", *EDGES, *KEEPING):
            yield Found(f"{name}.{word}", f"{name} {word} {turn(was, now)}", (*entity_path(name), word))


@kind("deletion.added", "An entity can now be taken back.", Verdict.WIDENS)
def deletion_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        if after.delete and not before.delete:
            text = f"{name} can be deleted by {shown(after.delete.by)} in state {shown(after.delete.from_)}"
            yield Found(name, text, (*entity_path(name), "delete"))


@kind("deletion.removed", "An entity can no longer be taken back.", Verdict.BEHAVIOUR)
def deletion_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        if before.delete and not after.delete:
            yield Found(name, f"{name} can no longer be deleted", (*entity_path(name), "delete"))


@kind("deletion.from", "An entity can be taken back from other states.", Verdict.BEHAVIOUR)
def deletion_from(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        if isinstance(edge.before, Deletion) and isinstance(edge.after, Deletion):
            entity, path = edge.name.partition(".")[0], (*edge.path, "from")
            for state in gained(edge.before.from_, edge.after.from_):
                text = f"{entity} can be deleted in state {state}"
                yield Found(f"{entity}.{state}", text, path, verdict=Verdict.WIDENS)
            for state in gained(edge.after.from_, edge.before.from_):
                yield Found(f"{entity}.{state}", f"{entity} can no longer be deleted in state {state}", path)


@kind("transition.added", "An entity can take one more way.", Verdict.WIDENS)
def transition_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for edge, row in added(before.transitions, after.transitions):
            text = f"{row.from_} -> {row.to} is added for {', '.join(row.by)} ({edge})"
            yield Found(f"{name}.{edge}", text, (*entity_path(name), "transitions", edge))


@kind("transition.removed", "An entity can no longer take a way.", Verdict.BEHAVIOUR)
def transition_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for edge, row in added(after.transitions, before.transitions):
            text = f"{row.from_} -> {row.to} is removed ({edge})"
            yield Found(f"{name}.{edge}", text, (*entity_path(name), "transitions", edge))


@kind("transition.moved", "A transition has other ends.", Verdict.BEHAVIOUR)
def transition_moved(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        if isinstance(edge.before, Transition) and isinstance(edge.after, Transition):
            was = f"{edge.before.from_} -> {edge.before.to}"
            now = f"{edge.after.from_} -> {edge.after.to}"
            if was != now:
                ends = (*edge.path, "from"), (*edge.path, "to")
                yield Found(edge.name, f"{edge.name}: {was} becomes {now}", *ends)


@kind("actor.added", "Someone else may also create, delete or move an entity.", Verdict.WIDENS)
def actor_added(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        for actor in gained(edge.before.by, edge.after.by):
            yield Found(f"{edge.name} {actor}", f"{edge.shown} gains actor {actor}", (*edge.path, "by"))


@kind("actor.removed", "Someone may no longer create, delete or move an entity.", Verdict.BEHAVIOUR)
def actor_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        for actor in gained(edge.after.by, edge.before.by):
            yield Found(f"{edge.name} {actor}", f"{edge.shown} loses actor {actor}", (*edge.path, "by"))


@kind("edge.via", "An entity is created, deleted or moved through another method.", Verdict.BEHAVIOUR)
def edge_via(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        if edge.before.via != edge.after.via:
            was, now = edge.before.via or "the entity's method", edge.after.via or "the entity's method"
            yield Found(edge.name, f"{edge.shown} goes through {now} instead of {was}", (*edge.path, "via"))


@kind("edge.when", "A transition asks for other flags.", Verdict.BEHAVIOUR)
def edge_when(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, "when", ()), getattr(edge.after, "when", ())
        for flag in gained(was, now):
            yield Found(f"{edge.name} {flag}", f"{edge.shown} now needs {flag}", (*edge.path, "when"))
        for flag in gained(now, was):
            text = f"{edge.shown} no longer needs {flag}"
            yield Found(f"{edge.name} {flag}", text, (*edge.path, "when"), verdict=Verdict.WIDENS)


@kind("edge.after", "A transition follows other calls, or the same in another order.", Verdict.BEHAVIOUR)
def edge_after(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, "after", ()), getattr(edge.after, "after", ())
        if was != now:
            yield Found(edge.name, f"{edge.shown} follows {turn(was, now)}", (*edge.path, "after"))


@kind("edge.stamps", "Other times are stamped.", Verdict.BEHAVIOUR)
def edge_stamps(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, "stamps", ()), getattr(edge.after, "stamps", ())
        path = (*edge.path, "stamps")
        for stamp in gained(was, now):
            text = f"{edge.shown} stamps {stamp}"
            yield Found(f"{edge.name} {stamp}", text, path, verdict=Verdict.COMPATIBLE)
        for stamp in gained(now, was):
            yield Found(f"{edge.name} {stamp}", f"{edge.shown} no longer stamps {stamp}", path)


@kind("edge.sets", "A transition sets other fields of the record.", Verdict.BEHAVIOUR)
def edge_sets(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _entries(old, new, "sets")


@kind("edge.takes", "A transition keeps other fields of the request.", Verdict.BEHAVIOUR)
def edge_takes(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _entries(old, new, "takes")


def _entries(old: Spec, new: Spec, word: str) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, word, {}), getattr(edge.after, word, {})
        for name in sorted({*was, *now}):
            if not same(was.get(name), now.get(name)):
                text = f"{edge.shown} {word} {name}: {turn(was.get(name), now.get(name))}"
                yield Found(f"{edge.name} {name}", text, (*edge.path, word, name))


def entity_path(name: str) -> Path:
    return ("lifecycle", "entities", name)


def edges(old: Spec, new: Spec) -> Iterator[Edge]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        yield from _entity_edges(name, before, after)


def _entity_edges(name: str, before: Entity, after: Entity) -> Iterator[Edge]:
    at = entity_path(name)
    yield Edge(f"{name}.create", f"the creation of {name}", before.create, after.create, (*at, "create"))
    if before.delete and after.delete:
        yield Edge(f"{name}.delete", f"the deletion of {name}", before.delete, after.delete, (*at, "delete"))
    for edge, was, now in kept(before.transitions, after.transitions):
        yield Edge(f"{name}.{edge}", f"{now.from_} -> {now.to}", was, now, (*at, "transitions", edge))
