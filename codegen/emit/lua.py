"""Entities that Redis keeps: a script for every change, with all indexes in step and nothing half done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from codegen.emit.artefact import Artefact, fill, oneline
from codegen.emit.lua_change import Change, Reading
from codegen.emit.lua_creation import Creation
from codegen.emit.lua_entity import RedisEntity, owned
from codegen.emit.lua_layout import Layout, listed, quoted
from codegen.emit.lua_ways import checks, ways
from codegen.emit.records import in_redis
from codegen.language.lifecycle import Shift, Transition
from codegen.spec import Spec

INDENT = "  "
WIDTH = 110


@dataclass
class Script:
    """One script: where it comes from, what it is handed, and what it does."""

    name: str
    where: str
    doc: str
    template: str
    layout: Layout = field(default_factory=Layout)
    data: dict[str, Any] = field(default_factory=dict)


def emit(spec: Spec) -> Iterator[Artefact]:
    for name, row in in_redis(spec).items():
        entity = RedisEntity(spec, name, row)
        for script in scripts(entity):
            yield Artefact(f"generated/{spec.name}/lua/{name}/{script.name}.lua", text(entity, script))


def text(entity: RedisEntity, script: Script) -> str:
    """The file of a script."""
    body = fill(
        f"lua/{script.template}.lua.j2",
        entity.spec,
        entity=entity,
        layout=script.layout,
        quoted=quoted,
        listed=listed,
        **script.data,
    )
    header = [
        f"-- {entity.spec.folder}/lifecycle.yaml entities.{entity.name}{script.where}",
        f"-- {oneline(script.doc)}",
        f"-- Generated from it (sha256:{entity.spec.digest[:16]}). Do not edit; run `nox -s generate`.",
        "--",
        *script.layout.header(),
    ]
    names = "\n".join(script.layout.prologue())
    return "\n".join((*header, "", names, _laid_out(body), ""))


def scripts(entity: RedisEntity) -> Iterator[Script]:
    """Every script of an entity."""
    row = entity.row
    yield _create(entity)
    for name, edge in row.transitions.items():
        if entity.claim and entity.claim[0] == name:
            yield _claim(entity, name, edge)
            yield _peek(entity)
            yield _renew(entity)
        else:
            yield _change(entity, f"move_{name}", f".transitions.{name}", name, edge)
    for name, shift in row.shifts.items():
        yield _change(entity, f"shift_{name}", f".shifts.{name}", name, shift)
    if row.delete:
        yield _delete(entity)
    yield _update(entity)
    yield _due()
    yield _trim(entity)
    yield _forget(entity)
    if entity.kept.unique:
        yield _forget_unique(entity)


def _create(entity: RedisEntity) -> Script:
    row, layout = entity.row, Layout(open_ended=True)
    hash_key = layout.each_key("hash", entity.kept.hash)
    layout.argument("actor")
    layout.each_argument("key")
    layout.key("clock", f"clock:{entity.name}")
    unique = {}
    for name, remembered in entity.kept.unique.items():
        layout.each_key(f"unique_{name}", remembered.key)
        unique[name] = (layout.each_argument(f"new.{name}"), layout.argument(remembered.seconds))
    nothing = Shift.model_construct(in_=(), by=row.create.by, trigger=row.create.trigger)
    made = Creation(entity, layout, Reading(entity), "create", nothing)
    place, key = None, entity.leased_index
    ceiling = row.create.refuses
    counted = ceiling.index if ceiling else entity.lease.index if entity.lease and key else None
    if counted is not None:
        place = made.counted_in(counted)
    lines = [*made.lines(answer=["place or false" if place else "false", "stamp"])]
    data = {
        "lines": lines,
        "unique": unique,
        "place": place,
        "most": layout.argument(ceiling.most) if ceiling else None,
        "hash": hash_key,
    }
    return Script("create", ".create", row.create.trigger, "create", layout, data)


def _change(entity: RedisEntity, script: str, where: str, name: str, edge: Transition | Shift) -> Script:
    layout, was = Layout(), Reading(entity)
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
    change = Change(entity, layout, was, name, edge, only_held=only_held)
    usual = [*change.lines(told)]
    given_up, limit = list[str](), ""
    if isinstance(edge, Transition) and edge.gives_up:
        end = entity.row.transitions[edge.gives_up.with_]
        bound = edge.gives_up.limit
        most = layout.argument(bound) if bound.isupper() else f"tonumber({was(bound)} or 0)"
        layout.each_argument("final")
        limit = f"final == '1' or tonumber({was(edge.gives_up.count)} or 0) >= {most}"
        instead = Change(entity, layout, was, edge.gives_up.with_, end, only_held=only_held)
        given_up = [*instead.lines(told)]
    data = {
        "was": was,
        "checks": [*checks(entity, layout, was, name, edge)],
        "ways": ways(entity, edge),
        "lines": usual,
        "given_up": given_up,
        "limit": limit,
        "mark": f"'{name} ' .. believed_{lease.owner} .. ' ' .. fence" if lease else "",
    }
    return Script(script, where, edge.trigger, "change", layout, data)


def _delete(entity: RedisEntity) -> Script:
    row, layout, was = entity.row, Layout(), Reading(entity)
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


def _claim(entity: RedisEntity, name: str, edge: Transition) -> Script:
    layout, was, lease = Layout(), Reading(entity), entity.lease
    assert lease is not None and lease.index is not None
    layout.each_key("hash", entity.kept.hash)
    layout.argument("actor")
    layout.argument("owner")
    layout.argument("most")
    layout.each_argument("key")
    index = entity.key_of_index(lease.index)
    for each in (entity.status, index.enum, entity.signature_field if entity.parted else None):
        if each:
            was(each)
    change = Change(entity, layout, was, name, edge, own_part=True, one_owner=True)
    lines = [*change.lines(["row"])]
    now = {name: value.text for name, value in change.after.items()} | {entity.kept.sequence: "sequence"}
    row = [
        now[name].replace("nil", "false") if name in now else f"was[{quoted(name)}] or false"
        for name in entity.fields
    ]
    if index.enum:
        layout.each_argument(f"believed.{index.enum}")
    if entity.parted:
        layout.each_argument("believed.signature")
    data = {
        "was": was,
        "lines": lines,
        "row": row,
        "enum": index.enum,
        "source": edge.from_,
        "part": f"part_{lease.index}" if entity.parted else None,
        "index": layout.key_table(index.name, index.by_word)
        if index.enum
        else layout.key(index.name, index.pattern),
        **_holder(entity, layout),
    }
    return Script("claim", f".transitions.{name}", edge.trigger, "claim", layout, data)


def _holder(entity: RedisEntity, layout: Layout) -> dict[str, Any]:
    """What both halves of taking a lease have to know of whoever takes it."""
    lease = entity.lease
    assert lease is not None and lease.index is not None
    found: dict[str, Any] = {"holder": None, "paused": None}
    if lease.paused:
        found["paused"] = layout.key("paused", lease.paused)
    if lease.holder:
        other = RedisEntity(
            entity.spec, lease.holder.entity, entity.spec.lifecycle.entities[lease.holder.entity]
        )
        layout.key("holder", owned(other.kept.hash))
        booked = owned(entity.kept.indexes[lease.holder.booked].key)
        layout.key(f"index_{lease.holder.booked}", booked)
        found |= {
            "holder": lease.holder,
            "holder_status": other.status,
            "holder_states": [other.state(state) for state in lease.holder.in_],
            "booked": f"index_{lease.holder.booked}",
        }
    return found


def _peek(entity: RedisEntity) -> Script:
    layout, lease = Layout(), entity.lease
    assert lease is not None and lease.index is not None
    layout.argument("most")
    index, parts = entity.key_of_index(lease.index), entity.kept.indexes[lease.index].parts
    words = [entity.word(index.enum, value) for value in lease.first] if index.enum else []
    if parts:
        part = entity.part_of_index(lease.index)
        layout.key("version", f"{parts.known}:version")
        if part.enum:
            layout.each_key_table("part", {word: part.by_word[word] for word in words})
        else:
            layout.each_key("part", part.pattern)
    elif index.enum:
        layout.key_table("index", {word: index.by_word[word] for word in words})
    else:
        layout.key("index", index.pattern)
    data = {"words": words, "parts": bool(parts), "enum": index.enum, **_holder(entity, layout)}
    doc = "Who could be leased next, in the order of the spec; nothing is changed."
    return Script("peek", ".lease", doc, "peek", layout, data)


def _renew(entity: RedisEntity) -> Script:
    layout, lease = Layout(), entity.lease
    assert lease is not None
    layout.each_key("hash", entity.kept.hash)
    for name in ("key", f"believed.{lease.owner}", "fence", "seconds"):
        layout.each_argument(name)
    inside = {name: index for name, index in entity.kept.indexes.items() if index.score == lease.expires}
    keys = [
        layout.key(f"index_{name}", index.key) for name, index in inside.items() if lease.state in index.in_
    ]
    data = {"lease": lease, "keys": keys, "owner": layout.each_arguments[f"believed.{lease.owner}"]}
    return Script("renew", ".lease", "Lets a lease end later; its holder alone may.", "renew", layout, data)


def _update(entity: RedisEntity) -> Script:
    layout = Layout(open_ended=True)
    layout.each_key("hash", entity.kept.hash)
    layout.each_argument("key")
    doc = "Puts other fields that no transition touches and no index goes by."
    return Script("update", ".kept_in", doc, "update", layout)


def _due() -> Script:
    layout = Layout()
    layout.key("index", "{index}")
    for name in ("after", "offset", "most"):
        layout.argument(name)
    doc = "Which of an index have been there for so long, by the clock of Redis; nothing is changed."
    return Script("due", ".kept_in.indexes", doc, "due", layout)


def _trim(entity: RedisEntity) -> Script:
    layout, kept = Layout(), entity.kept
    expired: list[str] = []
    for name, index in kept.indexes.items():
        key = entity.key_of_index(name)
        if kept.expires is None or index.score is None:
            continue
        ended = [state for state in index.in_ if state in entity.row.terminal]
        if key.enum == entity.status:
            words = [entity.word(entity.status, state) for state in ended]
            expired += [layout.key(f"index_{name}_{word}", key.by_word[word]) for word in words]
        elif key.enum is None and key.text is None and len(ended) == len(index.in_):
            expired.append(layout.key(f"index_{name}", index.key))
    parted = next((name for name, index in kept.indexes.items() if index.parts), None)
    parts = kept.indexes[parted].parts if parted else None
    places: list[str] = []
    if parts and parted:
        layout.key("known", parts.known)
        layout.key("version", f"{parts.known}:version")
        layout.each_argument("signature")
        part = entity.part_of_index(parted)
        if part.enum:
            layout.each_key_table("part", part.by_word)
            places = [*layout.each_keys]
        else:
            places = [layout.each_key("part", part.pattern)]
    most = layout.argument(kept.expires) if kept.expires else None
    doc = "Forgets what has expired, and sets of texts that no entity has any more."
    data = {"expired": expired, "most": most, "parts": len(places)}
    return Script("trim", ".kept_in", doc, "trim", layout, data)


def _forget(entity: RedisEntity) -> Script:
    layout = Layout()
    layout.key("index", "{index}")
    layout.each_key("hash", entity.kept.hash)
    layout.each_argument("key")
    doc = "Takes keys out of an index whose entities are gone."
    return Script("forget", ".kept_in.indexes", doc, "forget", layout)


def _forget_unique(entity: RedisEntity) -> Script:
    layout = Layout()
    layout.key("unique", "{unique}")
    layout.each_key("hash", entity.kept.hash)
    layout.each_argument("key")
    doc = "Lets a value be used again that belongs to an entity which is gone."
    return Script("forget_unique", ".kept_in.unique", doc, "forget_unique", layout)


def _laid_out(body: str) -> str:
    """The body with the indentation that its blocks ask for."""
    depth, lines = 0, list[str]()
    for raw in body.strip().splitlines():
        line = raw.strip()
        if not line:
            if lines and lines[-1]:
                lines.append("")
            continue
        closes = line.startswith(("end", "else", "elseif", "}", ")"))
        lines += _wrapped(line, INDENT * (depth - closes))
        depth += _opens(line)
    return "\n".join(lines)


def _wrapped(line: str, indent: str) -> Iterator[str]:
    """A line that is too long, broken after commas that stand in no text."""
    further = indent + INDENT * 2
    while len(indent) + len(line) > WIDTH:
        ends = [at for at in _commas(line) if len(indent) + at + 1 <= WIDTH]
        if not ends:
            break
        yield indent + line[: ends[-1] + 1]
        line, indent = line[ends[-1] + 2 :], further
    yield indent + line


def _commas(line: str) -> Iterator[int]:
    """Where a line has commas outside of texts, each with a blank behind it."""
    quoted_now = False
    for at, letter in enumerate(line):
        if letter == "'" and line[at - 1] != "\\":
            quoted_now = not quoted_now
        elif letter == "," and not quoted_now and line[at + 1 : at + 2] == " ":
            yield at


def _opens(line: str) -> int:
    """By how many blocks the following lines are deeper."""
    if line.startswith("--"):
        return 0
    if line.startswith(("else", "elseif")):
        return 0
    words = line.replace("(", " ( ").replace(")", " ) ").replace(",", " ").split()
    opened = words.count("then") + words.count("do") + words.count("function")
    return opened - words.count("end") - words.count("end)")
