"""The variables with numbers that entities go by: leases, waits, limits, clocks, and what stores add."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codegen.language.lifecycle import Entity
from codegen.rules.lifecycle.entity_changes import appliers, clocked, is_variable
from codegen.rules.lifecycle.references import holders
from codegen.source.yaml_reader import Path


class Reading(NamedTuple):
    """A variable that an entity names: where, what for, of which type, and the components that need it."""

    path: Path
    purpose: str
    variable: str
    type: str
    readers: tuple[str, ...]


def readings(entity: Entity) -> Iterator[Reading]:
    """Every variable that an entity goes by."""
    if entity.kept_in is None:
        return
    if (lease := entity.lease) and (is_variable(lease.seconds) or entity.in_postgres):
        takers = [
            actor for edge in entity.transitions.values() if edge.to == lease.state for actor in edge.by
        ]
        yield Reading(
            ("lease", "seconds"), "The lease", lease.seconds, "number", appliers(entity, tuple(takers))
        )
    for name, edge in entity.transitions.items():
        path, by = ("transitions", name), appliers(entity, edge.by)
        if edge.waits:
            for word, variable in (("base", edge.waits.base), ("max", edge.waits.max)):
                if not is_variable(variable) and entity.in_s3:
                    continue
                yield Reading((*path, "waits", word), f"The wait of '{name}'", variable, "number", by)
        if edge.gives_up and (is_variable(edge.gives_up.limit) or entity.in_postgres):
            limit = edge.gives_up.limit
            yield Reading((*path, "gives_up", "limit"), f"The limit of '{name}'", limit, "int", by)
        for field, growth in edge.grows.items():
            here = (*path, "grows", field, "most")
            yield Reading(here, f"The most of '{field}'", growth.most, "int", by)
    for each in clocked(entity):
        due, name = each.due, each.name
        yield Reading((*each.path, "every"), f"The pace of '{name}'", due.every, "number", (due.by,))
        if due.after:
            yield Reading((*each.path, "after"), f"The delay of '{name}'", due.after, "number", (due.by,))
        if due.grace:
            yield Reading((*each.path, "grace"), f"The grace of '{name}'", due.grace, "number", (due.by,))
        if due.batch:
            yield Reading((*each.path, "batch"), f"The batch of '{name}'", due.batch, "int", (due.by,))
    yield from _readings_of_redis(entity)
    yield from _readings_of_bucket(entity)


def _readings_of_bucket(entity: Entity) -> Iterator[Reading]:
    if (kept := entity.in_s3) is None:
        return
    if kept.skew:
        path: Path = ("kept_in", "skew")
        yield Reading(path, "How much clocks may differ", kept.skew, "int", holders(entity))
    if (polls := kept.polls) and entity.lease:
        takers = tuple(
            each for row in entity.transitions.values() if row.to == entity.lease.state for each in row.by
        )
        for word, variable in (("page", polls.page), ("scan_page", polls.scan_page)):
            path = ("kept_in", "polls", word)
            yield Reading(path, "The length of a listing", variable, "int", appliers(entity, takers))
    if repairs := kept.repairs:
        path = ("kept_in", "repairs")
        yield Reading((*path, "every"), "The pace of repairs", repairs.every, "number", (repairs.by,))
        yield Reading((*path, "page"), "The length of a listing", repairs.page, "int", (repairs.by,))


def _readings_of_redis(entity: Entity) -> Iterator[Reading]:
    if (kept := entity.in_redis) is None:
        return
    creators = appliers(entity, entity.create.by)
    if kept.expires:
        path: Path = ("kept_in", "expires")
        yield Reading(path, "How long ended ones are kept", kept.expires, "number", holders(entity))
    if kept.replicas:
        path = ("kept_in", "replicas")
        yield Reading(path, "How many replicas have a new one", kept.replicas, "int", creators)
    if kept.outbox and kept.outbox.expires:
        path = ("kept_in", "outbox", "expires")
        yield Reading(path, "How long history is kept", kept.outbox.expires, "number", (kept.outbox.by,))
    for field, row in kept.unique.items():
        path = ("kept_in", "unique", field, "seconds")
        yield Reading(path, f"The memory of '{field}'", row.seconds, "number", creators)
    for field, fill in entity.create.fills.items():
        for value, variable in fill.of.items():
            path = ("create", "fills", field, "of", value)
            yield Reading(path, f"What stands in for '{field}'", variable, "int", creators)
    if refuses := entity.create.refuses:
        path = ("create", "refuses", "most")
        yield Reading(path, "The most that may wait", refuses.most, "int", creators)
