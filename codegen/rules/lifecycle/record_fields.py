"""Rules of lifecycle.yaml about the fields of an entity's record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from codegen.language.lifecycle import Entity, Transition
from codegen.language.types import MessageField
from codegen.rules.lifecycle.entity_changes import iter_changes
from codegen.rules.lookup import RANGES, TIMES, find_misfit, get_fields, get_request_fields, is_other_type
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

A_TIME = "A time is an int64 or a timestamp."
_TEXTS = ("string", "json")
_AS_TEXT = ("bool", *RANGES)
"""Types that Redis stores as text, too."""


@rule(
    "E201",
    "The record of an entity is no message.",
    wrong="job: {record: JobRecord}",
    right="job: {record: JobSummary}",
    spreads=True,
)
def check_records_exist(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        place = spec.place("lifecycle", "entities", name, "record")
        yield from report_unknown(spec, place, f"The record of a {name} is", entity.record, spec.messages)


@rule(
    "E202",
    "The key or the status of an entity is no field of its record, or of the wrong type.",
    wrong="job: {key: id, status: state}",
    right="job: {key: job_id, status: status}",
    spreads=True,
)
def check_key_and_status(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for word, field in (("key", entity.key), ("status", entity.status)):
            place = spec.place("lifecycle", "entities", name, word)
            if field not in record:
                yield from report_unknown_field(
                    spec, (name, word), entity, field, record, f"The {word} of a {name} is"
                )
            elif word == "key" and is_other_type(spec, record[field], "string"):
                message = f"The key of a {name} is '{field}', which is of type {record[field].type}."
                yield Finding(place, message, "Name a string.")
            elif word == "status" and is_other_type(spec, record[field], *spec.enums):
                message = f"The status of a {name} is '{field}', which is of type {record[field].type}."
                yield Finding(place, message, "Name an enum.")


@rule(
    "E216",
    "A stamp is no time of the record.",
    wrong="dispatch: {stamps: [started_at]}",
    right="dispatch: {stamps: [started_at_ms]}",
)
def check_stamps(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        stamps: list[tuple[Path, tuple[str, ...]]] = [(("create",), entity.create.stamps)]
        stamps += [(path, row.stamps) for path, _, row in iter_changes(entity)]
        for path, fields in stamps:
            for index, field in enumerate(fields):
                here = (name, *path, "stamps", index)
                if field not in record:
                    yield from report_unknown_field(spec, here, entity, field, record, f"'{path[-1]}' stamps")
                elif is_other_type(spec, record[field], *TIMES):
                    message = f"'{path[-1]}' stamps '{field}', which is of type {record[field].type}."
                    yield Finding(spec.place("lifecycle", "entities", *here), message, A_TIME)


@rule(
    "E217",
    "A transition sets something that the record does not have, or to a value that it cannot have.",
    wrong="withdraw: {sets: {cancel_requested: 1}}",
    right="withdraw: {sets: {cancel_requested: true}}",
)
def check_sets(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for path, edge, row in iter_changes(entity):
            for field, value in row.sets.items():
                here = (name, *path, "sets", field)
                if field not in record:
                    yield from report_unknown_field(spec, here, entity, field, record, f"'{edge}' sets")
                elif field in (entity.key, entity.status):
                    message = f"'{edge}' sets '{field}', which is the key or the status of a {name}."
                    place = spec.place("lifecycle", "entities", *here, key=True)
                    yield Finding(place, message, "The state changes by from and to; the key never does.")
                elif wrong := find_misfit(spec, record[field].type, value):
                    message = f"'{edge}' sets '{field}', but that {wrong.problem}."
                    yield Finding(spec.place("lifecycle", "entities", *here), message, wrong.hint)


@rule(
    "E218",
    "A transition depends on something that is no flag of the record.",
    wrong="abandon: {when: [cancel_reason]}",
    right="abandon: {when: [cancel_requested]}",
)
def check_flags(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for edge, row in entity.transitions.items():
            for index, field in enumerate(row.when):
                here = (name, "transitions", edge, "when", index)
                if field not in record:
                    yield from report_unknown_field(spec, here, entity, field, record, f"'{edge}' depends on")
                elif is_other_type(spec, record[field], "bool"):
                    message = f"'{edge}' depends on '{field}', which is of type {record[field].type}."
                    yield Finding(spec.place("lifecycle", "entities", *here), message, "A flag is a bool.")


@rule(
    "E221",
    "Listings are ordered by something that is no time of the record.",
    wrong="job: {listed_by: created}",
    right="job: {listed_by: created_at_ms}",
)
def check_listing_order(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        if (field := entity.listed_by) is None:
            continue
        if field not in record:
            yield from report_unknown_field(
                spec, (name, "listed_by"), entity, field, record, f"A {name} is listed by"
            )
        elif is_other_type(spec, record[field], *TIMES):
            message = f"A {name} is listed by '{field}', which is of type {record[field].type}."
            place = spec.place("lifecycle", "entities", name, "listed_by")
            yield Finding(place, message, A_TIME)


@rule(
    "E223",
    "A transition keeps something that the request does not say, or that is no text.",
    wrong="fail: {from_request: {failure_reason: {from: why}}}",
    right="fail: {from_request: {failure_reason: {from: reason}}}",
)
def check_takes(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        kinds = (*_TEXTS, *_AS_TEXT)
        for where, edge, row in iter_changes(entity):
            ref = (row.via if isinstance(row, Transition) else None) or entity.driven_by or ""
            request = get_request_fields(spec, ref)
            for target, take in row.from_request.items():
                path = ("entities", name, *where, "from_request", target)
                place = spec.place("lifecycle", *path, "from")
                if request is not None and take.from_ not in request:
                    lack = f"which {spec.methods[ref].request} does not have"
                    yield from report_unknown(spec, place, f"'{edge}' takes", take.from_, request, lack)
                elif request is not None and is_other_type(spec, request[take.from_], *_TEXTS):
                    message = f"'{edge}' takes '{take.from_}', which is of type {request[take.from_].type}."
                    yield Finding(place, message, "Take a string.")
                elif target not in record:
                    lack = f"which {entity.record} does not have"
                    key = spec.place("lifecycle", *path, key=True)
                    yield from report_unknown(
                        spec, key, f"'{edge}' keeps what it takes in", target, record, lack
                    )
                elif target in record and not entity.in_s3 and is_other_type(spec, record[target], *kinds):
                    message = f"'{edge}' keeps a text in '{target}', which is of type {record[target].type}."
                    yield Finding(spec.place("lifecycle", *path, key=True), message, "Keep it in a string.")
                if re.fullmatch("[A-Z][A-Z0-9_]+", take.default):
                    place = spec.place("lifecycle", *path, "default")
                    subject = f"'{edge}' takes by default the reason"
                    yield from report_unknown(spec, place, subject, take.default, spec.errors.reasons)


def iter_records(spec: Spec) -> Iterator[tuple[str, Entity, Mapping[str, MessageField]]]:
    """Iterate over all entities whose record is defined."""
    for name, entity in spec.lifecycle.entities.items():
        if (record := get_fields(spec, entity.record)) is not None:
            yield name, entity, record


def report_unknown_field(
    spec: Spec, path: Path, entity: Entity, field: str, record: Mapping[str, MessageField], subject: str
) -> Iterator[Finding]:
    """Report a field that the record does not have; the path begins with the name of the entity."""
    place, lack = spec.place_of_entity(*path), f"which {entity.record} does not have"
    yield from report_unknown(spec, place, subject, field, record, lack)
