"""Rules of lifecycle.yaml about entities that a server keeps, and how outsiders are told of their states."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.rules.lifecycle import holders, status_type
from codegen.rules.lookup import is_other_type, listed
from codegen.rules.records import records_of, unknown_field
from codegen.rules.rule import Finding, rule, unknown
from codegen.source import Path
from codegen.spec import SCALARS, Spec

_OF_SERVERS = ("shared_with", "lease")
_EDGES_OF_SERVERS = ("counts", "waits", "gives_up", "due")


@rule(
    "E224",
    "An entity uses a word that the store it is kept in does not know.",
    wrong="parcel: {lease: {state: BAKING, …}}  # and no kept_in",
    right="order: {kept_in: {store: postgres, …}, lease: {state: BAKING, …}}",
    needs=("lifecycle",),
    spreads=True,
)
def word_of_another_store(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        if entity.kept_in is not None:
            if entity.retention:
                place = spec.place("lifecycle", "entities", name, "retention", key=True)
                message = f"A server keeps every {name}, so no policy bounds how many."
                yield Finding(place, message, "Remove 'retention'; a method may delete what is old.")
            continue
        words: list[Path] = [(word,) for word in _OF_SERVERS if getattr(entity, word)]
        words += [
            ("transitions", edge, word)
            for edge, row in entity.transitions.items()
            for word in _EDGES_OF_SERVERS
            if getattr(row, word)
        ]
        for path in words[:1]:
            place = spec.place("lifecycle", "entities", name, *path, key=True)
            message = f"A {name} lives in the memory of {entity.held_by}, where '{path[-1]}' means nothing."
            yield Finding(place, message, "Say by 'kept_in' which server keeps it, or remove the word.")


@rule(
    "E225",
    "Something is done without a method by someone who does not have the store.",
    wrong="note: {by: [client]}  # and neither via nor driven_by",
    right="note: {by: [counter]}  # which holds the entity",
    needs=("lifecycle", "services"),
)
def actor_without_store(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        acts: list[tuple[Path, str, tuple[str, ...], str | None]] = [
            (("create",), "create", entity.create.by, entity.create.via)
        ]
        acts += [
            (("transitions", edge), edge, row.by, row.via or entity.driven_by)
            for edge, row in entity.transitions.items()
        ]
        acts += [(("shifts", shift), shift, row.by, None) for shift, row in entity.shifts.items()]
        strangers: dict[str, list[tuple[Path, str]]] = {}
        for path, what, actors, via in acts:
            for index, actor in enumerate(actors if via is None else ()):
                if actor in spec.callers.principals and not _has_store(spec, entity, actor):
                    strangers.setdefault(actor, []).append(((*path, "by", index), what))
        for actor, deeds in strangers.items():
            place = spec.place("lifecycle", "entities", name, *deeds[0][0])
            what = listed([each for _, each in deeds])
            message = f"{actor} does {what} through no method and does not hold a {name}."
            yield Finding(
                place, message, "Name a method by 'via', or let it hold the entity by 'shared_with'."
            )


def _has_store(spec: Spec, entity: Entity, actor: str) -> bool:
    """Whether an actor holds an entity, or calls a component that does, which acts for it in its store."""
    called = {
        spec.methods[ref].component for who, ref in spec.permissions if who == actor and ref in spec.methods
    }
    return actor in holders(entity) or (
        entity.kept_in is not None and entity.in_postgres is None and not called.isdisjoint(holders(entity))
    )


@rule(
    "E226",
    "The server of an entity is found by something that is no URL, or that a holder does not read.",
    wrong="kept_in: {store: postgres, url: SHOP_PORT, table: orders, history: order_changes}",
    right="kept_in: {store: postgres, url: SHOP_DATABASE, table: orders, history: order_changes}",
    needs=("environment", "services", "lifecycle"),
    spreads=True,
)
def bad_server(spec: Spec) -> Iterator[Finding]:
    variables = spec.environment.variables
    for name, entity in spec.lifecycle.entities.items():
        if (kept := entity.kept_in) is None:
            continue
        # A server is found by its URL, a file by its path.
        word, what = ("path", "file") if entity.in_sqlite else ("url", "server")
        kind = "data_path" if entity.in_sqlite else "url"
        variable = str(getattr(kept, word))
        place, row = spec.place("lifecycle", "entities", name, "kept_in", word), variables.get(variable)
        if row is None:
            known = [other for other, found in variables.items() if found.type == kind]
            yield from unknown(spec, place, f"The {what} of a {name} is at", variable, known)
            continue
        deaf = [each for each in holders(entity) if row.read_by != "everyone" and each not in row.read_by]
        if row.type != kind:
            message = f"The {what} of a {name} is at {variable}, which is of type {row.type}."
            yield Finding(place, message, f"Name a variable of type {kind}.")
        elif deaf:
            message = f"The {what} of a {name} is at {variable}, which {listed(deaf)} does not read."
            yield Finding(place, message, f"Add it to 'read_by' of {variable} in environment.yaml.")
        elif not row.required and row.default is None:
            message = f"The {what} of a {name} is at {variable}, which may be left unset."
            yield Finding(place, message, f"Say 'required: true' of {variable} in environment.yaml.")


@rule(
    "E227",
    "Two things are kept in the same table.",
    wrong="kept_in: {table: orders, history: orders}",
    right="kept_in: {table: orders, history: order_changes}",
)
def table_twice(spec: Spec) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for name, entity in spec.lifecycle.entities.items():
        for word in ("table", "history") if entity.in_postgres else ():
            table, what = getattr(entity.in_postgres, word), f"the {word} of a {name}"
            if (other := first.setdefault(table, what)) != what:
                place = spec.place("lifecycle", "entities", name, "kept_in", word)
                yield Finding(
                    place, f"'{table}' is {what}, and it is {other} already.", "Choose another name."
                )


@rule(
    "E228",
    "What no two entities may share is no field of the record that is always set and can be compared.",
    wrong="kept_in: {unique: [recipe]}  # which is json",
    right="kept_in: {unique: [number]}",
)
def bad_unique(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in records_of(spec):
        for index, field in enumerate(entity.in_postgres.unique if entity.in_postgres else ()):
            path = (name, "kept_in", "unique", index)
            place = spec.place("lifecycle", "entities", *path)
            if field not in record:
                yield from unknown_field(spec, path, entity, field, record, f"No two {name}s share")
            elif is_other_type(spec, record[field], *(set(SCALARS) - {"json", "bytes"})):
                message = f"No two {name}s share '{field}', which is of type {record[field].type}."
                yield Finding(place, message, "Name a text, a number or a time.")
            elif record[field].optional:
                message = f"No two {name}s share '{field}', which may be absent."
                yield Finding(place, message, f"Remove 'optional' from '{field}' in types.yaml.")


@rule(
    "E229",
    "The record of an entity that a server keeps has something that no column holds.",
    wrong='Order: {fields: {slices: {number: 1, type: "repeated string"}}}  # and a server keeps orders',
    right="Order: {fields: {slices: {number: 1, type: json}}}",
)
def bad_column(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in records_of(spec):
        if entity.kept_in is None:
            continue
        path = ("types", spec.proto_of[entity.record], "messages", entity.record, "fields")
        for field, row in record.items():
            lists = ("repeated string",) if entity.in_redis else ()
            if is_other_type(spec, row, *SCALARS, *spec.enums, *lists):
                message = f"A server keeps every {name}, and '{field}' is of type {row.type}."
                yield Finding(spec.place(*path, field, "type"), message, "Use a simple type, or json.")
            elif row.optional and field in (entity.key, entity.status, entity.listed_by):
                message = f"Every {name} has its '{field}', so it is never absent."
                yield Finding(spec.place(*path, field, "optional", key=True), message, "Remove 'optional'.")


@rule(
    "E230",
    "What outsiders are told of the states does not cover them, or is no value of the enum.",
    wrong="shown: {enum: Progress, as: {NOTED: PROGRESS_WAITING}}  # and there are more states",
    right="shown: {enum: Progress, as: {NOTED: PROGRESS_WAITING, BAKED: PROGRESS_READY}}",
    needs=("types",),
)
def bad_showing(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        if (shown := entity.shown) is None:
            continue
        path = ("entities", name, "shown")
        place = spec.place("lifecycle", *path, "enum")
        yield from unknown(spec, place, f"A {name} is shown as", shown.enum, spec.enums, "which is no enum")
        enum, states = spec.enums.get(shown.enum), spec.enums.get(status_type(spec, entity))
        if enum is None or states is None:
            continue
        values = [value for value, row in enum.values.items() if row.number]
        wanted = [state for state, row in states.values.items() if row.number]
        for state, value in shown.as_.items():
            place = spec.place("lifecycle", *path, "as", state, key=True)
            yield from unknown(
                spec, place, f"A {name} has the state", state, wanted, "which is none of its states"
            )
            place = spec.place("lifecycle", *path, "as", state)
            lack = f"which is no value of {shown.enum}"
            yield from unknown(spec, place, f"A {name} in {state} is shown as", value, values, lack)
        left_out = [state for state in wanted if state not in shown.as_]
        if left_out and set(shown.as_) <= set(wanted):
            place = spec.place("lifecycle", *path, "as", key=True)
            message = f"Nobody is told of a {name} in {listed(left_out)}."
            yield Finding(place, message, f"Add it with a value of {shown.enum}.")
