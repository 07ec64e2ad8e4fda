"""Reference tables about entities: their states, changes and stores."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.docs.markdown import code, codes, format_table, prose
from codegen.emit.docs.reference_buckets import describe_bucket, render_hints
from codegen.emit.docs.reference_services import format_values
from codegen.language.leases import Lease
from codegen.language.lifecycle import Backoff, DeadLetter, Due, Entity, Take, Transition, Update
from codegen.language.storage.layouts import KeptInRedis
from codegen.source.spec import Spec, field_enum


def render_states(spec: Spec, entity: Entity) -> str:
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    rows = [
        (
            code(name),
            _format_kind(entity, name),
            code(entity.public_status.as_.get(name, "")) if entity.public_status else "",
            prose(enum.values[name].doc if enum and name in enum.values else None),
        )
        for name in list_state_names(spec, entity)
    ]
    return format_table(("State", "Kind", "Shown as", "Meaning"), rows)


def list_state_names(spec: Spec, entity: Entity) -> list[str]:
    """List the states of an entity in the order of its enum."""
    ends = [end for row in entity.transitions.values() for end in (*row.sources, row.to)]
    used = list(dict.fromkeys([entity.initial, *ends, *entity.terminal]))
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    known = [name for name in (enum.values if enum else {}) if name in used]
    return [*known, *(name for name in used if name not in known)]


def _format_kind(entity: Entity, state: str) -> str:
    kinds = {
        "initial": state in entity.beginnings,
        "terminal": state in entity.terminal,
        "resting": state in entity.resting,
        "failed": state in entity.failed_states,
    }
    return ", ".join(kind for kind, applies in kinds.items() if applies)


def render_transitions(entity: Entity) -> str:
    rows = [
        (
            code(name),
            prose(row.trigger),
            codes(row.sources),
            code(row.to),
            ", ".join(row.by),
            ", ".join(_list_guards(row)),
            codes(row.after),
            ", ".join(_list_writes(row)),
            _format_backoff(row.backoff) if row.backoff else "",
            _format_give_up(entity, row.dead_letter) if row.dead_letter else "",
            _format_dues(*row.dues),
            code(row.via or ""),
        )
        for name, row in entity.transitions.items()
    ]
    headers = ("Transition", "Trigger", "From", "To", "Actors", "Needs", "After", "Stamps")
    return format_table((*headers, "Waits", "Gives up", "Due", "Via"), rows)


def has_call_order(entity: Entity) -> bool:
    """Whether a transition requires calls before it."""
    return any(row.after for row in entity.transitions.values())


def _list_guards(row: Transition) -> list[str]:
    """List the guards of an edge."""
    needs = [codes(row.when)] if row.when else []
    return [*needs, *format_values(row.where), *(["its name"] if row.by_name else [])]


def render_updates(entity: Entity) -> str:
    """Render the table of updates that leave the state as it is."""
    rows = [
        (
            code(name),
            prose(row.trigger),
            codes(row.in_),
            ", ".join(row.by),
            ", ".join([*format_values(row.where), *(["the lease"] if row.fenced else [])]),
            ", ".join(_list_writes(row)),
            _format_dues(*row.dues),
        )
        for name, row in entity.updates.items()
    ]
    return format_table(("Update", "Trigger", "In", "Actors", "Needs", "Writes", "Due"), rows)


def _list_writes(row: Transition | Update) -> Iterator[str]:
    yield from map(code, row.stamps)
    yield from format_values(row.sets)
    yield from (_format_take(*each) for each in row.from_request.items())
    if isinstance(row, Transition):
        yield from (f"{code(field)} = {code(source)}" for field, source in row.copy_.items())
        for field, growth in row.multiply.items():
            yield f"{code(field)} times {growth.times}, at most {code(growth.max)}"
        if row.increment:
            yield f"{code(row.increment)} + 1"
    yield from (f"no {code(field)}" for field in row.clear)


def _format_backoff(row: Backoff) -> str:
    unit = "milliseconds" if isinstance(row.base, str) and row.base.islower() else "seconds"
    growth = {
        "exponential": f", {_format_factor(row)} as long for each further {code(row.count or '')}",
        "linear": f", as much longer for each further {code(row.count or '')}",
        "constant": "",
    }[row.kind]
    most = f", at most {_format_amount(row.max)}" if row.max is not None else ""
    jitter = f", plus or minus {_format_amount(row.jitter)} of it" if row.jitter else ""
    return f"until {code(row.until)}: {_format_amount(row.base)} {unit}{growth}{most}{jitter}"


def _format_factor(row: Backoff) -> str:
    return "twice" if row.times is None else f"{_format_amount(row.times)} times"


def _format_amount(source: str | float) -> str:
    """Format a number, or the name of what has it."""
    return code(source) if isinstance(source, str) else f"{source:g}"


def _format_give_up(entity: Entity, row: DeadLetter) -> str:
    count = f"{code(row.count)} less {code(row.less)}" if row.less else code(row.count)
    if entity.in_redis or entity.in_s3:
        return f"{code(row.transition)} instead once {count} has reached {code(row.limit)}"
    return f"{code(row.transition)} once {count} is above {code(row.limit)}"


def _format_dues(*rows: Due | None) -> str:
    return "; or ".join(_format_due(row) for row in rows if row)


def _format_due(row: Due) -> str:
    later = f" and {code(row.after)} seconds" if row.after else ""
    when = (
        f"as soon as its owner is in {code(row.holder_in)}" if row.holder_in else f"at {code(row.at)}{later}"
    )
    batch = f", {code(row.batch)} at a time" if row.batch else ""
    values = f", giving {', '.join(format_values(row.values))}" if row.values else ""
    return f"{when}; {row.by} sweeps every {code(row.every)} seconds{batch}{values}"


def format_deletion_due(row: Due) -> str:
    """Format when a deletion is due."""
    return f"It is due {_format_due(row)}."


def describe_storage(entity: Entity) -> Iterator[str]:
    """Describe the store and the lease of an entity, a sentence each."""
    if store := entity.in_postgres:
        yield (
            f"A {store.store} server stores it, at {code(store.url)} in the table {code(store.table)}; "
            f"{code(store.history)} has the history of its transitions."
        )
        if store.unique:
            yield f"No two have the same {codes(store.unique)}."
    if entity.in_redis:
        yield from _describe_redis(entity.in_redis)
    if entity.in_s3:
        yield from describe_bucket(entity.in_s3)
    if lease := entity.lease:
        yield (
            f"A claim sets it to {code(lease.state)} with a lease of {code(lease.seconds)} seconds, which "
            f"the owner may renew: {code(lease.owner)} is the owner, {code(lease.expires)} the end of the "
            f"lease, and {code(lease.fence)} the fence. Claims start with the oldest by "
            f"{code(lease.oldest_by)}."
        )
        yield from _describe_lease(lease, entity.in_redis.paused if entity.in_redis else None)


def _describe_redis(store: KeptInRedis) -> Iterator[str]:
    prefix = f" with the prefix {code(store.prefix)}" if store.prefix else ""
    yield (
        f"A {store.store} server stores it, at {code(store.url)} in the hash {code(store.hash)}{prefix}; "
        f"{code(store.sequence or '.changes')} counts its changes. Every change is one atomic script."
    )
    if store.replicas:
        yield f"Its creation is confirmed once {code(store.replicas)} replicas have it."
    if store.expires:
        yield f"In a terminal state it expires after {code(store.expires)} seconds."
    for field, seconds in ({**dict.fromkeys(store.unique), **store.unique_for}).items():
        within = f" within {code(seconds)} seconds" if seconds else ""
        yield (
            f"No two have the same {code(field)}{within}; {code(store.unique_keys.get(field, ''))} maps it "
            "to the key of its entity."
        )
    if box := store.outbox:
        yield (
            f"The stream {code(box.stream)} is the outbox of its transitions; {box.by} writes them to the "
            f"table {code(box.table)} at {code(box.url)}, and terminal records to {code(box.ended)}."
        )
    if store.wake_up:
        yield f"The channel {code(store.wake_up)} has wake-ups for claims."
    if store.metrics:
        yield f"Scripts count metrics in the hash {code(store.metrics)}."


def _describe_lease(lease: Lease, paused: str | None) -> Iterator[str]:
    if lease.token:
        yield f"{code(lease.token)} is a new UUID for each lease."
    if lease.only:
        yield f"Only workers that support its {code(lease.only)} claim it."
    if lease.claim_order:
        yield f"Claims read the index {code(lease.index)}, in the order {codes(lease.claim_order)}."
    if paused:
        yield f"Those in the set {code(paused)} are not claimed."
    if holder := lease.holder:
        yield (
            f"Its lease belongs to a {holder.entity} in {codes(holder.in_)}, which has at most "
            f"{code(holder.capacity)} at a time, and whose {code(holder.offers)} include all of "
            f"{code(holder.needs)}."
        )


def render_indexes(entity: Entity) -> str:
    """Render the table of the indexes of an entity."""
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
        return render_hints(entity.in_s3)
    return format_table(("Index", "Key", "In", "Ordered by", "If", "Parts"), rows)


def describe_creation(entity: Entity) -> Iterator[str]:
    """Describe the fields of a new entity beyond its stamps, a sentence each."""
    row = entity.create
    if row.copy_:
        begins = [f"{code(field)} begins as {code(source)}" for field, source in row.copy_.items()]
        yield f"{', '.join(begins)}."
    for field, each in row.defaults.items():
        values = ", ".join(f"{code(variable)} for {code(value)}" for value, variable in each.of.items())
        yield f"Unless it is given, {code(field)} depends on {code(each.by)}: {values}."
    if row.ceiling:
        yield f"Creation is refused while {code(row.ceiling.index)} has {code(row.ceiling.max)} or more."


def _format_take(field: str, take: Take) -> str:
    text = f"{code(field)} from {code(take.from_)}"
    text += f", else {code(take.default)}" if take.default else ""
    return text + (" unless it has one" if take.keep_first else "")
