"""Rules of lifecycle.yaml about stored entities: access, location, tables, columns and public states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codegen.diagnostics import Place
from codegen.language.lifecycle import Entity
from codegen.language.storage.layouts import KeptInRedis, KeptInS3, lay_out
from codegen.rules.lifecycle.record_fields import iter_records
from codegen.rules.lifecycle.references import find_status_enum, list_holders
from codegen.rules.lookup import format_list, is_other_type
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import SCALARS, Spec
from codegen.source.yaml_reader import Path

_TABLES = {"table": "table", "history": "history", "ended": "archive"}


@rule(
    "E225",
    "Something is done without a method by someone who does not have the store.",
    wrong="note: {by: [client]}  # and neither via nor driven_by",
    right="note: {by: [counter]}  # which holds the entity",
    needs=("lifecycle", "services", "system"),
)
def check_store_access(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        acts: list[tuple[Path, str, tuple[str, ...], str | None]] = [
            (("create",), "create", entity.create.by, entity.create.via)
        ]
        acts += [
            (("transitions", edge), edge, row.by, row.via or entity.driven_by)
            for edge, row in entity.transitions.items()
        ]
        acts += [(("updates", update), update, row.by, None) for update, row in entity.updates.items()]
        if entity.delete:
            acts.append((("delete",), "delete", entity.delete.by, entity.delete.via))
        without_access: dict[str, list[tuple[Path, str]]] = {}
        for path, what, actors, via in acts:
            for index, actor in enumerate(actors if via is None else ()):
                if actor in spec.callers.principals and not _has_store_access(spec, entity, actor):
                    without_access.setdefault(actor, []).append(((*path, "by", index), what))
        for actor, actions in without_access.items():
            place = spec.place("lifecycle", "entities", name, *actions[0][0])
            what = format_list([each for _, each in actions])
            message = f"{actor} does {what} through no method and does not hold a {name}."
            yield Finding(
                place, message, "Name a method by 'via', or let it hold the entity by 'shared_with'."
            )


def _has_store_access(spec: Spec, entity: Entity, actor: str) -> bool:
    """Whether an actor applies transitions itself, or calls a component that does so on its behalf."""
    called = {
        spec.methods[ref].component
        for caller, ref in spec.permissions
        if caller == actor and ref in spec.methods
    }
    if entity.in_s3 and spec.system.page and actor == spec.system.page.principal:
        return True
    return not called.isdisjoint(list_holders(entity)) or actor in list_holders(entity)


@rule(
    "E226",
    "The server of an entity is found by something that is no URL, or that a holder does not read.",
    wrong="postgres: {url: SHOP_PORT}",
    right="postgres: {url: SHOP_DATABASE}",
    needs=("environment", "services", "lifecycle"),
    spreads=True,
)
def check_store_locations(spec: Spec) -> Iterator[Finding]:
    wrong = set[Place]()
    for name, entity in spec.lifecycle.entities.items():
        for path, what, variable, kind, readers, may_be_unset in iter_store_settings(name, entity):
            place, row = spec.place_of_entity(name, *path), spec.environment.variables.get(variable)
            if row is None:
                known = [each for each, other in spec.environment.variables.items() if other.type == kind]
                yield from report_unknown(spec, place, what, variable, known)
                continue
            known = [each for each in readers if each in spec.services.components]
            not_reading = [each for each in known if row.read_by != "everyone" and each not in row.read_by]
            if row.type != kind and place not in wrong:
                wrong.add(place)  # Entities of one engine share it.
                message = f"{what} {variable}, which is of type {row.type}."
                yield Finding(place, message, f"Name a variable of type {kind}.")
            elif row.type != kind:
                continue
            elif not_reading:
                message = f"{what} {variable}, which {format_list(not_reading)} does not read."
                yield Finding(place, message, f"Add it to 'read_by' of {variable} in environment.yaml.")
            elif not row.required and row.default is None and not may_be_unset:
                hint = "Say 'required: true' of" if kind == "url" else "Give a default to"
                message = f"{what} {variable}, which may be left unset."
                hint = f"{hint} {variable} in environment.yaml."
                yield Finding(place, message, hint, f"{variable}, unset")


class StoreSetting(NamedTuple):
    """A variable with the location of a store: path, purpose, name, type, and the components that read it."""

    path: Path
    what: str
    variable: str
    kind: str
    readers: tuple[str, ...]
    may_be_unset: bool = False


def iter_store_settings(name: str, entity: Entity) -> Iterator[StoreSetting]:
    """Iterate over the variables with the location of the store of an entity."""
    everyone = list_holders(entity)
    if server := entity.in_postgres or entity.in_redis:
        yield StoreSetting(
            (server.store, "url"), f"The server of a {name} is at", server.url, "url", everyone
        )
    if file := entity.in_sqlite:
        yield StoreSetting(
            ("sqlite", "path"), f"The file of a {name} is at", file.path, "data_path", everyone
        )
    if isinstance(bucket := entity.kept_in, KeptInS3):
        what = f"The store of a {name} is at"
        yield StoreSetting(("s3", "endpoint"), what, bucket.endpoint, "url", everyone, may_be_unset=True)
        yield StoreSetting(("s3", "bucket"), f"The bucket of a {name} is", bucket.bucket, "string", everyone)
        yield StoreSetting(("s3", "region"), f"The region of a {name} is", bucket.region, "string", everyone)
    persistence = entity.kept_in
    if isinstance(persistence, KeptInRedis | KeptInS3) and persistence.prefix:
        what, unset = f"The keys of a {name} begin with", isinstance(persistence, KeptInS3)
        yield StoreSetting(
            (persistence.store, "prefix"), what, persistence.prefix, "string", everyone, may_be_unset=unset
        )
    if entity.in_redis and (box := entity.in_redis.outbox):
        readers = tuple(dict.fromkeys((entity.held_by, box.by)))
        yield StoreSetting(
            ("redis", "outbox", "url"), f"The history of a {name} is at", box.url, "url", readers
        )


@rule(
    "E227",
    "Two things are kept in the same table.",
    wrong="order: {table: orders, history: orders}",
    right="order: {table: orders, history: order_changes}",
)
def check_tables_unique(spec: Spec) -> Iterator[Finding]:
    for engine in ("postgres", "sqlite", "redis"):
        first: dict[str, str] = {}
        for name, entity in spec.lifecycle.entities.items():
            layout = lay_out(engine, name, entity, spec.storage, spec.environment.variables)
            for path, table in _iter_tables(entity.laid_out(layout)):
                what = f"the {_TABLES[path[-1]]} of a {name}"
                if (other := first.setdefault(table, what)) != what:
                    place = spec.place_of_entity(name, engine, *path)
                    message = f"'{table}' is {what}, and it is {other} already."
                    yield Finding(place, message, "Choose another name in storage.yaml.")


def _iter_tables(entity: Entity) -> Iterator[tuple[tuple[str, ...], str]]:
    if persistence := entity.in_sql:
        yield ("table",), persistence.table
        yield ("history",), persistence.history
    if entity.in_redis and (box := entity.in_redis.outbox):
        yield ("outbox", "table"), box.table
        yield ("outbox", "ended"), box.ended


@rule(
    "E228",
    "What no two entities may share is no field of the record that can be compared.",
    wrong="unique: [recipe]  # which is json",
    right="unique: [number]",
)
def check_unique_fields(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for field, place in _iter_unique_fields(spec, name, entity):
            if field not in record:
                lack = f"which {entity.record} does not have"
                yield from report_unknown(spec, place, f"No two {name}s share", field, record, lack)
            elif is_other_type(spec, record[field], *(set(SCALARS) - {"json", "bytes"})):
                message = f"No two {name}s share '{field}', which is of type {record[field].type}."
                yield Finding(place, message, "Name a text, a number or a time.")


def _iter_unique_fields(spec: Spec, name: str, entity: Entity) -> Iterator[tuple[str, Place]]:
    for index, field in enumerate(entity.unique):
        yield field, spec.place("lifecycle", "entities", name, "unique", index)
    for field in entity.unique_for:
        yield field, spec.place("lifecycle", "entities", name, "unique_for", field, key=True)


@rule(
    "E229",
    "The record of an entity that a server keeps has something that no column holds.",
    wrong='Order: {fields: {slices: {number: 1, type: "repeated string"}}}  # and a server keeps orders',
    right="Order: {fields: {slices: {number: 1, type: json}}}",
)
def check_columns(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        if not spec.is_stored:
            continue
        is_named = entity.in_redis is not None and bool(entity.in_redis.hash)
        any_type = set[str]() if is_named else {row.type for row in record.values()}
        path = ("types", spec.proto_of[entity.record], "messages", entity.record, "fields")
        for field, row in record.items():
            simple = {*SCALARS} - {"bytes"} | {"repeated string"}
            if is_other_type(spec, row, *simple, *spec.enums, *any_type):
                message = f"A server keeps every {name}, and '{field}' is of type {row.type}."
                yield Finding(spec.place(*path, field, "type"), message, "Use a simple type, or json.")
            elif row.optional and field in (entity.key, entity.status, entity.listed_by):
                message = f"Every {name} has its '{field}', so it is never absent."
                yield Finding(spec.place(*path, field, "optional", key=True), message, "Remove 'optional'.")


@rule(
    "E230",
    "What outsiders are told of the states does not cover them, or is no value of the enum.",
    wrong="public_status: {enum: Progress, as: {NOTED: PROGRESS_WAITING}}  # and there are more states",
    right="public_status: {enum: Progress, as: {NOTED: PROGRESS_WAITING, BAKED: PROGRESS_READY}}",
    needs=("types",),
)
def check_shown_states(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        if (shown := entity.public_status) is None:
            continue
        path = ("entities", name, "public_status")
        place = spec.place("lifecycle", *path, "enum")
        yield from report_unknown(
            spec, place, f"A {name} is shown as", shown.enum, spec.enums, "which is no enum"
        )
        enum, states = spec.enums.get(shown.enum), spec.enums.get(find_status_enum(spec, entity))
        if enum is None or states is None:
            continue
        values = [value for value, row in enum.values.items() if row.number]
        wanted = [state for state, row in states.values.items() if row.number]
        for state, value in shown.as_.items():
            place = spec.place("lifecycle", *path, "as", state, key=True)
            yield from report_unknown(
                spec, place, f"A {name} has the state", state, wanted, "which is none of its states"
            )
            place = spec.place("lifecycle", *path, "as", state)
            lack = f"which is no value of {shown.enum}"
            yield from report_unknown(spec, place, f"A {name} in {state} is shown as", value, values, lack)
        left_out = [state for state in wanted if state not in shown.as_]
        if left_out and set(shown.as_) <= set(wanted):
            place = spec.place("lifecycle", *path, "as", key=True)
            message = f"'public_status' has no value for a {name} in {format_list(left_out)}."
            yield Finding(place, message, f"Add it with a value of {shown.enum}.")
