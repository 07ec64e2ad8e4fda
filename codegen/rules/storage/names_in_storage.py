"""Rules of storage.yaml about what it names: entities, indexes and unique fields of lifecycle.yaml."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.storage.layouts import ENGINES
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec


@rule(
    "E269",
    "There are names for an entity that lifecycle.yaml does not have.",
    wrong="postgres: {entities: {ordr: {table: orders}}}",
    right="postgres: {entities: {order: {table: orders}}}",
    needs=("lifecycle",),
    spreads=True,
)
def check_entities_exist(spec: Spec) -> Iterator[Finding]:
    known = spec.lifecycle.entities
    for engine in ENGINES:
        section = getattr(spec.storage, engine)
        for name in section.entities if section else ():
            place = spec.place("storage", engine, "entities", name, key=True)
            subject = f"There are names in {engine} for"
            yield from report_unknown(spec, place, subject, name, known, "which is no entity")


@rule(
    "E270",
    "There is a key for an index or a unique field that the entity does not have.",
    wrong='bike: {indexes: {wating: {key: "yard:waiting"}}}',
    right='bike: {indexes: {waiting: {key: "yard:waiting"}}}',
    needs=("lifecycle",),
    spreads=True,
)
def check_keys_exist(spec: Spec) -> Iterator[Finding]:
    section = spec.storage.redis
    for name, keys in section.entities.items() if section else ():
        if (entity := spec.lifecycle.entities.get(name)) is None:
            continue
        for word, named, known, lack in (
            ("indexes", keys.indexes, [*entity.indexes], "which is no index of it"),
            ("unique", keys.unique, [*entity.unique, *entity.unique_for], "which it may share"),
        ):
            for each in named:
                place = spec.place_of_entity(name, "redis", word, each, key=True)
                subject = f"There is a key for a {name} by" if word == "unique" else f"A {name} has a key for"
                yield from report_unknown(spec, place, subject, each, known, lack)
        for title, row in keys.indexes.items():
            index = entity.indexes.get(title)
            for word in ("parts", "known") if index and not index.needs else ():
                if getattr(row, word):
                    place = spec.place_of_entity(name, "redis", "indexes", title, word, key=True)
                    message = f"The index '{title}' has no partitions, so there is no '{word}' of it."
                    yield Finding(place, message, "Say 'needs' of the index in lifecycle.yaml, or remove it.")


@rule(
    "E271",
    "A layout in a bucket goes by a field that lifecycle.yaml does not give that meaning.",
    wrong="plant: {keyed_by: label, …}  # and lifecycle.yaml has no 'unique: [label]'",
    right="plant: {unique: [label], …}  # in lifecycle.yaml",
    needs=("lifecycle",),
)
def check_bucket_words(spec: Spec) -> Iterator[Finding]:
    section = spec.storage.s3
    for name, layout in section.entities.items() if section else ():
        if (entity := spec.lifecycle.entities.get(name)) is None:
            continue
        if layout.keyed_by and layout.keyed_by not in entity.unique:
            place = spec.place_of_entity(name, "s3", "keyed_by")
            message = f"Keys of a {name} are made of '{layout.keyed_by}', which two of them may share."
            yield Finding(place, message, f"Say 'unique: [{layout.keyed_by}]' of {name} in lifecycle.yaml.")
        if not (layout.revision or entity.revision):
            place = spec.place_of_entity(name, "s3", key=True)
            message = f"Nothing counts the writes of a {name}, so two versions could have one ETag."
            yield Finding(place, message, "Name a number of the record by 'revision'.")
