"""Rules of lifecycle.yaml about claims: the index that they go by, the order, and the holder of a lease."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.leases import Holder, Index, Lease
from codegen.language.lifecycle import Entity
from codegen.rules.lifecycle.record_fields import report_unknown_field
from codegen.rules.lifecycle.references import find_status_enum
from codegen.rules.lookup import RANGES, format_list, format_states, get_fields, is_other_type
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.rules.storage.indexes import LIST
from codegen.source.spec import Spec, field_enum
from codegen.source.yaml_reader import Path


@rule(
    "E247",
    "A lease is taken from an index that does not have what is free, or by two edges.",
    wrong="lease: {index: lost, oldest_by: parked_at, …}  # lost has no bikes that wait",
    right="lease: {index: waiting, oldest_by: parked_at, …}",
    needs=("lifecycle", "types"),
    spreads=True,
)
def bad_claim(spec: Spec) -> Iterator[Finding]:
    for name, entity, lease, indexes in _leased(spec):
        path = ("entities", name, "lease")
        entering = {edge: row for edge, row in entity.transitions.items() if row.to == lease.state}
        if len(entering) > 1:
            message = (
                f"{format_list(list(entering))} all lead to {lease.state}, and one alone takes the lease."
            )
            yield Finding(spec.place("lifecycle", *path, "state"), message, "Leave one of them.")
        for edge, row in entering.items():
            if len(row.sources) > 1:
                here = spec.place("lifecycle", "entities", name, "transitions", edge, "from")
                states = format_states(row.sources)
                message = f"'{edge}' takes the lease out of {states}, and a {name} waits for it in one state."
                yield Finding(here, message, "Name one state, and lead them there by other transitions.")
        if lease.index is None:
            continue
        place = spec.place("lifecycle", *path, "index")
        yield from report_unknown(
            spec, place, f"A {name} is leased from", lease.index, indexes, "which is no index"
        )
        if (index := indexes.get(lease.index)) is None:
            continue
        missing = [state for row in entering.values() for state in row.sources if state not in index.in_]
        if missing and len(entering) == 1:
            message = f"A {name} is leased from '{lease.index}', which has none in {missing[0]}."
            yield Finding(place, message, "Name the index of those that can be leased.")
        yield from _waiting_but_free(spec, name, entity, lease.index, index)
        yield from _lost_when_renewed(spec, name, lease, indexes)


def _lost_when_renewed(spec: Spec, name: str, lease: Lease, indexes: dict[str, Index]) -> Iterator[Finding]:
    for title, index in indexes.items():
        if index.score == lease.expires and index.by:
            place = spec.place("lifecycle", "entities", name, "indexes", title, "by")
            message = f"'{title}' has the ends of leases apart by '{index.by}', where none could be renewed."
            yield Finding(place, message, "Have them in one index.")


def _waiting_but_free(spec: Spec, name: str, entity: Entity, title: str, index: Index) -> Iterator[Finding]:
    for edge, row in entity.transitions.items():
        if row.backoff and row.to in index.in_ and index.only_unless != row.backoff.until:
            place = spec.place("lifecycle", "entities", name, "transitions", edge, "backoff", "until")
            message = (
                f"'{edge}' lets a {name} wait until '{row.backoff.until}', but '{title}' has it at once."
            )
            yield Finding(place, message, f"Say 'only_unless: {row.backoff.until}' of '{title}'.")


@rule(
    "E248",
    "The order in which the values of an index are served leaves one out, or names one that there is not.",
    wrong="lease: {index: waiting, claim_order: [LARGE], …}  # and small bikes are never fetched",
    right="lease: {index: waiting, claim_order: [LARGE, SMALL], …}",
    needs=("lifecycle", "types"),
)
def bad_order_of_service(spec: Spec) -> Iterator[Finding]:
    for name, entity, lease, indexes in _leased(spec):
        if (index := indexes.get(lease.index or "")) is None:
            continue
        record = get_fields(spec, entity.record) or {}
        enum = field_enum(spec, record[index.by]) if index.by and index.by in record else None
        values = [value for value, row in enum.values.items() if row.number] if enum else []
        path = ("entities", name, "lease")
        if lease.claim_order and not values:
            place = spec.place("lifecycle", *path, "claim_order", key=True)
            message = f"'claim_order' goes by the enum of '{lease.index}', which has none."
            yield Finding(place, message, "Remove 'claim_order', or say 'by' of the index with an enum.")
        for position, value in enumerate(lease.claim_order if values else ()):
            place = spec.place("lifecycle", *path, "claim_order", position)
            lack = f"which is no value of '{index.by}'"
            yield from report_unknown(spec, place, f"'{lease.index}' is served by", value, values, lack)
        left_out = [value for value in values if value not in lease.claim_order]
        if left_out and set(lease.claim_order) <= set(values):
            place = spec.place("lifecycle", *path, "claim_order" if lease.claim_order else "index", key=True)
            message = f"Nobody is ever given a {name} of {format_list(left_out)}."
            yield Finding(place, message, f"Say all values of '{index.by}' in 'claim_order'.")


@rule(
    "E249",
    "A lease is booked on something that cannot hold it.",
    wrong="holder: {entity: van, capacity: plate, …}",
    right="holder: {entity: van, capacity: room, …}  # which is a number of the van",
    needs=("lifecycle", "types"),
    spreads=True,
)
def bad_holder(spec: Spec) -> Iterator[Finding]:
    for name, entity, lease, indexes in _leased(spec):
        path = ("entities", name, "lease", "holder")
        if (holder := lease.holder) is None:
            continue
        other = spec.lifecycle.entities.get(holder.entity)
        place = spec.place("lifecycle", *path, "entity")
        yield from report_unknown(
            spec,
            place,
            f"A {name} is booked on",
            holder.entity,
            spec.lifecycle.entities,
            "which is no entity",
        )
        if other:
            yield from _states_of_holder(spec, path, other, holder)
            yield from _fields_of_holder(spec, (name, "lease", "holder"), entity, other, holder)
        if holder.booked and entity.in_redis:
            yield from _booking(spec, path, lease, holder, indexes)
        yield from _parts(spec, path, entity, lease, holder)


def _states_of_holder(spec: Spec, path: Path, other: Entity, holder: Holder) -> Iterator[Finding]:
    enum = spec.enums.get(find_status_enum(spec, other))
    states = [value for value, row in enum.values.items() if row.number] if enum else []
    for position, state in enumerate(holder.in_ if states else ()):
        place, lack = (
            spec.place("lifecycle", *path, "in", position),
            f"which is no state of a {holder.entity}",
        )
        yield from report_unknown(spec, place, "The holder is given more in", state, states, lack)


def _fields_of_holder(
    spec: Spec, path: Path, entity: Entity, other: Entity, holder: Holder
) -> Iterator[Finding]:
    wanted: tuple[tuple[str, Entity, str, tuple[str, ...]], ...] = (
        ("capacity", other, holder.capacity, tuple(RANGES)),
        ("offers", other, holder.offers, (LIST,)),
        ("needs", entity, holder.needs, (LIST,)),
    )
    for word, owner, field, types in wanted:
        if (record := get_fields(spec, owner.record)) is None:
            continue
        place = spec.place("lifecycle", "entities", *path, word)
        if field not in record:
            yield from report_unknown_field(spec, (*path, word), owner, field, record, f"'{word}' is")
        elif is_other_type(spec, record[field], *types):
            kind = "a number" if word == "capacity" else "a list of texts"
            message = f"'{word}' is '{field}', which is of type {record[field].type}."
            yield Finding(place, message, f"Name {kind} of {owner.record}.")
        elif record[field].optional:
            message = f"'{word}' is '{field}', which may be absent."
            yield Finding(place, message, "Name a field that is always there.")


def _booking(
    spec: Spec, path: Path, lease: Lease, holder: Holder, indexes: dict[str, Index]
) -> Iterator[Finding]:
    place = spec.place("lifecycle", *path, "booked")
    yield from report_unknown(
        spec, place, "Leases are booked in", holder.booked, indexes, "which is no index"
    )
    if booked := indexes.get(holder.booked):
        fits = booked.score is None and booked.by == lease.owner
        if not fits or booked.in_ != (lease.state,) or booked.only_if or booked.only_unless:
            message = (
                f"Leases are booked in '{holder.booked}', which is no plain set of each '{lease.owner}'."
            )
            hint = f"It has 'by: {lease.owner}', 'in: [{lease.state}]' and no score."
            yield Finding(place, message, hint)


def _parts(spec: Spec, path: Path, entity: Entity, lease: Lease, holder: Holder) -> Iterator[Finding]:
    source = entity.indexes.get(lease.index or "") if entity.in_redis else None
    row = (get_fields(spec, entity.record) or {}).get(holder.needs)
    if source and row and row.type == LIST and source.needs != holder.needs:
        place = spec.place("lifecycle", *path, "needs")
        message = f"Who takes from '{lease.index}' must offer '{holder.needs}', by which it has no parts."
        yield Finding(place, message, f"Say 'needs: {holder.needs}' of the index.")


@rule(
    "E250",
    "Something is not deleted while it holds leases of an entity that is never leased to it.",
    wrong="van: {delete: {unless_holding: van, …}}",
    right="van: {delete: {unless_holding: bike, …}}  # whose lease has the van as its holder",
    needs=("lifecycle",),
)
def bad_hindrance(spec: Spec) -> Iterator[Finding]:
    entities = spec.lifecycle.entities
    for name, entity in entities.items():
        held = entity.delete.unless_holding if entity.delete else None
        if held is None:
            continue
        place = spec.place("lifecycle", "entities", name, "delete", "unless_holding")
        known = [
            each
            for each, row in entities.items()
            if row.lease and row.lease.holder and row.lease.holder.entity == name
        ]
        lack = f"which is never leased to a {name}"
        yield from report_unknown(spec, place, f"A {name} is not deleted while it holds a", held, known, lack)


def _leased(spec: Spec) -> Iterator[tuple[str, Entity, Lease, dict[str, Index]]]:
    """Iterate over the leased entities, with the indexes of the spec that claims may go by."""
    for name, entity in spec.lifecycle.entities.items():
        if entity.lease:
            yield name, entity, entity.lease, entity.indexes
