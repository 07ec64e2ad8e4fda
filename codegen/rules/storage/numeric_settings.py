"""Numeric settings of entities: variables of leases, backoff, limits, due transitions and stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codegen.language.lifecycle import Entity
from codegen.rules.lifecycle.entity_changes import find_appliers, is_variable, iter_due_changes
from codegen.rules.lifecycle.references import list_holders
from codegen.source.yaml_reader import Path


class NumericSetting(NamedTuple):
    """A variable that an entity names: path, purpose, name, type, and the components that read it."""

    path: Path
    purpose: str
    variable: str
    type: str
    readers: tuple[str, ...]


def iter_numeric_settings(entity: Entity) -> Iterator[NumericSetting]:
    """Iterate over all numeric settings of an entity."""
    if (lease := entity.lease) and is_variable(lease.seconds):
        claimers = [
            actor for edge in entity.transitions.values() if edge.to == lease.state for actor in edge.by
        ]
        yield NumericSetting(
            ("lease", "seconds"), "The lease", lease.seconds, "number", find_appliers(entity, tuple(claimers))
        )
    for name, edge in entity.transitions.items():
        path, by = ("transitions", name), find_appliers(entity, edge.by)
        for word in ("base", "max", "times", "jitter") if edge.backoff else ():
            if is_variable(variable := getattr(edge.backoff, word)):
                subject = f"The wait of '{name}'"
                yield NumericSetting((*path, "backoff", word), subject, variable, "number", by)
        if edge.dead_letter and is_variable(edge.dead_letter.limit):
            limit = edge.dead_letter.limit
            yield NumericSetting((*path, "dead_letter", "limit"), f"The limit of '{name}'", limit, "int", by)
        for field, growth in edge.multiply.items():
            here = (*path, "multiply", field, "max")
            yield NumericSetting(here, f"The most of '{field}'", growth.max, "int", by)
    for each in iter_due_changes(entity):
        due, name = each.due, each.name
        yield NumericSetting((*each.path, "every"), f"The pace of '{name}'", due.every, "number", (due.by,))
        if due.after:
            yield NumericSetting(
                (*each.path, "after"), f"The delay of '{name}'", due.after, "number", (due.by,)
            )
        if due.grace:
            yield NumericSetting(
                (*each.path, "grace"), f"The grace of '{name}'", due.grace, "number", (due.by,)
            )
        if due.batch:
            yield NumericSetting((*each.path, "batch"), f"The batch of '{name}'", due.batch, "int", (due.by,))
    yield from _iter_word_settings(entity)
    yield from _iter_redis_settings(entity)
    yield from _iter_bucket_settings(entity)


def _iter_bucket_settings(entity: Entity) -> Iterator[NumericSetting]:
    if (persistence := entity.in_s3) is None:
        return
    if persistence.skew:
        path: Path = ("s3", "skew")
        yield NumericSetting(
            path, "How much clocks may differ", persistence.skew, "int", list_holders(entity)
        )
    if (polls := persistence.polls) and entity.lease:
        claimers = tuple(
            each for row in entity.transitions.values() if row.to == entity.lease.state for each in row.by
        )
        for word, variable in (("page", polls.page), ("scan_page", polls.scan_page)):
            path = ("s3", "polls", word)
            yield NumericSetting(
                path, "The length of a listing", variable, "int", find_appliers(entity, claimers)
            )
    if repairs := persistence.repairs:
        path = ("s3", "repairs")
        yield NumericSetting((*path, "every"), "The pace of repairs", repairs.every, "number", (repairs.by,))
        yield NumericSetting((*path, "page"), "The length of a listing", repairs.page, "int", (repairs.by,))


def _iter_word_settings(entity: Entity) -> Iterator[NumericSetting]:
    creators = find_appliers(entity, entity.create.by)
    if entity.expires:
        purpose = "How long ended ones are kept"
        yield NumericSetting(("expires",), purpose, entity.expires, "number", list_holders(entity))
    for field, variable in entity.unique_for.items():
        path: Path = ("unique_for", field)
        yield NumericSetting(path, f"The memory of '{field}'", variable, "number", creators)
    yield from _iter_creation_settings(entity, creators)


def _iter_redis_settings(entity: Entity) -> Iterator[NumericSetting]:
    if (persistence := entity.in_redis) is None:
        return
    if persistence.replicas:
        path: Path = ("redis", "replicas")
        creators = find_appliers(entity, entity.create.by)
        yield NumericSetting(path, "How many replicas have a new one", persistence.replicas, "int", creators)
    if persistence.outbox and persistence.outbox.expires:
        path = ("redis", "outbox", "expires")
        yield NumericSetting(
            path, "How long history is kept", persistence.outbox.expires, "number", (persistence.outbox.by,)
        )


def _iter_creation_settings(entity: Entity, creators: tuple[str, ...]) -> Iterator[NumericSetting]:
    path: Path
    for field, fill in entity.create.defaults.items():
        for value, variable in fill.of.items():
            path = ("create", "defaults", field, "of", value)
            yield NumericSetting(path, f"What stands in for '{field}'", variable, "int", creators)
    if ceiling := entity.create.ceiling:
        path = ("create", "ceiling", "max")
        yield NumericSetting(path, "The most that may wait", ceiling.max, "int", creators)
