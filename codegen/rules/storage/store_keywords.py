"""The rule of lifecycle.yaml about keywords that only some stores support, and which those are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.language.base import get_value
from codegen.language.lifecycle import Entity
from codegen.rules.lifecycle.entity_changes import iter_due_changes
from codegen.rules.rule import Finding, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

Stores = tuple[str, ...]

_SERVERS: Stores = ("postgres", "redis", "s3")
_STORED: Stores = ("postgres", "redis", "sqlite", "s3")
_INDEXED: Stores = ("redis", "sqlite")
_NEWER: Stores = ("redis", "sqlite", "s3")
_OF_ENTITIES = {
    "shared_with": _SERVERS,
    "lease": _STORED,
    "updates": _NEWER,
    "overrides": ("postgres", "redis", "sqlite"),
}
_OF_CREATIONS = {"copy": _NEWER, "defaults": _INDEXED, "ceiling": _INDEXED}
_OF_DELETIONS = {"due": _INDEXED, "unless_holding": _INDEXED}
_OF_LEASES = {
    **dict.fromkeys(("index", "claim_order", "paused", "holder"), _INDEXED),
    "keeps_owner": _NEWER,
    "renewed": _INDEXED,
    **dict.fromkeys(("token", "only"), _NEWER),
}
_OF_CLOCKS = {
    **dict.fromkeys(("holder_in", "batch"), _INDEXED),
    "values": _NEWER,
    **dict.fromkeys(("grace", "on_access"), _INDEXED),
}
_OF_EDGES = {
    **dict.fromkeys(("increment", "backoff", "dead_letter", "due", "by_name"), _STORED),
    **dict.fromkeys(("copy", "clear"), _NEWER),
    "multiply": _INDEXED,
    **dict.fromkeys(("also_due", "reason"), _INDEXED),
    "where": _NEWER,
}
_OF_WAITS = {"times": _NEWER, "jitter": _NEWER}
_PRODUCTS = {"postgres": "PostgreSQL", "redis": "Redis", "sqlite": "SQLite", "s3": "S3"}


@rule(
    "E224",
    "An entity uses a word that the store it is kept in does not know.",
    wrong="parcel: {lease: {state: BAKING, …}}  # and no kept_in",
    right="order: {kept_in: {store: postgres, …}, lease: {state: BAKING, …}}",
    needs=("lifecycle",),
    spreads=True,
)
def check_store_keywords(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        if entity.kept_in is not None and entity.retention and not entity.in_sqlite:
            place = spec.place("lifecycle", "entities", name, "retention", key=True)
            message = f"A server keeps every {name}, so no policy bounds how many."
            yield Finding(place, message, "Remove 'retention'; a method may delete what is old.")
        store = entity.kept_in.store if entity.kept_in else "memory"
        unsupported = [(path, stores) for path, stores in _iter_keywords(entity) if store not in stores]
        for path, stores in unsupported[:1]:
            place = spec.place("lifecycle", "entities", name, *path, key=True)
            if store == "memory":
                message = (
                    f"A {name} lives in the memory of {entity.held_by}, where '{path[-1]}' means nothing."
                )
                hint = f"Keep it in {_format_stores(stores)}, or remove the word."
            else:
                message = f"{_PRODUCTS[store]} keeps every {name}, where '{path[-1]}' means nothing."
                hint = f"Remove it; only entities in {_format_stores(stores)} have it."
            yield Finding(place, message, hint)


def _format_stores(stores: Stores) -> str:
    """Format stores as `PostgreSQL, Redis or S3`."""
    *others, last = [_PRODUCTS[each] for each in stores]
    return f"{', '.join(others)} or {last}" if others else last


def _iter_keywords(entity: Entity) -> Iterator[tuple[Path, Stores]]:
    """Iterate over the keywords of an entity that not every store supports, each with the stores that do."""
    parts: list[tuple[Path, object, Mapping[str, Stores]]] = [
        ((), entity, _OF_ENTITIES),
        (("lease",), entity.lease, _OF_LEASES),
        (("create",), entity.create, _OF_CREATIONS),
        (("delete",), entity.delete, _OF_DELETIONS),
        *((("transitions", name), row, _OF_EDGES) for name, row in entity.transitions.items()),
        *(
            (("transitions", name, "backoff"), row.backoff, _OF_WAITS)
            for name, row in entity.transitions.items()
        ),
        *((each.path, each.due, _OF_CLOCKS) for each in iter_due_changes(entity)),
    ]
    for path, part, keywords in parts:
        for keyword, stores in keywords.items():
            if part is not None and get_value(part, keyword):
                yield (*path, keyword), stores
