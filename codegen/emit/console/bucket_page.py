"""What a page in a browser has to know of the entities of a bucket, as a module, and pictures of their lives.

All effects of an edge are there, those of a lease that ends as well: the page has no rules of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from codegen.emit.artefact import Artefact, format_stamp, join_lines
from codegen.emit.docs.reference import drawing
from codegen.emit.python.lifecycle import find_time_field, list_states
from codegen.emit.python.records import select_s3_entities
from codegen.language.lifecycle import Entity, Shift, Transition
from codegen.language.types import MessageField
from codegen.source.spec import Spec, field_enum

FOLDER = "generated/{system}/page"


def emit(spec: Spec) -> Iterator[Artefact]:
    """`spec.js`, and `lifecycle-<entity>.svg` of each entity that has edges."""
    if spec.system.page is None:
        return
    folder, entities = FOLDER.format(system=spec.name), select_s3_entities(spec)
    told = {
        "system": spec.name,
        "title": spec.system.title,
        "doc": join_lines(spec.system.summary),
        "principal": spec.system.page.principal,
        **{name: _entity(spec, name, entity) for name, entity in entities.items()},
    }
    text = json.dumps(told, indent=2, ensure_ascii=False)
    yield Artefact(f"{folder}/spec.js", f"// {format_stamp(spec)}\nexport const spec = {text};\n")
    for name, entity in entities.items():
        if entity.transitions:
            yield Artefact(f"{folder}/lifecycle-{name}.svg", drawing(spec, name))


def _entity(spec: Spec, name: str, entity: Entity) -> dict[str, Any]:
    rows, kept = spec.messages[entity.record].fields, entity.in_s3
    assert kept is not None
    enum = field_enum(spec, rows[entity.status])
    told: dict[str, Any] = {
        "key": entity.key,
        "state": entity.status,
        "created": _created(entity),
        "updated": _updated(entity),
        "ended": _ended(entity),
        "failure": _failure(entity),
        "retries": _retries(entity, rows),
        "object": kept.object,
        "revision": kept.revision,
        "shard": kept.shard and {"field": kept.shard.field, "digits": kept.shard.digits},
        "schema": kept.schema_ and {"field": kept.schema_.field, "value": kept.schema_.value},
        "states": [
            {
                "name": state,
                "word": enum.word(state) if enum else state,
                "doc": _said(enum.values[state].doc if enum else None),
                "initial": state == entity.initial,
                "final": state in entity.terminal,
            }
            for state in list_states(spec, entity)
        ],
        "indexes": {
            title: {"key": row.key, "time": find_time_field(row.key, rows), "in": list(row.in_)}
            for title, row in kept.indexes.items()
        },
        "hint": _hint(entity, kept.revision) if kept.indexes else [],
        "lease": _lease(entity),
        "refs": dict(kept.large.refs) if kept.large else {},
        "retires": _retires(entity),
        "edges": [_edge(spec, entity, title, row) for title, row in entity.transitions.items()],
        "shifts": [_shift(title, row) for title, row in entity.shifts.items()],
        "fields": [_field(title, row) for title, row in rows.items()],
    }
    return told | _watched(spec, name)


def _edge(spec: Spec, entity: Entity, name: str, row: Transition) -> dict[str, Any]:
    rows = spec.messages[entity.record].fields
    texts = {field: take.default for field, take in row.takes.items() if take.default}
    return {
        "name": name,
        "doc": _said(row.trigger),
        "from": [row.from_],
        "to": row.to,
        "by": list(row.by),
        "where": _stored(spec, rows, row.where) or None,
        "stamps": list(row.stamps),
        "sets": {**texts, **_stored(spec, rows, row.sets)},
        "clears": [*row.clears, *(each for each in _ended_lease(entity, row) if each not in row.clears)],
        "counts": [row.counts] if row.counts else [],
    }


def _ended_lease(entity: Entity, row: Transition) -> list[str]:
    """What becomes unset when an edge leads out of the state of a lease."""
    lease = entity.lease
    if lease is None or row.from_ != lease.state:
        return []
    free = {edge.from_ for edge in entity.transitions.values() if edge.to == lease.state}
    kept = lease.keeps_owner and row.to not in free
    return [each for each in (lease.expires, lease.token, None if kept else lease.owner) if each]


def _stored(
    spec: Spec, rows: Mapping[str, MessageField], values: Mapping[str, bool | int | str]
) -> dict[str, Any]:
    """Values as the object has them."""
    found: dict[str, Any] = {}
    for field, value in values.items():
        enum = field_enum(spec, rows[field])
        found[field] = enum.word(str(value)) if enum else value
    return found


def _lease(entity: Entity) -> dict[str, Any] | None:
    if (lease := entity.lease) is None:
        return None
    words = ("state", "owner", "expires", "fence", "seconds", "oldest_by", "token", "only")
    return {word: getattr(lease, word) for word in words}


def _hint(entity: Entity, revision: str) -> list[str]:
    """What a hint says of its entity: the same as those that the engine writes."""
    counts = sorted({row.counts for row in entity.transitions.values() if row.counts})
    return [*([entity.lease.fence] if entity.lease else []), *counts, revision]


def _retires(entity: Entity) -> dict[str, Any] | None:
    retires = entity.in_s3.retires if entity.in_s3 else None
    if retires is None:
        return None
    # What an entity was before: set on the way in, and asked for on the way out.
    ways = entity.transitions.values()
    told = [field for row in ways if row.to in retires.in_ for field in row.sets]
    asked = {field for row in ways if row.from_ in retires.in_ for field in row.where}
    origin = next((field for field in told if field in asked), None)
    return {"tag": retires.tag, "value": retires.value, "in": list(retires.in_), "from": origin}


def _failure(entity: Entity) -> str | None:
    """The field that has what went wrong: what the clock says of whoever was not heard of."""
    for row in entity.transitions.values():
        for field, take in row.takes.items():
            if row.due is not None and take.from_ in row.due.gives:
                return field
    return None


def _retries(entity: Entity, rows: Mapping[str, MessageField]) -> dict[str, Any] | None:
    """The field that counts failures, and the one with the most of them, where each entity has its own."""
    for row in entity.transitions.values():
        if row.gives_up is not None:
            limit = row.gives_up.limit
            return {"count": row.gives_up.count, "limit": limit if limit in rows else None}
    return None


def _ended(entity: Entity) -> str | None:
    """The time that no creation sets, but some change does."""
    later = [field for row in entity.transitions.values() for field in row.stamps]
    return next((field for field in later if field not in entity.create.stamps), None)


def _shift(name: str, row: Shift) -> dict[str, Any]:
    return {"name": name, "doc": _said(row.trigger), "in": list(row.in_), "takes": list(row.takes)}


def _created(entity: Entity) -> str | None:
    """The time that is set once and never again."""
    later = {field for row in _changes(entity) for field in row.stamps}
    return next((field for field in entity.create.stamps if field not in later), None)


def _updated(entity: Entity) -> str | None:
    """The time that every change sets."""
    rows = _changes(entity)
    return next((each for each in entity.create.stamps if all(each in row.stamps for row in rows)), None)


def _changes(entity: Entity) -> list[Any]:
    return [*entity.transitions.values(), *entity.shifts.values()]


def _field(name: str, row: MessageField) -> dict[str, Any]:
    kind = "uuid" if row.rules.uuid4 or row.rules.uuid else row.type
    return {"name": name, "type": kind, "optional": row.optional, "doc": _said(row.doc)}


def _watched(spec: Spec, name: str) -> dict[str, Any]:
    watched = spec.system.page.watches if spec.system.page else None
    if watched is None or watched.entity != name:
        return {}
    variable = spec.environment.variables[watched.silent]
    return {"heartbeat": watched.by, "stale_after_seconds": variable.default}


def _said(doc: str | None) -> str:
    return re.sub(r"\s+", " ", doc or "")
