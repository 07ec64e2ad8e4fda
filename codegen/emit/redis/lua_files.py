"""Entities that Redis keeps: a script for every change, with all indexes in step and nothing half done."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codegen.emit.artefact import Artefact
from codegen.emit.python.records import select_redis_entities
from codegen.emit.redis.change import Change
from codegen.emit.redis.creation import Creation
from codegen.emit.redis.field_values import Reading
from codegen.emit.redis.guards import checks, ways
from codegen.emit.redis.immediate_claim import first_of, handing
from codegen.emit.redis.leases import claim, renew
from codegen.emit.redis.lua_script import Script, text
from codegen.emit.redis.maintenance import due, forget, forget_unique, trim, update
from codegen.emit.redis.redis_entity import RedisEntity, owned
from codegen.emit.redis.script_arguments import Layout
from codegen.language.lifecycle import Entity, Shift, Transition
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    for name, row in select_redis_entities(spec).items():
        entity = RedisEntity(spec, name, row)
        for script in scripts(entity):
            yield Artefact(f"generated/{spec.name}/lua/{name}/{script.name}.lua", text(entity, script))


def scripts(entity: RedisEntity) -> Iterator[Script]:
    """Every script of an entity."""
    row = entity.row
    yield _create(entity)
    yield _create_one(entity)
    if entity.idle:
        yield _create_one(entity, for_one_who_waits=True)
    for name, edge in row.transitions.items():
        if entity.claim and entity.claim[0] == name:
            yield claim(entity, name, edge)
            yield renew(entity)
        else:
            yield _change(entity, f"move_{name}", f".transitions.{name}", name, edge)
    for name, shift in row.shifts.items():
        yield _change(entity, f"shift_{name}", f".shifts.{name}", name, shift)
    if row.delete:
        yield _delete(entity)
    yield update(entity)
    yield due()
    yield trim(entity)
    yield forget(entity)
    if entity.kept.unique:
        yield forget_unique(entity)


def _create(entity: RedisEntity) -> Script:
    row, layout = entity.row, Layout(in_json=True)
    hash_key = layout.each_key("hash", entity.kept.hash)
    layout.argument("actor")
    layout.each_argument("key")
    layout.each_argument("fields")
    layout.key("clock", f"clock:{entity.name}")
    unique = {}
    for name, remembered in entity.kept.unique.items():
        layout.each_key(f"unique_{name}", remembered.key)
        unique[name] = (layout.each_argument(f"new.{name}"), layout.argument(remembered.seconds))
    made = Creation(entity, layout, Reading(entity), "create", _nothing(row))
    place, key = None, entity.leased_index
    ceiling = row.create.refuses
    counted = ceiling.index if ceiling else entity.lease.index if entity.lease and key else None
    if counted is not None:
        place = made.counted_in(counted)
    lines = [*made.lines(answer=["place or cjson.null" if place else "cjson.null", "stamp"])]
    data = {
        "lines": lines,
        "unique": unique,
        "place": place,
        "most": layout.argument(ceiling.most) if ceiling else None,
        "hash": hash_key,
    }
    return Script("create", ".create", row.create.trigger, "create", layout, data)


def _create_one(entity: RedisEntity, *, for_one_who_waits: bool = False) -> Script:
    """Of one entity alone, under no value that it may share with none, where there is room without end."""
    row, layout = entity.row, Layout(in_json=True)
    layout.each_key("hash", entity.kept.hash)
    layout.argument("actor")
    layout.each_argument("key")
    layout.each_argument("fields")
    layout.key("clock", f"clock:{entity.name}")
    made = Creation(entity, layout, Reading(entity), "create", _nothing(row), plain=True)
    ceiling, counted = row.create.refuses, entity.lease.index if entity.lease else None
    place = made.size_of(name) if (name := ceiling.index if ceiling else counted) else None
    # All but the answer, which has another form here.
    lines = [*made.lines()][:-1]
    return Script(
        "create_for" if for_one_who_waits else "create_one",
        ".create",
        row.create.trigger,
        "create_one",
        layout,
        {
            "lines": lines,
            "part": first_of(made) if entity.idle else None,
            "handing": handing(made) if for_one_who_waits else None,
            "state": json.dumps(entity.word(entity.status, row.initial)),
            "place": f"redis.call('ZCARD', {place})" if place else "'null'",
        },
    )


def _nothing(row: Entity) -> Shift:
    """What a creation changes of what was there."""
    return Shift.model_construct(in_=(), by=row.create.by, trigger=row.create.trigger)


def _change(entity: RedisEntity, script: str, where: str, name: str, edge: Transition | Shift) -> Script:
    layout, was = Layout(in_json=True), Reading(entity)
    layout.each_key("hash", entity.kept.hash)
    layout.argument("actor")
    layout.argument("way")
    layout.each_argument("key")
    was(entity.status)
    lease = entity.lease
    told = []
    if lease:
        told += [f"{was(lease.owner)} or ''", f"{was(lease.fence)} or ''"]
    told.append(f"{was(entity.kept.trace)} or ''" if entity.kept.trace else "''")
    if edge.due and edge.due.at and isinstance(edge, Shift):
        told.append(f"string.format('%.0f', now - ({was(edge.due.at)} or now))")
    only_held = ways(entity, edge) == ["held"]
    # One that ends goes into the history as a whole.
    whole = isinstance(edge, Transition) and edge.to in entity.ended and entity.kept.outbox is not None
    change = Change(entity, layout, was, name, edge, only_held=only_held, whole=whole)
    usual = [*change.lines(told)]
    given_up, limit = list[str](), ""
    if isinstance(edge, Transition) and edge.gives_up:
        end = entity.row.transitions[edge.gives_up.with_]
        bound = edge.gives_up.limit
        most = layout.argument(bound) if bound.isupper() else f"tonumber({was(bound)} or 0)"
        layout.each_argument("final")
        failures = f"tonumber({was(edge.gives_up.count)} or 0)"
        if edge.gives_up.less:
            failures += f" - tonumber({was(edge.gives_up.less)} or 0)"
        limit = f"final == '1' or {failures} >= {most}"
        instead = Change(entity, layout, was, edge.gives_up.with_, end, only_held=only_held)
        given_up = [*instead.lines(told)]
    data = {
        "was": was,
        "whole": whole,
        "checks": [*checks(entity, layout, was, name, edge)],
        "ways": ways(entity, edge),
        "lines": usual,
        "given_up": given_up,
        "limit": limit,
        "mark": f"'{name} ' .. believed_{lease.owner} .. ' ' .. fence" if lease else "",
    }
    return Script(script, where, edge.trigger, "change", layout, data)


def _delete(entity: RedisEntity) -> Script:
    row, layout, was = entity.row, Layout(in_json=True), Reading(entity)
    deletion = row.delete
    assert deletion is not None
    layout.each_key("hash", entity.kept.hash)
    layout.argument("actor")
    layout.argument("way")
    layout.each_argument("key")
    was(entity.status)
    gone = Shift.model_construct(
        in_=deletion.from_, by=deletion.by, trigger=deletion.trigger, due=deletion.due
    )
    told = [f"{was(entity.kept.trace)} or ''" if entity.kept.trace else "''"]
    change = Change(entity, layout, was, "delete", gone, is_gone=True)
    held = None
    if deletion.unless_holding:
        held = _booked_by(entity, deletion.unless_holding, layout)
    data = {
        "was": was,
        "whole": False,
        "lines": [*change.lines(told)],
        "checks": [*checks(entity, layout, was, "delete", gone, held)],
        "ways": ways(entity, gone),
        "given_up": [],
        "limit": "",
        "mark": "",
    }
    return Script("delete", ".delete", deletion.trigger, "change", layout, data)


def _booked_by(entity: RedisEntity, other: str, layout: Layout) -> str | None:
    """The set of what is leased to an entity of this kind."""
    leased = RedisEntity(entity.spec, other, entity.spec.lifecycle.entities[other])
    lease = leased.lease
    if lease is None or lease.holder is None:
        return None
    pattern = leased.kept.indexes[lease.holder.booked].key
    return layout.each_key("booked", owned(pattern, entity.key))
