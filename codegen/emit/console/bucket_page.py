"""`spec.js`: tables of the entities in a bucket for a page in a browser, and their lifecycle diagrams.

All effects of an edge are in the tables, also those at the end of a lease: the page has no rules of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from codegen.emit.artefact import Artefact, format_stamp, join_lines
from codegen.emit.docs.reference import draw_lifecycle
from codegen.emit.python.lifecycle import find_time_field, list_states
from codegen.emit.python.records import select_s3_entities
from codegen.language.lifecycle import Entity, Transition, Update
from codegen.language.types import MessageField
from codegen.source.spec import Spec, field_enum

FOLDER = "generated/{system}/page"


def emit(spec: Spec) -> Iterator[Artefact]:
    """Emit `spec.js`, and `lifecycle-<entity>.svg` of each entity that has edges."""
    if spec.system.page is None:
        return
    folder, entities = FOLDER.format(system=spec.name), select_s3_entities(spec)
    table = {
        "system": spec.name,
        "title": spec.system.title,
        "doc": join_lines(spec.system.summary),
        "principal": spec.system.page.principal,
        **{name: _describe_entity(spec, name, entity) for name, entity in entities.items()},
    }
    text = json.dumps(table, indent=2, ensure_ascii=False)
    yield Artefact(f"{folder}/spec.js", f"// {format_stamp(spec)}\nexport const spec = {text};\n")
    for name, entity in entities.items():
        if entity.transitions:
            yield Artefact(f"{folder}/lifecycle-{name}.svg", draw_lifecycle(spec, name))


def _describe_entity(spec: Spec, name: str, entity: Entity) -> dict[str, Any]:
    rows, store = spec.messages[entity.record].fields, entity.in_s3
    assert store is not None
    enum = field_enum(spec, rows[entity.status])
    table: dict[str, Any] = {
        "key": entity.key,
        "state": entity.status,
        "created": _find_creation_field(entity),
        "updated": _find_update_field(entity),
        "ended": _find_end_field(entity),
        "failure": _find_error_field(entity),
        "retries": _find_retry_fields(entity, rows),
        "object": store.object,
        "revision": store.revision,
        "shard": store.shard and {"field": store.shard.field, "digits": store.shard.digits},
        "schema": store.schema_ and {"field": store.schema_.field, "value": store.schema_.value},
        "states": [
            {
                "name": state,
                "word": enum.word(state) if enum else state,
                "doc": _format_doc(enum.values[state].doc if enum else None),
                "initial": state in entity.beginnings,
                "final": state in entity.terminal,
            }
            for state in list_states(spec, entity)
        ],
        "indexes": {
            title: {"key": row.key, "time": find_time_field(row.key, rows), "in": list(row.in_)}
            for title, row in store.indexes.items()
        },
        "hint": _list_hint_fields(entity, store.revision) if store.indexes else [],
        "lease": _describe_lease(entity),
        "refs": dict(store.large.refs) if store.large else {},
        "retires": _describe_retirement(entity),
        "edges": [_describe_edge(spec, entity, title, row) for title, row in entity.transitions.items()],
        "updates": [_describe_update(title, row) for title, row in entity.updates.items()],
        "fields": [_describe_field(title, row) for title, row in rows.items()],
    }
    return table | _describe_heartbeat(spec, name)


def _describe_edge(spec: Spec, entity: Entity, name: str, row: Transition) -> dict[str, Any]:
    rows = spec.messages[entity.record].fields
    texts = {field: take.default for field, take in row.from_request.items() if take.default}
    return {
        "name": name,
        "doc": _format_doc(row.trigger),
        "from": [*row.sources],
        "to": row.to,
        "by": list(row.by),
        "where": _encode_values(spec, rows, row.where) or None,
        "stamps": list(row.stamps),
        "sets": {**texts, **_encode_values(spec, rows, row.sets)},
        "clear": [
            *row.clear,
            *(each for each in _list_cleared_lease_fields(entity, row) if each not in row.clear),
        ],
        "increment": [row.increment] if row.increment else [],
    }


def _list_cleared_lease_fields(entity: Entity, row: Transition) -> list[str]:
    """List the fields that become unset when an edge ends a lease."""
    lease = entity.lease
    if lease is None or lease.state not in row.sources:
        return []
    free = {each for edge in entity.transitions.values() if edge.to == lease.state for each in edge.sources}
    is_kept = lease.keeps_owner and row.to not in free
    return [each for each in (lease.expires, lease.token, None if is_kept else lease.owner) if each]


def _encode_values(
    spec: Spec, rows: Mapping[str, MessageField], values: Mapping[str, bool | int | str]
) -> dict[str, Any]:
    """Encode values as they are stored in the object."""
    found: dict[str, Any] = {}
    for field, value in values.items():
        enum = field_enum(spec, rows[field])
        found[field] = enum.word(str(value)) if enum else value
    return found


def _describe_lease(entity: Entity) -> dict[str, Any] | None:
    if (lease := entity.lease) is None:
        return None
    words = ("state", "owner", "expires", "fence", "seconds", "oldest_by", "token", "only")
    return {word: getattr(lease, word) for word in words}


def _list_hint_fields(entity: Entity, revision: str) -> list[str]:
    """List the fields in a hint, the same as in the hints that the engine writes."""
    counts = sorted({row.increment for row in entity.transitions.values() if row.increment})
    return [*([entity.lease.fence] if entity.lease else []), *counts, revision]


def _describe_retirement(entity: Entity) -> dict[str, Any] | None:
    retires = entity.in_s3.retires if entity.in_s3 else None
    if retires is None:
        return None
    # The field with the state before: set by edges that retire, and a guard of edges that restore.
    edges = entity.transitions.values()
    set_fields = [field for row in edges if row.to in retires.in_ for field in row.sets]
    guard_fields = {field for row in edges if {*row.sources} & {*retires.in_} for field in row.where}
    origin = next((field for field in set_fields if field in guard_fields), None)
    return {"tag": retires.tag, "value": retires.value, "in": list(retires.in_), "from": origin}


def _find_error_field(entity: Entity) -> str | None:
    """Find the field with the error of a failure, which due transitions set for a lost owner."""
    for row in entity.transitions.values():
        for field, take in row.from_request.items():
            if any(take.from_ in due.values for due in row.dues):
                return field
    return None


def _find_retry_fields(entity: Entity, rows: Mapping[str, MessageField]) -> dict[str, Any] | None:
    """Find the field that counts failures, and the one with the limit, where each entity has its own."""
    for row in entity.transitions.values():
        if row.dead_letter is not None:
            limit = row.dead_letter.limit
            return {"count": row.dead_letter.count, "limit": limit if limit in rows else None}
    return None


def _find_end_field(entity: Entity) -> str | None:
    """Find the timestamp that a change sets, but not the creation."""
    later = [field for row in entity.transitions.values() for field in row.stamps]
    return next((field for field in later if field not in entity.create.stamps), None)


def _describe_update(name: str, row: Update) -> dict[str, Any]:
    return {
        "name": name,
        "doc": _format_doc(row.trigger),
        "in": list(row.in_),
        "from_request": list(row.from_request),
    }


def _find_creation_field(entity: Entity) -> str | None:
    """Find the timestamp that only the creation sets."""
    later = {field for row in _list_changes(entity) for field in row.stamps}
    return next((field for field in entity.create.stamps if field not in later), None)


def _find_update_field(entity: Entity) -> str | None:
    """Find the timestamp that every change sets."""
    rows = _list_changes(entity)
    return next((each for each in entity.create.stamps if all(each in row.stamps for row in rows)), None)


def _list_changes(entity: Entity) -> list[Any]:
    return [*entity.transitions.values(), *entity.updates.values()]


def _describe_field(name: str, row: MessageField) -> dict[str, Any]:
    kind = "uuid" if row.rules.uuid4 or row.rules.uuid else row.type
    return {"name": name, "type": kind, "optional": row.optional, "doc": _format_doc(row.doc)}


def _describe_heartbeat(spec: Spec, name: str) -> dict[str, Any]:
    watched = spec.system.page.watches if spec.system.page else None
    if watched is None or watched.entity != name:
        return {}
    variable = spec.environment.variables[watched.silent]
    return {"heartbeat": watched.by, "stale_after_seconds": variable.default}


def _format_doc(doc: str | None) -> str:
    return re.sub(r"\s+", " ", doc or "")
