"""Scripts of leases: the claim, which looks and takes, and the renewal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codegen.emit.redis.change import Change
from codegen.emit.redis.field_values import Reading
from codegen.emit.redis.lua_script import Script
from codegen.emit.redis.outbox import brought_up_to_date
from codegen.emit.redis.redis_entity import RedisEntity, owned
from codegen.emit.redis.script_arguments import Layout
from codegen.language.lifecycle import Transition


def claim(entity: RedisEntity, name: str, edge: Transition) -> Script:
    layout, was, lease = Layout(), Reading(entity), entity.lease
    assert lease is not None and lease.index is not None
    layout.each_key("hash", entity.kept.hash)
    for argument in ("actor", "owner", "most", "window", "strict"):
        layout.argument(argument)
    layout.each_argument("key")
    index, parts = entity.key_of_index(lease.index), entity.kept.indexes[lease.index].parts
    for each in (entity.status, index.enum, entity.signature_field if parts else None):
        if each:
            was(each)
    change = Change(entity, layout, was, name, edge, own_part=True, one_owner=True, whole=True)
    lines = [*change.lines()]
    # The script finds the part itself, so that it is no key of the entity.
    layout.each_keys = {"hash": entity.kept.hash}
    layout.each_arguments = {"key": "key"}
    words = [entity.word(index.enum, value) for value in lease.first] if index.enum else []
    data = {
        "was": was,
        "lines": [*lines[:-1], *brought_up_to_date(change)],
        "enum": index.enum,
        "words": words,
        "source": edge.from_,
        "elsewhere": _elsewhere(entity, was, index.enum),
        "part": f"part_{lease.index}" if parts else None,
        "index": layout.key_table(index.name, index.by_word)
        if index.enum
        else layout.key(index.name, index.pattern),
        **_holder(entity, layout),
    }
    if parts:
        layout.key("version", f"{parts.known}:version")
        layout.argument("believed_version")
        layout.argument("sets")
        part = entity.part_of_index(lease.index)
        for place in [part.by_word[word] for word in words] if part.enum else [part.pattern]:
            layout.part_key(f"part_{len(layout.part_keys) + 1}", place)
    return Script("claim", f".transitions.{name}", edge.trigger, "claim", layout, data)


def _elsewhere(entity: RedisEntity, was: Reading, enum: str | None) -> str:
    """When an entity is not in the queue that an index says it is in."""
    claim, index = entity.claim, entity.leased_index
    assert claim is not None and index is not None
    found = [f"{was(entity.status)} ~= {entity.state(claim[1].from_)}"]
    if enum:
        found.append(f"{was(enum)} ~= word")
    if index.only_if:
        found.append(f"not {was(index.only_if)}")
    if index.only_unless:
        found.append(was(index.only_unless))
    return " or ".join(found)


def _holder(entity: RedisEntity, layout: Layout) -> dict[str, Any]:
    """What the claim has to know of whoever takes a lease."""
    lease = entity.lease
    assert lease is not None
    found = {"paused": layout.key("paused", lease.paused) if lease.paused else None}
    found |= held_by(entity, layout.key)
    if lease.holder:
        layout.argument("believed_offers")
        if entity.idle:
            layout.key("idle", entity.idle)
            layout.key("rings", f"{entity.idle}:rings")
            layout.argument("waits")
    return found


def held_by(entity: RedisEntity, key: Callable[[str, str], str]) -> dict[str, Any]:
    """What a script has to know of a holder before it gives it more; `key` adds a key to its layout."""
    holder = entity.lease.holder if entity.lease else None
    if holder is None:
        return {"holder": None}
    other = RedisEntity(entity.spec, holder.entity, entity.spec.lifecycle.entities[holder.entity])
    key("holder", owned(other.kept.hash))
    return {
        "holder": holder,
        "holder_status": other.status,
        "holder_states": [other.state(state) for state in holder.in_],
        "booked": key(f"index_{holder.booked}", owned(entity.kept.indexes[holder.booked].key)),
    }


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
