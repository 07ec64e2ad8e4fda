"""Rules of storage.yaml about the keys in Redis: what is in their names, and that no two are the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, product
from typing import NamedTuple

from codegen.language.lifecycle import Entity
from codegen.language.types import MessageField
from codegen.rules.lifecycle.record_fields import iter_records, report_unknown_field
from codegen.rules.lookup import format_list
from codegen.rules.rule import Finding, rule
from codegen.rules.storage.key_names import ANY_TEXT, UUID, Name, literal, may_be_equal
from codegen.source.spec import Spec, field_enum
from codegen.source.yaml_reader import Path

SIGNATURE = "signature"
"""Stands in the key of a part for a set of texts."""


class Key(NamedTuple):
    """A key that an entity has in Redis: where, what for, its name, and what must be in it."""

    path: Path
    what: str
    pattern: str
    fields: tuple[str, ...] = ()
    is_shared: bool = False


def keys_of(entity: Entity) -> Iterator[Key]:
    """All keys of an entity."""
    if (kept := entity.in_redis) is None or not kept.hash:
        return
    yield Key(("redis", "hash"), "the hash", kept.hash, (entity.key,))
    for field, key in kept.unique_keys.items():
        yield Key(("redis", "unique", field), f"the memory of '{field}'", key, (field,))
    for name, index in kept.indexes.items():
        path = ("redis", "indexes", name)
        by = entity.indexes[name].by
        fields = (by,) if by else ()
        yield Key((*path, "key"), f"the index '{name}'", index.key, fields)
        if index.parts:
            fields = (*fields, SIGNATURE)
            yield Key((*path, "parts"), f"the parts of '{name}'", index.parts.key, fields)
            known = index.parts.known
            yield Key((*path, "known"), f"the known parts of '{name}'", known)
            yield Key((*path, "known"), f"the version of the parts of '{name}'", f"{known}:version")
    if kept.wake_up:
        yield Key(("redis", "wake_up"), "the channel", kept.wake_up)
    if kept.metrics:
        yield Key(("redis", "metrics"), "the metrics", kept.metrics, is_shared=True)
    if kept.outbox:
        yield Key(("redis", "outbox", "stream"), "the stream", kept.outbox.stream)
    if kept.paused:
        yield Key(("redis", "paused"), "what is paused", kept.paused)


def placeholders(pattern: str) -> list[str]:
    """The names in braces."""
    return re.findall(r"\{([a-z][a-z0-9_]*)\}", pattern)


@rule(
    "E241",
    "The name of a key in Redis has a field that cannot be in it, or lacks one that must be.",
    wrong='indexes: {waiting: {key: "yard:{colour}"}}  # and the index is by size',
    right='indexes: {waiting: {key: "yard:{size}"}}',
    needs=("lifecycle",),
    spreads=True,
)
def bad_key(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec.in_engines["redis"]):
        for key in keys_of(entity):
            place, here = spec.place_of_entity(name, *key.path), (name, *key.path)
            named = placeholders(key.pattern)
            fields = list(key.fields)
            subject = f"The key of {key.what} has"
            strange = [field for field in named if field not in fields]
            lacking = [field for field in key.fields if field not in named]
            if strange and strange[0] not in (*record, SIGNATURE):
                yield from report_unknown_field(spec, here, entity, strange[0], record, subject)
            elif strange:
                hint = f"Only {format_list(fields)} can be in it." if fields else "It has no {…}."
                yield Finding(place, f"{subject} '{strange[0]}', which cannot be in it.", hint)
            elif lacking:
                message = f"The key of {key.what} lacks '{lacking[0]}', so all would share one key."
                yield Finding(place, message, f"Add '{{{lacking[0]}}}' to it.")
            elif len(named) > len(set(named)):
                message = f"{subject} '{max(named, key=named.count)}' twice."
                yield Finding(place, message, "Leave the others out.")


@rule(
    "E242",
    "Two things have the same key in Redis, or could have for some value of a field.",
    wrong='hash: "bikes:{plate}"\nindexes: {late: {key: "bikes:late", …}}',
    right='hash: "bikes:{plate}"\nindexes: {late: {key: "late_bikes", …}}',
    needs=("lifecycle", "storage", "types"),
)
def key_twice(spec: Spec) -> Iterator[Finding]:
    seen: dict[tuple[str, str | None], list[tuple[str, Key, Name]]] = {}
    for name, entity, record in iter_records(spec.in_engines["redis"]):
        if (kept := entity.in_redis) is None or not kept.hash:
            continue
        # Creation moments of one kind of entity never repeat; the engine has the last one there.
        clock = Key((), "the engine's clock", f"clock:{name}")
        # Of all processes one at a time forgets what has expired.
        lock = Key((), "the engine's lock", f"trim:{name}")
        others = seen.setdefault((kept.url, kept.prefix), [])
        for key in (clock, lock, *keys_of(entity)):
            for made in _names(spec, entity, record, key.pattern):
                clash = next((each for each in others if _clash(key, made, each)), None)
                if clash and key.path:
                    place = spec.place_of_entity(name, *key.path)
                    other = f"{clash[1].what} of a {clash[0]}"
                    message = f"'{key.pattern}' is {key.what} of a {name}, and could be {other}."
                    yield Finding(place, message, "Choose another name.")
                    break
                others.append((name, key, made))


def _clash(key: Key, made: Name, other: tuple[str, Key, Name]) -> bool:
    _, known, taken = other
    if known == key or (known.is_shared and key.is_shared and known.pattern == key.pattern):
        return False
    return may_be_equal(made, taken)


def _names(spec: Spec, entity: Entity, record: Mapping[str, MessageField], pattern: str) -> Iterator[Name]:
    """Every name that a key can have; an enum has one for each value, other fields any text.

    A store finds nothing under what is no key of the entity, so a key that is a UUID is never another text.
    """
    choices: list[list[Name]] = []
    for place, part in enumerate(re.split(r"\{([a-z][a-z0-9_]*)\}", pattern)):
        field = record.get(part) if place % 2 else None
        if place % 2 == 0:
            choices.append([literal(part)])
        elif field is not None and (enum := field_enum(spec, field)):
            choices.append([literal(enum.word(value)) for value in enum.values])
        elif field is not None and part == entity.key and (field.rules.uuid or field.rules.uuid4):
            choices.append([UUID])
        else:
            choices.append([ANY_TEXT])
    return (tuple(chain.from_iterable(names)) for names in product(*choices))
