"""Scripts beside the lifecycle: fields that nothing goes by, looks by the clock, and what is forgotten."""

from __future__ import annotations

from codegen.emit.redis.lua_script import Script
from codegen.emit.redis.redis_entity import RedisEntity
from codegen.emit.redis.script_arguments import Layout


def update(entity: RedisEntity) -> Script:
    layout = Layout(open_ended=True)
    layout.each_key("hash", entity.kept.hash)
    layout.each_argument("key")
    doc = "Puts other fields that no transition touches and no index goes by."
    return Script("update", ".kept_in", doc, "update", layout)


def due() -> Script:
    layout = Layout()
    layout.key("index", "{index}")
    for name in ("after", "offset", "most"):
        layout.argument(name)
    doc = "Which of an index have been there for so long, by the clock of Redis; nothing is changed."
    return Script("due", ".kept_in.indexes", doc, "due", layout)


def trim(entity: RedisEntity) -> Script:
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


def forget(entity: RedisEntity) -> Script:
    layout = Layout()
    layout.key("index", "{index}")
    layout.each_key("hash", entity.kept.hash)
    layout.each_argument("key")
    doc = "Takes keys out of an index whose entities are gone."
    return Script("forget", ".kept_in.indexes", doc, "forget", layout)


def forget_unique(entity: RedisEntity) -> Script:
    layout = Layout()
    layout.key("unique", "{unique}")
    layout.each_key("hash", entity.kept.hash)
    layout.each_argument("key")
    doc = "Lets a value be used again that belongs to an entity which is gone."
    return Script("forget_unique", ".kept_in.unique", doc, "forget_unique", layout)
