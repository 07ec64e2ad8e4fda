"""Rules of lifecycle.yaml about what edges go by: numbers of the record, enums, names and given texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.rules.lifecycle.entity_changes import is_variable, iter_changes, iter_dues
from codegen.rules.lifecycle.record_fields import iter_records, report_unknown_field
from codegen.rules.lookup import RANGES, format_list, format_states, get_fields
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.rules.storage.s3_buckets import Record, in_buckets
from codegen.rules.storage.updates import check_where
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

_NUMBERS = (*RANGES, "double", "float")
_MODES = ("index-only", "hybrid", "log-scan")


@rule(
    "E264",
    "A wait goes by something that is no number of the record.",
    wrong="backoff: {base: {field: policy.name}, …}",
    right="backoff: {base: {field: policy.first_ms}, …}",
    needs=("types",),
)
def bad_wait(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for edge, row in entity.transitions.items():
            for word in ("base", "max", "times", "jitter") if row.backoff else ():
                path = getattr(row.backoff, word)
                if isinstance(path, str) and not is_variable(path):
                    here = (name, "transitions", edge, "backoff", word)
                    subject = f"The wait of '{edge}' goes by"
                    yield from _no_number(spec, here, entity.record, record, path, subject)


def _no_number(
    spec: Spec, here: Path, message: str, record: Record, path: str, subject: str
) -> Iterator[Finding]:
    place, (first, _, rest) = spec.place("lifecycle", "entities", *here), path.partition(".")
    if first not in record:
        yield from report_unknown(spec, place, subject, path, record, f"which {message} does not have")
        return
    row = record[first]
    if rest:
        inner = get_fields(spec, row.type)
        if inner is None or rest not in inner:
            known = [f"{first}.{each}" for each in inner or ()]
            lack = f"which {message} does not have"
            yield from report_unknown(spec, place, subject, path, known, lack)
            return
        row = inner[rest]
    if row.type not in _NUMBERS:
        yield Finding(place, f"{subject} '{path}', which is of type {row.type}.", "Name a number.")
    elif row.optional or (rest and record[first].optional):
        message, missing = f"{subject} '{path}', which may be absent.", f"{first}, absent"
        yield Finding(place, message, "Name one that is always there.", missing)


@rule(
    "E265",
    "An edge goes by what is no enum of the record, or is taken by its name where no other leads.",
    wrong="pull: {from: SOWN, to: BARE, by_name: true}  # and nothing else leads there",
    right="pull: {from: SOWN, to: BARE}",
    needs=("lifecycle", "types"),
)
def bad_choice(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for edge, row in entity.transitions.items():
            for field, value in row.where.items():
                yield from check_where(
                    spec, (name, "transitions", edge, "where", field), entity, record, value
                )
    for name, entity in spec.lifecycle.entities.items():
        rows = [row for row in entity.transitions.values() if not row.by_name]
        plain = {(source, row.to) for row in rows for source in row.sources}
        for edge, row in entity.transitions.items():
            ends = {(source, row.to) for source in row.sources}
            if row.by_name and not ends & plain:
                place = spec.place("lifecycle", "entities", name, "transitions", edge, "by_name", key=True)
                states = format_states(row.sources)
                message = f"'{edge}' is taken by its name, and no other leads from {states} to {row.to}."
                yield Finding(place, message, "Remove 'by_name'.")


@rule(
    "E266",
    "A text that the clock gives tells of a field that the record does not have.",
    wrong='due: {values: {error: "nobody came ({gardner})"}, …}',
    right='due: {values: {error: "nobody came ({gardener})"}, …}',
)
def check_due_texts(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for path, edge, row in iter_changes(entity):
            texts = [
                ((*where, "values", given), text)
                for where, due in iter_dues(row)
                for given, text in due.values.items()
            ]
            for where, text in texts:
                here = (name, *path, *where)
                for field in re.findall(r"\{([^{}]*)\}", text):
                    if field not in record:
                        subject = f"What '{edge}' is given tells of"
                        yield from report_unknown_field(spec, here, entity, field, record, subject)


@rule(
    "E267",
    "A choice about a bucket is in no variable that has it, or that a holder does not read.",
    wrong="polls: {mode: NURSERY_NAME, …}",
    right="polls: {mode: LOOK_MODE, …}  # a choice of index-only, hybrid and log-scan",
    needs=("environment", "services", "lifecycle"),
)
def bad_switch(spec: Spec) -> Iterator[Finding]:
    variables = spec.environment.variables
    for name, entity, _, kept in in_buckets(spec):
        wanted: list[tuple[Path, str, str | None, str]] = [
            (("s3", "unversioned"), "Whether versions are needed", kept.unversioned, "bool")
        ]
        if kept.polls:
            wanted.append((("s3", "polls", "mode"), "Where they are looked for", kept.polls.mode, "choice"))
        for path, what, variable, kind in wanted:
            if variable is None:
                continue
            place, row = spec.place_of_entity(name, *path), variables.get(variable)
            subject, fitting = f"{what} is in", [each for each, row in variables.items() if row.type == kind]
            if row is None:
                yield from report_unknown(spec, place, subject, variable, fitting)
            elif row.type != kind:
                message = f"{subject} {variable}, which is of type {row.type}."
                yield Finding(place, message, f"Name a variable of type {kind}.")
            elif kind == "choice" and set(row.choices) != set(_MODES):
                message = f"{subject} {variable}, which has other choices."
                yield Finding(place, message, f"Its choices are {format_list([*_MODES])}.")
            elif row.default is None and not row.required:
                message = f"{subject} {variable}, which may be left unset."
                yield Finding(place, message, f"Give a default to {variable} in environment.yaml.")
            else:
                readers = {entity.held_by, *entity.shared_with} & set(spec.services.components)
                deaf = sorted(
                    each for each in readers if row.read_by != "everyone" and each not in row.read_by
                )
                if deaf and kind == "bool":
                    message = f"{subject} {variable}, which {format_list(deaf)} does not read."
                    yield Finding(place, message, f"Add it to 'read_by' of {variable} in environment.yaml.")
