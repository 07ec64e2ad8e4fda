"""The tables of a reference page that tell of entities: their states, changes, and where they are kept."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.docs.markdown import code, codes, prose, table
from codegen.emit.docs.reference_buckets import hints, in_bucket
from codegen.emit.docs.reference_tables import sets
from codegen.language.lifecycle import Backoff, Due, Entity, GiveUp, Shift, Take, Transition
from codegen.language.persistence import KeptInRedis, Lease
from codegen.source.spec import Spec, field_enum


def states(spec: Spec, entity: Entity) -> str:
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    rows = [
        (
            code(name),
            _kind(entity, name),
            code(entity.shown.as_.get(name, "")) if entity.shown else "",
            prose(enum.values[name].doc if enum and name in enum.values else None),
        )
        for name in state_names(spec, entity)
    ]
    return table(("State", "Kind", "Shown as", "Meaning"), rows)


def state_names(spec: Spec, entity: Entity) -> list[str]:
    """The states of an entity in the order of its enum."""
    ends = [end for row in entity.transitions.values() for end in (row.from_, row.to)]
    used = list(dict.fromkeys([entity.initial, *ends, *entity.terminal]))
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    known = [name for name in (enum.values if enum else {}) if name in used]
    return [*known, *(name for name in used if name not in known)]


def _kind(entity: Entity, state: str) -> str:
    kinds = {
        "initial": state == entity.initial,
        "terminal": state in entity.terminal,
        "failed": state in entity.failed_states,
    }
    return ", ".join(kind for kind, holds in kinds.items() if holds)


def transitions(entity: Entity) -> str:
    rows = [
        (
            code(name),
            prose(row.trigger),
            code(row.from_),
            code(row.to),
            ", ".join(row.by),
            ", ".join(_needs(row)),
            codes(row.after),
            ", ".join(_writes(row)),
            _wait(row.waits) if row.waits else "",
            _give_up(entity, row.gives_up) if row.gives_up else "",
            _dues(row.due, row.also_due),
            code(row.via or ""),
        )
        for name, row in entity.transitions.items()
    ]
    headers = ("Transition", "Trigger", "From", "To", "Actors", "Needs", "After", "Stamps")
    return table((*headers, "Waits", "Gives up", "Due", "Via"), rows)


def has_order(entity: Entity) -> bool:
    """Whether a transition comes after calls."""
    return any(row.after for row in entity.transitions.values())


def _needs(row: Transition) -> list[str]:
    """What must hold for an edge to be taken."""
    needs = [codes(row.when)] if row.when else []
    return [*needs, *sets(row.where), *(["its name"] if row.by_name else [])]


def shifts(entity: Entity) -> str:
    """What changes an entity and leaves its state as it is."""
    rows = [
        (
            code(name),
            prose(row.trigger),
            codes(row.in_),
            ", ".join(row.by),
            ", ".join([*sets(row.where), *(["the lease"] if row.fenced else [])]),
            ", ".join(_writes(row)),
            _dues(row.due),
        )
        for name, row in entity.shifts.items()
    ]
    return table(("Shift", "Trigger", "In", "Actors", "Needs", "Writes", "Due"), rows)


def _writes(row: Transition | Shift) -> Iterator[str]:
    yield from map(code, row.stamps)
    yield from sets(row.sets)
    yield from (_take(*each) for each in row.takes.items())
    if isinstance(row, Transition):
        yield from (f"{code(field)} = {code(source)}" for field, source in row.copies.items())
        for field, growth in row.grows.items():
            yield f"{code(field)} times {growth.times}, at most {code(growth.most)}"
        if row.counts:
            yield f"{code(row.counts)} + 1"
    yield from (f"no {code(field)}" for field in row.clears)


def _wait(row: Backoff) -> str:
    unit = "seconds" if row.base.isupper() else "milliseconds"
    times = f"{code(row.times)} times" if row.times else "twice"
    jitter = f", give or take {code(row.jitter)} of it" if row.jitter else ""
    return (
        f"until {code(row.until)}: {code(row.base)} {unit}, {times} as long for each further "
        f"{code(row.count)}, at most {code(row.max)}{jitter}"
    )


def _give_up(entity: Entity, row: GiveUp) -> str:
    count = f"{code(row.count)} less {code(row.less)}" if row.less else code(row.count)
    if entity.in_redis or entity.in_s3:
        return f"{code(row.with_)} in its place once {count} has reached {code(row.limit)}"
    return f"{code(row.with_)} once {count} is above {code(row.limit)}"


def _dues(*rows: Due | None) -> str:
    return "; or ".join(_due(row) for row in rows if row)


def _due(row: Due) -> str:
    later = f" and {code(row.after)} seconds" if row.after else ""
    when = (
        f"as soon as its holder is in {code(row.holder_in)}" if row.holder_in else f"at {code(row.at)}{later}"
    )
    batch = f", {code(row.batch)} at a time" if row.batch else ""
    given = f", giving {', '.join(sets(row.gives))}" if row.gives else ""
    return f"{when}; {row.by} looks every {code(row.every)} seconds{batch}{given}"


def deletion_due(row: Due) -> str:
    """When the clock deletes an entity."""
    return f"It is due {_due(row)}."


def keeping(entity: Entity) -> Iterator[str]:
    """Where an entity is kept and who owns it for how long, a sentence each."""
    if kept := entity.in_postgres:
        yield (
            f"A {kept.store} server keeps it, at {code(kept.url)} in the table {code(kept.table)}; "
            f"{code(kept.history)} has every transition that was ever made."
        )
        if kept.unique:
            yield f"No two have the same {codes(kept.unique)}."
    if entity.in_redis:
        yield from _in_redis(entity.in_redis)
    if entity.in_s3:
        yield from in_bucket(entity.in_s3)
    if lease := entity.lease:
        yield (
            f"Whoever takes it to {code(lease.state)} owns it for {code(lease.seconds)} seconds and may "
            f"renew that: {code(lease.owner)} says who, {code(lease.expires)} until when, and "
            f"{code(lease.fence)} tells one time from the next. The oldest by {code(lease.oldest_by)} "
            "goes first."
        )
        yield from _leasing(lease)


def _in_redis(kept: KeptInRedis) -> Iterator[str]:
    prefix = f" behind {code(kept.prefix)}" if kept.prefix else ""
    yield (
        f"A {kept.store} server keeps it, at {code(kept.url)} in the hash {code(kept.hash)}{prefix}; "
        f"{code(kept.sequence)} counts its changes. Every change is one script."
    )
    if kept.replicas:
        yield f"A new one is told of once {code(kept.replicas)} replicas have it."
    if kept.expires:
        yield f"Once it has ended it is kept for {code(kept.expires)} seconds."
    for field, row in kept.unique.items():
        yield (
            f"No two have the same {code(field)} within {code(row.seconds)} seconds; {code(row.key)} has the "
            "key of the one that has it."
        )
    if box := kept.outbox:
        yield (
            f"The stream {code(box.stream)} has every transition; {box.by} writes it to the table "
            f"{code(box.table)} at {code(box.url)}, and those that ended to {code(box.ended)}."
        )
    if kept.wakes:
        yield f"The channel {code(kept.wakes)} tells when there is something to be taken."
    if kept.metrics:
        yield f"Scripts count in the hash {code(kept.metrics)}."


def _leasing(lease: Lease) -> Iterator[str]:
    if lease.token:
        yield f"{code(lease.token)} is another UUID each time."
    if lease.only:
        yield f"It is taken by those who know what to do with its {code(lease.only)}."
    if lease.first:
        yield f"It is taken from the index {code(lease.index)}, in the order {codes(lease.first)}."
    if lease.paused:
        yield f"What is in the set {code(lease.paused)} is not given to anybody."
    if holder := lease.holder:
        yield (
            f"It is booked on a {holder.entity} in {codes(holder.in_)}, never more than its "
            f"{code(holder.capacity)} at a time, and only if its {code(holder.offers)} have all of "
            f"{code(holder.needs)}."
        )
        if holder.idle:
            yield f"Those that wait are in the hash {code(holder.idle)}; they are handed what is new at once."


def indexes(entity: Entity) -> str:
    """The indexes of an entity."""
    rows = [
        (
            code(name),
            code(row.key),
            codes(row.in_),
            code(row.score or ""),
            ", ".join(
                [
                    *([f"{code(row.only_if)} is set"] if row.only_if else []),
                    *([f"{code(row.only_unless)} is not set"] if row.only_unless else []),
                ]
            ),
            f"{code(row.parts.key)} for each set of {code(row.parts.by)}" if row.parts else "",
        )
        for name, row in (entity.in_redis.indexes.items() if entity.in_redis else ())
    ]
    if entity.in_s3:
        return hints(entity.in_s3)
    return table(("Index", "Key", "In", "Ordered by", "If", "Parts"), rows)


def creation(entity: Entity) -> Iterator[str]:
    """What becomes of the fields of a new entity beyond its stamps, a sentence each."""
    row = entity.create
    if row.copies:
        begins = [f"{code(field)} begins as {code(source)}" for field, source in row.copies.items()]
        yield f"{', '.join(begins)}."
    for field, each in row.fills.items():
        values = ", ".join(f"{code(variable)} for {code(value)}" for value, variable in each.of.items())
        yield f"Unless it is given, {code(field)} depends on {code(each.by)}: {values}."
    if row.refuses:
        yield f"None is created while {code(row.refuses.index)} holds {code(row.refuses.most)} or more."


def _take(field: str, take: Take) -> str:
    said = f"{code(field)} from {code(take.from_)}"
    said += f", else {code(take.default)}" if take.default else ""
    return said + (" unless it has one" if take.keep_first else "")
