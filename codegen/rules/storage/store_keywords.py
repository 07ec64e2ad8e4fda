"""The rule of lifecycle.yaml about words that need a store, and about what one process alone can have."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.base import get_value
from codegen.language.lifecycle import Entity
from codegen.rules.lifecycle.entity_changes import iter_due_changes
from codegen.rules.rule import Finding, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

_ONE_PROCESS = {"sqlite": "SQLite"}
"""Stores that one process owns: components in several processes cannot share their entities."""
_OF_ENTITIES = ("shared_with", "lease", "updates", "overrides")
_OF_CREATIONS = ("copy", "defaults", "ceiling")
_OF_DELETIONS = ("due", "unless_holding")
_OF_EDGES = (
    "increment",
    "backoff",
    "dead_letter",
    "due",
    "by_name",
    "copy",
    "clear",
    "multiply",
    "reason",
)


@rule(
    "E224",
    "An entity uses a word that needs a store, or shares what one process owns.",
    wrong="parcel: {lease: {state: BAKING, …}}  # and no kept_in",
    right="order: {kept_in: {store: postgres, …}, lease: {state: BAKING, …}}",
    needs=("lifecycle",),
    spreads=True,
)
def check_store_keywords(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        if entity.kept_in is None:
            for path in [*_iter_keywords(entity)][:1]:
                place = spec.place("lifecycle", "entities", name, *path, key=True)
                message = (
                    f"A {name} lives in the memory of {entity.held_by}, where '{path[-1]}' means nothing."
                )
                hint = "Say by 'kept_in' which store keeps it, or remove the word."
                yield Finding(place, message, hint)
        elif entity.shared_with and (product := _ONE_PROCESS.get(entity.kept_in.store)):
            place = spec.place("lifecycle", "entities", name, "shared_with", key=True)
            message = f"{product} keeps every {name}, and one process owns its file, so nobody shares it."
            yield Finding(place, message, "Remove 'shared_with', or keep it in a server.")


def _iter_keywords(entity: Entity) -> Iterator[Path]:
    """Iterate over the words of an entity that it cannot have in the plain memory of its holder."""
    parts: list[tuple[Path, object, tuple[str, ...]]] = [
        ((), entity, _OF_ENTITIES),
        (("create",), entity.create, _OF_CREATIONS),
        (("delete",), entity.delete, _OF_DELETIONS),
        *((("transitions", name), row, _OF_EDGES) for name, row in entity.transitions.items()),
        *((each.path, each.due, ("at", "holder_in")) for each in iter_due_changes(entity)),
    ]
    for path, part, keywords in parts:
        for keyword in keywords:
            if part is not None and get_value(part, keyword):
                yield (*path, keyword)
