"""Rules of lifecycle.yaml about indexes, clocks and the outbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.diagnostics import Place
from codegen.language.leases import Index
from codegen.language.lifecycle import Entity
from codegen.language.types import MessageField
from codegen.rules.lifecycle.entity_changes import DueChange, iter_due_changes
from codegen.rules.lifecycle.record_fields import iter_records, report_unknown_field
from codegen.rules.lifecycle.references import find_status_enum
from codegen.rules.lookup import format_list, is_other_type
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec, field_enum

LIST = "repeated string"


@rule(
    "E243",
    "An index goes by a field that does not exist, that is of the wrong type, or that may be unset.",
    wrong="indexes: {late: {key: late, in: [PARKED], score: plate}}",
    right="indexes: {late: {key: late, in: [PARKED], score: parked_at}}",
    spreads=True,
)
def bad_index(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        yield from _parts_twice(spec, name, entity)
        for title, index in entity.indexes.items():
            for word, field in _fields(index):
                here = (name, "indexes", title, word)
                place, subject = spec.place("lifecycle", "entities", *here), f"The index '{title}' goes by"
                if field not in record:
                    yield from report_unknown_field(spec, here, entity, field, record, subject)
                elif word == "by":
                    yield from _check_by(place, subject, entity, field, is_enum=_is_enum(spec, record[field]))
                elif word in ("only_if", "only_unless"):
                    if not record[field].optional:
                        message = f"{subject} whether '{field}' is set, which it always is."
                        yield Finding(place, message, "Name an optional field.")
                elif is_other_type(spec, record[field], wanted := LIST if word == "needs" else "timestamp"):
                    message = f"{subject} '{field}', which is of type {record[field].type}."
                    yield Finding(place, message, f"Name a {wanted}.")
                elif word == "score" and (state := _unset_in(entity, record, index, field)):
                    message = f"{subject} '{field}', which may be unset in {state}."
                    hint = f"Say 'only_if: {field}', or let every way into {state} stamp it."
                    yield Finding(place, message, hint)


def _parts_twice(spec: Spec, name: str, entity: Entity) -> Iterator[Finding]:
    indexes = entity.indexes
    first, *others = [title for title, index in indexes.items() if index.needs] or [""]
    for title in others:
        place = spec.place("lifecycle", "entities", name, "indexes", title, "needs", key=True)
        message = f"The index '{title}' has parts by needs, and so has '{first}'."
        yield Finding(place, message, "Leave them to the one from which leases are taken.")


def _fields(index: Index) -> Iterator[tuple[str, str]]:
    for word in ("by", "score", "only_if", "only_unless", "needs"):
        if field := getattr(index, word):
            yield word, field


def _is_enum(spec: Spec, row: MessageField) -> bool:
    return field_enum(spec, row) is not None


def _check_by(place: Place, subject: str, entity: Entity, field: str, *, is_enum: bool) -> Iterator[Finding]:
    """Check that the values by which an index has sets are known to the caller."""
    owner = entity.lease.owner if entity.lease else None
    if not is_enum and field != owner:
        message = f"{subject} '{field}', which is neither an enum nor the owner of the lease."
        yield Finding(place, message, "Name an enum of the record, or the owner.")


def _unset_in(entity: Entity, record: Mapping[str, MessageField], index: Index, field: str) -> str | None:
    """A state of an index in which an optional field need not be set."""
    if not record[field].optional or index.only_if == field:
        return None
    return next((state for state in index.in_ if not is_set_in(entity, field, state)), None)


def is_set_in(entity: Entity, field: str, state: str) -> bool:
    """Whether an optional time is there whenever an entity is in a state."""
    if entity.lease and entity.lease.state == state and field in (entity.lease.expires, entity.lease.owner):
        return True
    entering = [edge.stamps for edge in entity.transitions.values() if edge.to == state]
    entering += [entity.create.stamps] if state in entity.beginnings else []
    cleared = any(field in update.clear for update in entity.updates.values() if state in update.in_)
    return not cleared and all(field in stamps for stamps in entering)


@rule(
    "E244",
    "The clock drives something, and both or neither say when it is due, or its holder is none.",
    wrong="wake: {in: [PARKED], due: {by: porter, every: LOOK_SECONDS}}  # and never due",
    right="wake: {in: [PARKED], due: {at: rests_until, by: porter, every: LOOK_SECONDS}}",
    needs=("lifecycle", "types"),
)
def not_found_by_clock(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for each in iter_due_changes(entity):
            place = spec.place("lifecycle", "entities", name, *each.path, key=isinstance(each.path[-1], str))
            subject, due = f"'{each.name}'", each.due
            if due.at and due.holder_in:
                message = f"{subject} is due at '{due.at}' and by the state of its holder at once."
                yield Finding(place, message, "Leave it to two clocks: 'due' may be a list.")
            elif not due.at and not due.holder_in:
                message = f"{subject} is driven by the clock, and nothing says when it is due."
                yield Finding(place, message, "Add 'at' with a time of the record.")
            elif due.holder_in and due.after:
                message = (
                    f"{subject} is due as soon as its holder is in {due.holder_in}, and not some time after."
                )
                yield Finding(place, message, "Remove 'after'.")
            elif due.holder_in:
                yield from _by_holder(spec, name, entity, each)


def _by_holder(spec: Spec, name: str, entity: Entity, each: DueChange) -> Iterator[Finding]:
    place = spec.place("lifecycle", "entities", name, *each.path, "holder_in")
    state, holder = each.due.holder_in, entity.lease.holder if entity.lease else None
    if holder is None or entity.lease is None:
        message = f"'{each.name}' goes by the state of the holder, and a {name} has none."
        yield Finding(place, message, "Say 'holder' in its lease, or remove the clock.")
        return
    if each.states != (entity.lease.state,):
        message = (
            f"'{each.name}' goes by the state of the holder, which a {name} has in {entity.lease.state} only."
        )
        yield Finding(place, message, f"Drive an edge from {entity.lease.state} so.")
    other = spec.lifecycle.entities.get(holder.entity)
    enum = spec.enums.get(find_status_enum(spec, other)) if other else None
    if other is None or enum is None or state is None:
        return
    states = [value for value, row in enum.values.items() if row.number]
    lack = f"which is no state of a {holder.entity}"
    yield from report_unknown(spec, place, f"'{each.name}' is due when the holder is in", state, states, lack)


def has_listing(spec: Spec, entity: Entity) -> bool:
    """Whether an index has every entity by its state, in some order."""
    enum = spec.enums.get(find_status_enum(spec, entity))
    states = {value for value, row in enum.values.items() if row.number} if enum else set[str]()
    for index in entity.indexes.values():
        whole = states <= set(index.in_) and not index.only_if and not index.only_unless
        if whole and index.score is not None and index.by == entity.status:
            return True
    return False


@rule(
    "E246",
    "What happens to entities in Redis is written down by something that is no component that holds them.",
    wrong="outbox: {stream: diary, by: clark, …}",
    right="outbox: {stream: diary, by: clerk, …}",
    needs=("services",),
)
def bad_writer(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        box = entity.in_redis.outbox if entity.in_redis else None
        if box is None:
            continue
        place = spec.place_of_entity(name, "redis", "outbox", "by")
        subject, known = f"The history of a {name} is written by", spec.services.components
        yield from report_unknown(spec, place, subject, box.by, known, "which is no component")
        if entity.in_redis and not entity.in_redis.sequence:
            message = f"The history of a {name} is in the order of its changes, and nothing counts them."
            yield Finding(place, message, "Name a number of the record by 'sequence'.")
        holders = (entity.held_by, *entity.shared_with)
        if box.by in known and box.by not in holders:
            message = f"{subject} {box.by}, which does not hold one."
            yield Finding(
                place, message, f"Add {box.by} to 'shared_with', or name one of {format_list(list(holders))}."
            )
