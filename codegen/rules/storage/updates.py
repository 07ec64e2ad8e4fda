"""Rules of lifecycle.yaml about writes beyond the state: copies, fills, growth, and updates (`updates`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.language.base import get_value
from codegen.language.lifecycle import Entity, Transition, Update
from codegen.language.types import MessageField
from codegen.rules.lifecycle.entity_changes import iter_changes, iter_dues
from codegen.rules.lifecycle.record_fields import iter_records, report_unknown_field
from codegen.rules.lookup import RANGES, find_misfit, format_list, is_other_type
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec, field_enum
from codegen.source.yaml_reader import Path

Record = Mapping[str, MessageField]


@rule(
    "E251",
    "A field is copied that does not exist, or to a field that cannot have its value.",
    wrong="drop: {copy: {urgency: plate}}",
    right="drop: {copy: {urgency: size}}",
)
def check_copies(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        copies: list[tuple[Path, str, Mapping[str, str]]] = [(("create",), "create", entity.create.copy_)]
        copies += [(("transitions", edge), edge, row.copy_) for edge, row in entity.transitions.items()]
        for path, what, fields in copies:
            for target, source in fields.items():
                here = (name, *path, "copy", target)
                yield from _check_copy(spec, here, entity, record, what, target, source)


def _check_copy(
    spec: Spec, here: Path, entity: Entity, record: Record, what: str, target: str, source: str
) -> Iterator[Finding]:
    for field in (target, source):
        if field not in record:
            yield from report_unknown_field(spec, here, entity, field, record, f"'{what}' copies")
            return
    into, out = record[target], record[source]
    if target in (entity.key, entity.status):
        place = spec.place("lifecycle", "entities", *here, key=True)
        message = f"'{what}' copies to '{target}', which is the key or the status."
        yield Finding(place, message, "The state changes by from and to; the key never does.")
    elif into.type != out.type:
        message = f"'{what}' copies a {out.type}, '{source}', to a {into.type}, '{target}'."
        yield Finding(spec.place("lifecycle", "entities", *here), message, "Copy between fields of one type.")
    elif out.optional and not into.optional:
        message = f"'{what}' copies '{source}', which may be absent, to '{target}', which may not."
        hint = f"Say 'optional: true' of '{target}' in types.yaml."
        yield Finding(spec.place("lifecycle", "entities", *here), message, hint)


@rule(
    "E252",
    "What stands in for a field that was not given does not cover it, or the field is always given.",
    wrong="defaults: {trip_seconds: {by: size, of: {SMALL: SMALL_SECONDS}}}  # and there are large ones",
    right="defaults: {trip_seconds: {by: size, of: {SMALL: SMALL_SECONDS, LARGE: LARGE_SECONDS}}}",
)
def check_fills(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for field, fill in entity.create.defaults.items():
            here = (name, "create", "defaults", field)
            place = spec.place("lifecycle", "entities", *here, key=True)
            if field not in record:
                lack = f"which {entity.record} does not have"
                yield from report_unknown(spec, place, "Something stands in for", field, record, lack)
                continue
            if not record[field].optional or is_other_type(spec, record[field], *RANGES):
                message = f"Something stands in for '{field}', which is no number that may be absent."
                yield Finding(place, message, "Name an optional whole number.")
            if fill.by not in record:
                subject = f"What stands in for '{field}' depends on"
                yield from report_unknown_field(spec, (*here, "by"), entity, fill.by, record, subject)
                continue
            enum = field_enum(spec, record[fill.by])
            if enum is None:
                message = f"What stands in for '{field}' depends on '{fill.by}', which is no enum."
                yield Finding(spec.place("lifecycle", "entities", *here, "by"), message, "Name an enum.")
                continue
            values = [value for value, row in enum.values.items() if row.number]
            for value in fill.of:
                there = spec.place("lifecycle", "entities", *here, "of", value, key=True)
                lack = f"which is no value of '{fill.by}'"
                yield from report_unknown(spec, there, f"'{field}' is filled in for", value, values, lack)
            left_out = [value for value in values if value not in fill.of]
            if left_out and set(fill.of) <= set(values):
                message = f"Nothing stands in for '{field}' of {format_list(left_out)}."
                yield Finding(place, message, f"Name a variable for each value of '{fill.by}'.")


@rule(
    "E253",
    "Entities are refused by an index that does not exist, or that new ones do not enter.",
    wrong="ceiling: {index: lost, max: YARD_ROOM}",
    right="ceiling: {index: waiting, max: YARD_ROOM}",
    needs=("lifecycle",),
)
def check_ceilings(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        if (ceiling := entity.create.ceiling) is None:
            continue
        place = spec.place("lifecycle", "entities", name, "create", "ceiling", "index")
        indexes = entity.indexes
        subject = f"A {name} is refused when there are too many in"
        yield from report_unknown(spec, place, subject, ceiling.index, indexes, "which is no index")
        if ceiling.index in indexes and entity.initial not in indexes[ceiling.index].in_:
            message = f"{subject} '{ceiling.index}', which none in {entity.initial} is in."
            yield Finding(place, message, "Name an index that new ones enter.")


@rule(
    "E254",
    "Something is cleared that is always there, or that the engine clears itself.",
    wrong="find: {clear: [drops]}",
    right="find: {sets: {drops: 0}}",
)
def check_clears(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        own = (entity.lease.expires,) if entity.lease else ()
        for path, what, row in iter_changes(entity):
            for index, field in enumerate(row.clear):
                here = (name, *path, "clear", index)
                place = spec.place("lifecycle", "entities", *here)
                if field not in record:
                    yield from report_unknown_field(spec, here, entity, field, record, f"'{what}' clears")
                elif not record[field].optional:
                    message = f"'{what}' clears '{field}', which is always there."
                    yield Finding(place, message, f"Say by 'sets' what '{field}' becomes.")
                elif field in own:
                    message = f"'{what}' clears '{field}', which the engine does at the end of a lease."
                    yield Finding(place, message, "Remove it here.")


@rule(
    "E258",
    "One change writes a field in two ways.",
    wrong="find: {sets: {drops: 0}, copy: {drops: trips}}",
    right="find: {sets: {drops: 0}}",
)
def check_fields_written_once(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for path, what, row in iter_changes(entity):
            first: dict[str, str] = {}
            for word, field, where in _iter_writes(row):
                if (other := first.setdefault(field, word)) != word:
                    place = spec.place("lifecycle", "entities", name, *path, *where)
                    message = f"'{what}' writes '{field}' by '{word}' and by '{other}'."
                    yield Finding(place, message, "Do one of the two.")


def _iter_writes(row: Transition | Update) -> Iterator[tuple[str, str, Path]]:
    """Iterate over keyword, field and path of all that a change writes."""
    words = ("stamps", "sets", "from_request", "copy", "multiply", "clear")
    for word in words:
        for index, field in enumerate(get_value(row, word, ())):
            yield (
                word,
                field,
                (word, field if word in ("sets", "from_request", "copy", "multiply") else index),
            )
    if isinstance(row, Transition) and row.increment:
        yield "increment", row.increment, ("increment",)


@rule(
    "E255",
    "Something grows that is no whole number.",
    wrong="drop: {multiply: {plate: {times: 1.5, max: MOST_SECONDS}}}",
    right="drop: {multiply: {trip_seconds: {times: 1.5, max: MOST_SECONDS}}}",
)
def check_growth(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for edge, row in entity.transitions.items():
            for field in row.multiply:
                here = (name, "transitions", edge, "multiply", field)
                if field not in record:
                    yield from report_unknown_field(spec, here, entity, field, record, f"'{edge}' lets grow")
                elif is_other_type(spec, record[field], *RANGES):
                    place = spec.place("lifecycle", "entities", *here, key=True)
                    message = f"'{edge}' lets '{field}' grow, which is of type {record[field].type}."
                    yield Finding(place, message, "Name a whole number.")


@rule(
    "E256",
    "An update goes by what is no enum of the record, writes nothing, or has the name of something else.",
    wrong="hurry: {in: [PARKED], where: {plate: SMALL}, sets: {urgency: LARGE}}",
    right="hurry: {in: [PARKED], where: {size: SMALL}, sets: {urgency: LARGE}}",
    needs=("lifecycle", "types"),
)
def check_updates(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for title, update in entity.updates.items():
            path = ("entities", name, "updates", title)
            place = spec.place("lifecycle", *path, key=True)
            if title in (*entity.transitions, "create", "delete"):
                message = f"'{title}' is an update of a {name}, and something else is called so, too."
                yield Finding(place, message, "Choose another name.")
            if not (update.stamps or update.sets or update.from_request or update.clear):
                yield Finding(place, f"'{title}' changes nothing.", "Say what it writes, or remove it.")
            for field, value in update.where.items():
                yield from check_where(spec, (name, "updates", title, "where", field), entity, record, value)
            if update.fenced and (entity.lease is None or update.in_ != (entity.lease.state,)):
                message = f"'{title}' is for the holder of the lease, and a {name} is never leased."
                if entity.lease:
                    state = entity.lease.state
                    message = f"'{title}' is for the holder of the lease, which there is in {state} only."
                there = spec.place("lifecycle", *path, "fenced", key=True)
                yield Finding(there, message, "Remove 'fenced', or say 'in' so.")
            ended = [state for state in update.in_ if state in entity.terminal]
            if ended:
                there = spec.place("lifecycle", *path, "in", update.in_.index(ended[0]))
                message = f"'{title}' changes a {name} in {ended[0]}, which is terminal."
                yield Finding(there, message, "What has ended stays as it is.")


def check_where(spec: Spec, here: Path, entity: Entity, record: Record, value: str) -> Iterator[Finding]:
    """Check that the condition of a change is an enum of the record that has the value."""
    title, field = str(here[2]), str(here[-1])
    if field not in record:
        yield from report_unknown_field(spec, here, entity, field, record, f"'{title}' depends on")
        return
    if field_enum(spec, record[field]) is None:
        place = spec.place("lifecycle", "entities", *here, key=True)
        message = f"'{title}' depends on '{field}', which is of type {record[field].type}."
        yield Finding(place, message, "Name an enum.")
    elif wrong := find_misfit(spec, record[field].type, value):
        message = f"'{title}' depends on '{field}', but that {wrong.problem}."
        yield Finding(spec.place("lifecycle", "entities", *here), message, wrong.hint)


@rule(
    "E257",
    "The clock gives an edge something that the edge does not take.",
    wrong="from_request: {complaint: {from: complaint}}\ndue: {at: until, values: {comment: late}, …}",
    right="from_request: {complaint: {from: complaint}}\ndue: {at: until, values: {complaint: late}, …}",
)
def check_due_arguments(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for path, what, row in iter_changes(entity):
            accepted = [take.from_ for take in row.from_request.values()]
            if isinstance(row, Transition):
                accepted += [row.reason] if row.reason else []
            for where, due in iter_dues(row):
                for argument in due.values:
                    place = spec.place(
                        "lifecycle", "entities", name, *path, *where, "values", argument, key=True
                    )
                    lack = "which it does not take"
                    yield from report_unknown(
                        spec, place, f"The clock gives '{what}'", argument, accepted, lack
                    )
