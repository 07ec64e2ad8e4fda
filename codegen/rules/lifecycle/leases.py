"""Rules of lifecycle.yaml about leases: their state, and the record fields of leases, waits and counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.language.lifecycle import Entity, Transition
from codegen.language.storage.layouts import KeptInS3
from codegen.language.types import MessageField
from codegen.rules.lifecycle.entity_changes import is_variable, iter_changes
from codegen.rules.lifecycle.record_fields import iter_records, report_unknown_field
from codegen.rules.lookup import RANGES, is_other_type
from codegen.rules.rule import Finding, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

COUNTERS = ("uint32", "uint64")
_NUMBERS = (*RANGES, "double", "float")
_COUNTER = "the counter"
_WAIT = "the end of the wait"
_READ_ONLY = ("count", "less", "oldest_by", "renewed", "trace", "seconds", "limit", "only", "keyed_by")


@rule(
    "E231",
    "The state of a lease is none that an entity enters and leaves by transitions.",
    wrong="initial: BAKING\nlease: {state: BAKING, …}",
    right="initial: NOTED\nlease: {state: BAKING, …}",
    needs=("lifecycle", "types"),
    spreads=True,
)
def check_lease_state(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        if (lease := entity.lease) is None:
            continue
        place = spec.place("lifecycle", "entities", name, "lease", "state")
        sources = {state for edge in entity.transitions.values() for state in edge.sources}
        targets = {edge.to for edge in entity.transitions.values()}
        if lease.state in entity.beginnings:
            message = f"A {name} comes to be in {lease.state}, where nobody could have taken the lease."
            yield Finding(place, message, "Lease a state that is entered by a transition.")
        elif lease.state in entity.terminal or lease.state not in sources & targets:
            message = f"No transition leads {name}s both to {lease.state} and away from it."
            yield Finding(place, message, "Lease a state that they enter and leave.")


@rule(
    "E259",
    "A lease does not say how it ends, or says it twice.",
    wrong="lease: {state: BAKING, owner: baker, fence: turn, …}",
    right="lease: {state: BAKING, owner: baker, expires: oven_until, fence: turn, …}",
    needs=("lifecycle",),
    spreads=True,
)
def check_lease_end(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        if (lease := entity.lease) is not None and bool(lease.expires) == bool(lease.renewed):
            place = spec.place("lifecycle", "entities", name, "lease", key=True)
            how = "by 'expires' and by 'renewed'" if lease.expires else "in no way"
            hint = "Name its end by 'expires', or the time of the last sign of life by 'renewed'."
            yield Finding(place, f"The lease of a {name} ends {how}.", hint)


@rule(
    "E232",
    "A lease, a wait or a count is kept in a field that does not exist, or that is of the wrong type.",
    wrong="lease: {owner: baker, expires: noted_at, …}  # noted_at is always set",
    right="lease: {owner: baker, expires: oven_until, …}  # oven_until is an optional timestamp",
    spreads=True,
)
def check_lease_fields(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for path, what, field, types, optional in _iter_engine_fields(entity):
            here = (name, *path)
            if field not in record:
                yield from report_unknown_field(spec, here, entity, field, record, f"{what} of a {name} is")
                continue
            yield from _check_field_type(
                spec, here, f"{what} of a {name} is '{field}'", record[field], types, optional
            )


def _iter_engine_fields(entity: Entity) -> Iterator[tuple[Path, str, str, tuple[str, ...], bool | None]]:
    """Iterate over the fields of leases, waits and counts: path, purpose, field, types, and if optional.

    None means that it may be optional or not.
    """
    if entity.revision:
        yield ("revision",), "The number of writes", entity.revision, COUNTERS, False
    if (persistence := entity.in_redis) and persistence.sequence:
        yield ("redis", "sequence"), "The number of changes", persistence.sequence, COUNTERS, False
    yield from _iter_read_fields(entity)
    if bucket := entity.in_s3:
        yield from _iter_bucket_fields(bucket)
    if lease := entity.lease:
        if lease.token:
            yield ("lease", "token"), "The token", lease.token, ("string",), True
        if lease.only:
            yield ("lease", "only"), "What a taker must know", lease.only, ("string",), False
        yield ("lease", "owner"), "The owner", lease.owner, ("string",), True
        if lease.expires:
            yield ("lease", "expires"), "The end of the lease", lease.expires, ("timestamp",), True
        yield ("lease", "fence"), "The fence", lease.fence, COUNTERS, False
        # Keys and hints with names of their own are in the order of a time that is always there.
        is_named = entity.in_s3 is not None or bool(entity.in_redis and entity.in_redis.hash)
        times = ("timestamp",) if is_named else ("timestamp", "uint64")
        if lease.renewed:
            yield ("lease", "renewed"), "The time of the last sign", lease.renewed, times, False
        yield ("lease", "oldest_by"), "The age", lease.oldest_by, times, False if is_named else None
    for edge, row in entity.transitions.items():
        path = ("transitions", edge)
        if row.increment:
            yield (*path, "increment"), "The counter", row.increment, COUNTERS, False
        if row.backoff:
            # A claim compares the time by which it chooses; any other is unset when the wait has ended.
            is_age = bool(entity.lease and entity.lease.oldest_by == row.backoff.until)
            optional = None if is_age else True
            yield (
                (*path, "backoff", "until"),
                "The end of the wait",
                row.backoff.until,
                ("timestamp",),
                optional,
            )
            if row.backoff.count:
                yield (*path, "backoff", "count"), "The count of failures", row.backoff.count, COUNTERS, False
        if row.dead_letter:
            yield (
                (*path, "dead_letter", "count"),
                "The count of failures",
                row.dead_letter.count,
                COUNTERS,
                False,
            )
            if row.dead_letter.less:
                less = row.dead_letter.less
                yield (
                    (*path, "dead_letter", "less"),
                    "The count of what was no failure",
                    less,
                    COUNTERS,
                    False,
                )


def _iter_bucket_fields(
    persistence: KeptInS3,
) -> Iterator[tuple[Path, str, str, tuple[str, ...], bool | None]]:
    if persistence.revision:
        yield ("s3", "revision"), "The number of writes", persistence.revision, COUNTERS, False
    if persistence.shard:
        yield ("s3", "shard", "field"), "The shard", persistence.shard.field, ("string",), False
    if persistence.schema_:
        yield ("s3", "schema", "field"), "The layout", persistence.schema_.field, COUNTERS, False
    if persistence.keyed_by:
        yield ("s3", "keyed_by"), "What the key is made of", persistence.keyed_by, ("string",), True


def _iter_read_fields(entity: Entity) -> Iterator[tuple[Path, str, str, tuple[str, ...], bool | None]]:
    """Iterate over the fields that the store reads and others write."""
    if entity.in_redis and entity.in_redis.trace:
        yield ("redis", "trace"), "The trace", entity.in_redis.trace, ("string",), None
    if entity.lease and not is_variable(seconds := entity.lease.seconds):
        # A field without a value is filled in when the entity is created.
        filled = None if seconds in entity.create.defaults else False
        yield ("lease", "seconds"), "The length of the lease", seconds, _NUMBERS, filled
    for edge, row in entity.transitions.items():
        if row.dead_letter and not is_variable(limit := row.dead_letter.limit):
            filled = None if limit in entity.create.defaults else False
            path = ("transitions", edge, "dead_letter", "limit")
            yield path, "The most failures", limit, tuple(RANGES), filled


def _check_field_type(
    spec: Spec, here: Path, subject: str, row: MessageField, types: tuple[str, ...], optional: bool | None
) -> Iterator[Finding]:
    place = spec.place_of_entity(*here)
    if is_other_type(spec, row, *types):
        kind = " or ".join(types) if len(types) <= len(COUNTERS) else "whole number"
        kind = "number" if types == _NUMBERS else kind
        yield Finding(place, f"{subject}, which is of type {row.type}.", f"Name a {kind}.")
    elif row.optional and optional is False:
        yield Finding(place, f"{subject}, which may be absent.", "Name a field that is always there.")
    elif optional and not row.optional:
        yield Finding(
            place, f"{subject}, which is never absent.", "Say 'optional: true' of it in types.yaml."
        )


@rule(
    "E233",
    "A field that the engine keeps for a lease, a wait or a counter is also written by something else.",
    wrong="bake: {stamps: [oven_until]}  # and the lease expires by oven_until",
    right="bake: {stamps: [changed_at]}",
    needs=("lifecycle", "storage", "types"),
)
def check_written_once(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        owned: dict[str, str] = {entity.key: "its key", entity.status: "its state"}
        for path, what, field, _, _ in _iter_engine_fields(entity):
            # The count of a wait or a limit is the counter of a transition; the others are read only.
            if path[-1] in _READ_ONLY or field not in record:
                continue
            purpose = f"{what[:1].lower()}{what[1:]}"
            if {owned.get(field), purpose} == {"the fence", _COUNTER}:
                continue  # A fence may rise once more when the lease is lost.
            if (other := owned.setdefault(field, purpose)) != purpose:
                place = spec.place_of_entity(name, *path)
                message = f"'{field}' of a {name} is {purpose}, and it is {other} already."
                yield Finding(place, message, "Use a field of its own for each.")
        del owned[entity.key], owned[entity.status]
        yield from _check_other_writers(spec, name, entity, owned)


def _check_other_writers(
    spec: Spec, name: str, entity: Entity, owned: Mapping[str, str]
) -> Iterator[Finding]:
    written: list[tuple[Path, str]] = [
        (("create", "stamps", index), field) for index, field in enumerate(entity.create.stamps)
    ]
    for path, _, row in iter_changes(entity):
        written += [((*path, "stamps", index), field) for index, field in enumerate(row.stamps)]
        written += [((*path, "sets", field), field) for field in row.sets]
        written += [((*path, "from_request", field), field) for field in row.from_request]
        if isinstance(row, Transition):
            written += [((*path, "copy", field), field) for field in row.copy_]
            written += [((*path, "multiply", field), field) for field in row.multiply]
    for where, field in written:
        # A count may begin anew; where a claim waits for a time, that may end at once.
        resets = where[-2] == "sets" and owned.get(field) == _COUNTER
        is_age = entity.lease is not None and entity.lease.oldest_by == field
        ends_wait = is_age and "stamps" in where and owned.get(field) == _WAIT
        if field in owned and not (resets or ends_wait):
            place = spec.place("lifecycle", "entities", name, *where)
            message = f"'{field}' of a {name} is {owned[field]}, which only the engine writes."
            yield Finding(place, message, "Remove it here.")
