"""Scripts of leases: a look at what is free, the claim that takes it, and the renewal."""

from __future__ import annotations

from typing import Any

from codegen.emit.lua_change import Change
from codegen.emit.lua_entity import RedisEntity, owned
from codegen.emit.lua_layout import Layout, quoted
from codegen.emit.lua_script import Script
from codegen.emit.lua_values import Reading
from codegen.language.lifecycle import Transition


def claim(entity: RedisEntity, name: str, edge: Transition) -> Script:
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


def peek(entity: RedisEntity) -> Script:
    layout, lease = Layout(), entity.lease
    assert lease is not None and lease.index is not None
    layout.argument("most")
    layout.argument("spare")
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


def renew(entity: RedisEntity) -> Script:
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
