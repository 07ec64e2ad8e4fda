"""Differences of lifecycle.yaml: entities and the edges between their states.

States are in states.py, indexes, leases and due transitions in persistence.py, updates in updates.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codegen.language.lifecycle import Creation, Deletion, Entity, Transition
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path, part_to_data
from codegen.review.kinds.pairs import (
    format_change,
    format_value,
    is_same,
    iter_added,
    iter_changed_keys,
    iter_common,
    list_gained,
)
from codegen.source.spec import Spec

EDGE_KEYS = ("create", "delete", "transitions", "updates")
STORAGE_KEYS = ("shared_with", "unique", "unique_for", "indexes", "expires", "lease", "public_status")
"""Keys of an entity whose kinds are in persistence.py."""


class EdgePair(NamedTuple):
    """A creation, a deletion or a transition that both specs have."""

    name: str
    label: str
    before: Creation | Deletion | Transition
    after: Creation | Deletion | Transition
    path: Path


@kind("entity.added", "There is one more entity.", Verdict.COMPATIBLE)
def find_entity_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(old.lifecycle.entities, new.lifecycle.entities):
        yield SpecChange(name, f"entity {name} is added", get_entity_path(name))


@kind("entity.removed", "An entity is gone.", Verdict.BEHAVIOUR)
def find_entity_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.lifecycle.entities, old.lifecycle.entities):
        yield SpecChange(name, f"entity {name} is removed", get_entity_path(name))


@kind(
    "entity.changed", "An entity has another key, record, holder, driver or initial state.", Verdict.BEHAVIOUR
)
def find_entity_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for word, was, now in iter_changed_keys(before, after, "terminal", *EDGE_KEYS, *STORAGE_KEYS):
            yield SpecChange(
                f"{name}.{word}", f"{name} {word} {format_change(was, now)}", (*get_entity_path(name), word)
            )


@kind("creation.to", "An entity may begin in other states.", Verdict.BEHAVIOUR)
def find_creation_to(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        path = (*get_entity_path(name), "create", "to")
        for state in list_gained(before.create.to, after.create.to):
            text = f"{name} may begin in state {state}"
            yield SpecChange(f"{name}.{state}", text, path, verdict=Verdict.WIDENS)
        for state in list_gained(after.create.to, before.create.to):
            yield SpecChange(f"{name}.{state}", f"{name} no longer begins in state {state}", path)


@kind("deletion.added", "An entity can now be deleted.", Verdict.WIDENS)
def find_deletion_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        if after.delete and not before.delete:
            actors, states = format_value(after.delete.by), format_value(after.delete.from_)
            text = f"{name} can be deleted by {actors} in state {states}"
            yield SpecChange(name, text, (*get_entity_path(name), "delete"))


@kind("deletion.removed", "An entity can no longer be deleted.", Verdict.BEHAVIOUR)
def find_deletion_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        if before.delete and not after.delete:
            yield SpecChange(name, f"{name} can no longer be deleted", (*get_entity_path(name), "delete"))


@kind("deletion.from", "An entity can be deleted in other states.", Verdict.BEHAVIOUR)
def find_deletion_from(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        if isinstance(edge.before, Deletion) and isinstance(edge.after, Deletion):
            entity, path = edge.name.partition(".")[0], (*edge.path, "from")
            for state in list_gained(edge.before.from_, edge.after.from_):
                text = f"{entity} can be deleted in state {state}"
                yield SpecChange(f"{entity}.{state}", text, path, verdict=Verdict.WIDENS)
            for state in list_gained(edge.after.from_, edge.before.from_):
                yield SpecChange(
                    f"{entity}.{state}", f"{entity} can no longer be deleted in state {state}", path
                )


@kind("transition.added", "An entity has one more transition.", Verdict.WIDENS)
def find_transition_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for edge, row in iter_added(before.transitions, after.transitions):
            text = f"{format_ends(row)} is added for {', '.join(row.by)} ({edge})"
            yield SpecChange(f"{name}.{edge}", text, (*get_entity_path(name), "transitions", edge))


@kind("transition.removed", "An entity lacks a transition.", Verdict.BEHAVIOUR)
def find_transition_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        merged = _find_merged(before, after)
        for edge, row in iter_added(after.transitions, before.transitions):
            if edge in merged:
                continue
            text = f"{format_ends(row)} is removed ({edge})"
            yield SpecChange(f"{name}.{edge}", text, (*get_entity_path(name), "transitions", edge))


@kind("transition.merged", "A transition is a part of another one with the same words.", Verdict.COMPATIBLE)
def find_transition_merged(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        for edge, other in _find_merged(before, after).items():
            text = f"{format_ends(before.transitions[edge])} is called {other} now ({edge})"
            paths = [(*get_entity_path(name), "transitions", edge)]
            if other in before.transitions:
                paths.append((*get_entity_path(name), "transitions", other, "from"))
            yield SpecChange(f"{name}.{edge}", text, *paths)


def list_merged(old: Spec, new: Spec) -> dict[str, str]:
    """List the transitions that are a part of another one now, as `entity.name`, each with that one."""
    return {
        f"{name}.{edge}": f"{name}.{other}"
        for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities)
        for edge, other in _find_merged(before, after).items()
    }


def _find_merged(before: Entity, after: Entity) -> dict[str, str]:
    """Find the transitions that are gone and whose sources another one has, with words that are the same."""
    found: dict[str, str] = {}
    for name, row in iter_added(after.transitions, before.transitions):
        for other, wider in after.transitions.items():
            if {*row.sources} < {*wider.sources} and _list_words(row) == _list_words(wider):
                found[name] = other
    return found


def _list_words(row: Transition) -> dict[str, object]:
    return {key: value for key, value in part_to_data(row).items() if key not in ("from", "trigger")}


@kind("transition.moved", "A transition has another source or target state.", Verdict.BEHAVIOUR)
def find_transition_moved(old: Spec, new: Spec) -> Iterator[SpecChange]:
    merging = {*_list_only_merging(old, new)}
    for edge in iter_edge_pairs(old, new):
        if isinstance(edge.before, Transition) and isinstance(edge.after, Transition):
            was, now = format_ends(edge.before), format_ends(edge.after)
            if was == now or edge.name in merging:
                continue
            ends = (*edge.path, "from"), (*edge.path, "to")
            is_wider = edge.before.to == edge.after.to and {*edge.before.sources} < {*edge.after.sources}
            verdict = Verdict.WIDENS if is_wider else None
            yield SpecChange(edge.name, f"{edge.name}: {was} becomes {now}", *ends, verdict=verdict)


def _list_only_merging(old: Spec, new: Spec) -> Iterator[str]:
    """List the transitions whose further sources are those of others that have become a part of them."""
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        merged = _find_merged(before, after)
        for edge, was, now in iter_common(before.transitions, after.transitions):
            parts = [before.transitions[other] for other, into in merged.items() if into == edge]
            if parts and {*now.sources} == {state for row in (was, *parts) for state in row.sources}:
                yield f"{name}.{edge}"


@kind("actor.added", "One more principal may create, delete or change an entity.", Verdict.WIDENS)
def find_actor_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        for actor in list_gained(edge.before.by, edge.after.by):
            yield SpecChange(f"{edge.name} {actor}", f"{edge.label} gains actor {actor}", (*edge.path, "by"))


@kind("actor.removed", "A principal may no longer create, delete or change an entity.", Verdict.BEHAVIOUR)
def find_actor_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        for actor in list_gained(edge.after.by, edge.before.by):
            yield SpecChange(f"{edge.name} {actor}", f"{edge.label} loses actor {actor}", (*edge.path, "by"))


@kind("edge.via", "An entity is created, deleted or changed through another method.", Verdict.BEHAVIOUR)
def find_edge_via(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        if edge.before.via != edge.after.via:
            was, now = edge.before.via or "the entity's method", edge.after.via or "the entity's method"
            yield SpecChange(
                edge.name, f"{edge.label} goes through {now} instead of {was}", (*edge.path, "via")
            )


@kind("edge.when", "A transition requires other flags.", Verdict.BEHAVIOUR)
def find_edge_when(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, "when", ()), getattr(edge.after, "when", ())
        for flag in list_gained(was, now):
            yield SpecChange(f"{edge.name} {flag}", f"{edge.label} now needs {flag}", (*edge.path, "when"))
        for flag in list_gained(now, was):
            text = f"{edge.label} no longer needs {flag}"
            yield SpecChange(f"{edge.name} {flag}", text, (*edge.path, "when"), verdict=Verdict.WIDENS)


@kind("edge.after", "A transition follows other calls, or the same in another order.", Verdict.BEHAVIOUR)
def find_edge_after(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, "after", ()), getattr(edge.after, "after", ())
        if was != now:
            yield SpecChange(
                edge.name, f"{edge.label} follows {format_change(was, now)}", (*edge.path, "after")
            )


@kind("edge.stamps", "Other times are stamped.", Verdict.BEHAVIOUR)
def find_edge_stamps(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, "stamps", ()), getattr(edge.after, "stamps", ())
        path = (*edge.path, "stamps")
        for stamp in list_gained(was, now):
            text = f"{edge.label} stamps {stamp}"
            yield SpecChange(f"{edge.name} {stamp}", text, path, verdict=Verdict.COMPATIBLE)
        for stamp in list_gained(now, was):
            yield SpecChange(f"{edge.name} {stamp}", f"{edge.label} no longer stamps {stamp}", path)


@kind("edge.sets", "A transition sets other fields of the record.", Verdict.BEHAVIOUR)
def find_edge_sets(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_entries(old, new, "sets")


@kind("edge.from_request", "A transition keeps other fields of the request.", Verdict.BEHAVIOUR)
def find_edge_from_request(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _compare_entries(old, new, "from_request")


def _compare_entries(old: Spec, new: Spec, word: str) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, word, {}), getattr(edge.after, word, {})
        for name in sorted({*was, *now}):
            if not is_same(was.get(name), now.get(name)):
                text = f"{edge.label} {word} {name}: {format_change(was.get(name), now.get(name))}"
                yield SpecChange(f"{edge.name} {name}", text, (*edge.path, word, name))


def format_ends(row: Transition) -> str:
    """Format the states of an edge; the order of several sources has no meaning."""
    return f"{', '.join(sorted(row.sources))} -> {row.to}"


def get_entity_path(name: str) -> Path:
    """Get the path of an entity."""
    return ("lifecycle", "entities", name)


def iter_edge_pairs(old: Spec, new: Spec) -> Iterator[EdgePair]:
    """Iterate over the edges that both specs have."""
    for name, before, after in iter_common(old.lifecycle.entities, new.lifecycle.entities):
        yield from _iter_entity_edges(name, before, after)


def _iter_entity_edges(name: str, before: Entity, after: Entity) -> Iterator[EdgePair]:
    at = get_entity_path(name)
    yield EdgePair(f"{name}.create", f"the creation of {name}", before.create, after.create, (*at, "create"))
    if before.delete and after.delete:
        yield EdgePair(
            f"{name}.delete", f"the deletion of {name}", before.delete, after.delete, (*at, "delete")
        )
    for edge, was, now in iter_common(before.transitions, after.transitions):
        yield EdgePair(f"{name}.{edge}", format_ends(now), was, now, (*at, "transitions", edge))
