"""Rules of storage.yaml about entities in a bucket: their keys, hints at them, and what is kept apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from codegen.language.lifecycle import Entity
from codegen.language.storage.layouts import KeptInS3
from codegen.language.types import MessageField
from codegen.rules.lifecycle.entity_changes import iter_due_changes
from codegen.rules.lifecycle.record_fields import iter_records, report_unknown_field
from codegen.rules.lookup import format_list, get_fields, is_other_type
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.rules.storage.redis_keys import placeholders
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

Record = Mapping[str, MessageField]
FIELD = "field"
"""Stands in the key of an object for the name of a field."""
RESERVED = {"ui": "the page", "trials": "what tries the store out"}
"""What keys begin with that are of no entity."""


class Pattern(NamedTuple):
    """The key of some objects: where, what for, how it is made, and what must be and what can be in it."""

    path: Path
    what: str
    key: str
    must: tuple[str, ...]
    can: tuple[str, ...]


def in_buckets(spec: Spec) -> Iterator[tuple[str, Entity, Record, KeptInS3]]:
    """Every entity that a bucket keeps and whose record is known."""
    for name, entity, record in iter_records(spec.in_engines["s3"]):
        if entity.in_s3:
            yield name, entity, record, entity.in_s3


def patterns(entity: Entity, record: Record, kept: KeptInS3) -> Iterator[Pattern]:
    """The keys of all objects of an entity."""
    part = (kept.shard.field,) if kept.shard else ()
    yield Pattern(("s3", "object"), "an object", kept.object, (entity.key,), part)
    times = tuple(field for field, row in record.items() if row.type == "timestamp")
    for name, index in kept.indexes.items():
        what = f"a hint in '{name}'"
        path: Path = ("s3", "indexes", name, "key")
        yield Pattern(path, what, index.key, (entity.key,), (*part, *times))
    if large := kept.large:
        what = "what is kept apart"
        yield Pattern(("s3", "large", "object"), what, large.object, (entity.key, FIELD), part)
    if kept.repairs and kept.repairs.mark:
        yield Pattern(("s3", "repairs", "mark"), "the mark of repairs", kept.repairs.mark, (), ())


@rule(
    "E260",
    "The key of an object has a field that cannot be in it, or lacks one that must be.",
    wrong='plant: {object: "plants/{colour}.json", …}  # several have the same colour',
    right='plant: {object: "plants/{plant_id}.json", …}',
    needs=("lifecycle", "types"),
    spreads=True,
)
def bad_object_key(spec: Spec) -> Iterator[Finding]:
    for name, entity, record, kept in in_buckets(spec):
        for pattern in patterns(entity, record, kept):
            here = (name, *pattern.path)
            place, named = spec.place_of_entity(*here), placeholders(pattern.key)
            fields = [*pattern.must, *pattern.can]
            strange = [field for field in named if field not in fields]
            lacking = [field for field in pattern.must if field not in named]
            times = [field for field in named if field in record and record[field].type == "timestamp"]
            subject = f"The key of {pattern.what} of a {name} has"
            if strange and strange[0] not in record and strange[0] != FIELD:
                yield from report_unknown_field(spec, here, entity, strange[0], record, subject)
            elif strange:
                message = f"{subject} '{strange[0]}', which cannot be in it."
                yield Finding(place, message, f"It can have {format_list(fields)}.")
            elif lacking:
                message = (
                    f"The key of {pattern.what} of a {name} lacks '{lacking[0]}', so all would share one."
                )
                yield Finding(place, message, f"Add '{{{lacking[0]}}}' to it.")
            elif len(named) > len(set(named)) or len(times) > 1:
                twice = format_list(times) if len(times) > 1 else f"'{max(named, key=named.count)}' twice"
                yield Finding(place, f"{subject} {twice}.", "Leave one of them out.")
            elif "indexes" in pattern.path and not pattern.key.endswith(f"/{{{entity.key}}}"):
                message = f"The key of {pattern.what} of a {name} does not end with '{entity.key}'."
                yield Finding(place, message, f"Write '/{{{entity.key}}}' at its end.")


@rule(
    "E261",
    "Objects of two kinds begin with the same text, so one would be taken for the other.",
    wrong='object: "plants/{plant_id}.json"\nindexes: {dry: {key: "plants/{watered_at}/{plant_id}", …}}',
    right='object: "plants/{plant_id}.json"\nindexes: {dry: {key: "dry/{watered_at}/{plant_id}", …}}',
    needs=("lifecycle", "storage", "types"),
)
def folder_twice(spec: Spec) -> Iterator[Finding]:
    seen: dict[tuple[str | None, ...], dict[str, str]] = {}
    for name, entity, record, kept in in_buckets(spec):
        bucket = (kept.endpoint, kept.bucket, kept.prefix)
        first = seen.setdefault(bucket, dict(RESERVED))
        for pattern in patterns(entity, record, kept):
            folder, what = pattern.key.partition("/")[0], f"{pattern.what} of a {name}"
            if (other := first.setdefault(folder, what)) != what:
                place = spec.place_of_entity(name, *pattern.path)
                message = f"The key of {what} begins with '{folder}/', and so does that of {other}."
                yield Finding(place, message, "Choose another beginning.")


@rule(
    "E262",
    "Something is looked for by an index that does not exist, or that does not have it in its order.",
    wrong="lease: {oldest_by: sown_at, …}\npolls: {index: watered, …}  # by watered_at",
    right="lease: {oldest_by: sown_at, …}\npolls: {index: sown, …}  # by sown_at",
    needs=("lifecycle", "storage", "types"),
)
def bad_search(spec: Spec) -> Iterator[Finding]:
    for name, entity, record, kept in in_buckets(spec):
        if polls := kept.polls:
            place = spec.place_of_entity(name, "s3", "polls", "index")
            subject = f"What is free of {name}s is looked for in"
            yield from report_unknown(spec, place, subject, polls.index, kept.indexes, "which is no index")
            yield from _unfit_for_polls(spec, name, entity, kept, record)
        elif entity.lease:
            place = spec.place_of_entity(name, "lease", key=True)
            message = f"A {name} is leased, and nothing says where those are that are free."
            yield Finding(place, message, "Say 'polls' of it in storage.yaml.")
        for path, edge, _, states, due in iter_due_changes(entity):
            if due.at and due.at in record and not _has_index(kept, due.at, states):
                place = spec.place_of_entity(name, *path, "at")
                names = format_list([*states])
                message = f"'{edge}' is due at '{due.at}', and no index has {name}s in {names} by it."
                yield Finding(place, message, f"Add an index with '{{{due.at}}}' in its key.")


def _unfit_for_polls(
    spec: Spec, name: str, entity: Entity, kept: KeptInS3, record: Record
) -> Iterator[Finding]:
    called = kept.polls.index if kept.polls else ""
    index = kept.indexes.get(called)
    place = spec.place_of_entity(name, "s3", "polls", "index")
    if (lease := entity.lease) is None:
        key = spec.place_of_entity(name, "s3", "polls", key=True)
        yield Finding(key, f"Nobody ever takes a {name}, so nobody looks for one.", "Remove 'polls'.")
        return
    free = [each for edge in entity.transitions.values() if edge.to == lease.state for each in edge.sources]
    lacking = [state for state in dict.fromkeys(free) if index and state not in index.in_]
    if index and lacking:
        message = f"What is free of {name}s is in {format_list(lacking)}, which '{called}' lacks."
        yield Finding(place, message, "Add it to 'in' of the index.")
    elif index and lease.oldest_by in record and lease.oldest_by not in placeholders(index.key):
        message = f"The oldest {name} by '{lease.oldest_by}' goes first, and the index is not in that order."
        yield Finding(place, message, f"Put '{{{lease.oldest_by}}}' into its key.")


def _has_index(kept: KeptInS3, field: str, states: tuple[str, ...]) -> bool:
    return any(
        field in placeholders(row.key) and set(states) <= set(row.in_) for row in kept.indexes.values()
    )


@rule(
    "E263",
    "What is kept apart is no JSON of the record, is over no limit, or has no field that says where it is.",
    wrong="large: {over: leaf, refs: {photo: colour}, …}  # colour is a text",
    right="large: {over: leaf, refs: {photo: photo_ref}, …}  # photo_ref is a message with key and version",
    needs=("lifecycle", "types", "system"),
)
def bad_large(spec: Spec) -> Iterator[Finding]:
    for name, entity, record, kept in in_buckets(spec):
        if (large := kept.large) is None:
            continue
        path = (name, "s3", "large")
        place, limits = spec.place_of_entity(*path, "over"), spec.system.policies.limits
        yield from report_unknown(
            spec, place, f"What is kept apart of a {name} is over the limit", large.over, limits
        )
        if large.over in limits and limits[large.over].unit != "bytes":
            message = f"The limit '{large.over}' counts {limits[large.over].unit}."
            yield Finding(place, message, "Name a limit in bytes.")
        for field, ref in large.refs.items():
            key = spec.place_of_entity(*path, "refs", field, key=True)
            if field not in record:
                lack = f"which {entity.record} does not have"
                yield from report_unknown(spec, key, f"A {name} keeps apart", field, record, lack)
            elif is_other_type(spec, record[field], "json"):
                message = f"A {name} keeps '{field}' apart, which is of type {record[field].type}."
                yield Finding(key, message, "Only JSON is kept apart.")
            yield from _bad_ref(spec, (*path, "refs", field), entity, record, ref)


def _bad_ref(spec: Spec, path: Path, entity: Entity, record: Record, ref: str) -> Iterator[Finding]:
    subject = f"Where '{path[-1]}' is, is said by"
    if ref not in record:
        yield from report_unknown_field(spec, path, entity, ref, record, subject)
        return
    place, inner = spec.place_of_entity(*path), get_fields(spec, record[ref].type) or {}
    texts = {field for field, row in inner.items() if row.type == "string"}
    if not {"key", "version"} <= texts or not record[ref].optional or not inner["version"].optional:
        message = f"{subject} '{ref}', which is of type {record[ref].type}."
        yield Finding(
            place, message, "Name an optional message with the texts 'key' and, optional, 'version'."
        )
