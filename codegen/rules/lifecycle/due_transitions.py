"""Rules of lifecycle.yaml about due transitions, backoff, max attempts and their settings."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.rules.environment.variables import find_problem
from codegen.rules.lifecycle.entity_changes import iter_due_changes
from codegen.rules.lifecycle.record_fields import iter_records, report_unknown_field
from codegen.rules.lifecycle.references import list_holders
from codegen.rules.lookup import format_list, format_states, is_other_type
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.rules.storage.numeric_settings import iter_numeric_settings
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

_WORDS = {"int": ("int",), "number": ("int", "number")}


@rule(
    "E234",
    "A lease, a wait or a limit is set by something that is no variable with a number.",
    wrong="lease: {seconds: {env: SHOP_NAME}, …}",
    right="lease: {seconds: {env: OVEN_SECONDS}, …}",
    needs=("environment",),
    spreads=True,
)
def check_numeric_settings(spec: Spec) -> Iterator[Finding]:
    variables = spec.environment.variables
    for name, entity in spec.lifecycle.entities.items():
        for each in iter_numeric_settings(entity):
            place = spec.place_of_entity(name, *each.path)
            row, types = variables.get(each.variable), _WORDS[each.type]
            if row is None:
                known = [other for other, found in variables.items() if found.type in types]
                yield from report_unknown(spec, place, f"{each.purpose} is set by", each.variable, known)
            elif row.type not in types:
                message = f"{each.purpose} is set by {each.variable}, which is of type {row.type}."
                yield Finding(place, message, f"Name a variable of type {' or '.join(types)}.")
            elif not row.required and row.default is None:
                message = f"{each.purpose} is set by {each.variable}, which may be left unset."
                yield Finding(place, message, "Give it a default in environment.yaml.")


@rule(
    "E236",
    "An edge is driven by the clock through someone who may not do it, or who does not hold the entity.",
    wrong="serve_again: {by: [porter], due: {by: baker, …}}",
    right="serve_again: {by: [porter], due: {by: porter, …}}",
    needs=("lifecycle", "services", "callers"),
    spreads=True,
)
def check_due_components(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        # What one process owns is swept there, whichever of its components drives the clock.
        is_owned = entity.kept_in.store in ("memory", "sqlite")
        for path, edge, by, _, due in iter_due_changes(entity):
            place = spec.place("lifecycle", "entities", name, *path, "by")
            component, row = due.by, entity.transitions.get(edge)
            by_method = row is not None and (row.via or entity.driven_by)
            if component not in spec.services.components:
                known = spec.services.components
                yield from report_unknown(
                    spec, place, f"'{edge}' is driven by", component, known, "which is no component"
                )
            elif component not in by:
                message = f"'{edge}' is driven by {component}, who may not do it."
                yield Finding(place, message, f"Add {component} to 'by', or name one of {', '.join(by)}.")
            elif component not in list_holders(entity) and (by_method or not is_owned):
                message = f"'{edge}' is driven by {component}, which does not hold a {name}."
                yield Finding(place, message, f"Add {component} to 'shared_with'.")
        repairs = entity.in_s3.repairs if entity.in_s3 else None
        if repairs and repairs.by not in list_holders(entity):
            place = spec.place_of_entity(name, "s3", "repairs", "by")
            message = f"The hints at {name}s are repaired by {repairs.by}, which does not hold a {name}."
            yield Finding(place, message, f"Name one of {', '.join(list_holders(entity))}.")


@rule(
    "E235",
    "A component needs a variable of the lifecycle that it does not read.",
    wrong="OVEN_SECONDS: {type: number, read_by: [counter]}  # and the baker takes the lease",
    right="OVEN_SECONDS: {type: number, read_by: [baker]}",
    needs=("environment", "lifecycle", "services"),
)
def check_settings_read(spec: Spec) -> Iterator[Finding]:
    unread: dict[str, tuple[Path, str, list[str]]] = {}
    for name, entity in spec.lifecycle.entities.items():
        for each in iter_numeric_settings(entity):
            row = spec.environment.variables.get(each.variable)
            if row is None or row.read_by == "everyone":
                continue
            for reader in each.readers:
                if reader in spec.services.components and reader not in row.read_by:
                    found = unread.setdefault(each.variable, ((name, *each.path), each.purpose, []))
                    found[2].append(reader)
    for variable, (path, purpose, readers) in unread.items():
        place = spec.place_of_entity(*path)
        names = format_list(list(dict.fromkeys(readers)))
        message = f"{purpose} is set by {variable}, which {names} does not read."
        yield Finding(place, message, f"Add it to 'read_by' of {variable} in environment.yaml.")


@rule(
    "E237",
    "An edge is due at something that is no time.",
    wrong="serve_again: {from: COOLING, due: {at: round, …}}  # which is a number",
    right="serve_again: {from: COOLING, due: {at: again_at, …}}  # until when it waits in COOLING",
    needs=("lifecycle", "types"),
    spreads=True,
)
def check_due_times(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        for path, edge, _, _, due in iter_due_changes(entity):
            if (field := due.at) is None:
                continue
            here = (name, *path, "at")
            place = spec.place("lifecycle", "entities", *here)
            if field not in record:
                yield from report_unknown_field(spec, here, entity, field, record, f"'{edge}' is due at")
            elif is_other_type(spec, record[field], "timestamp", *_milliseconds(entity)):
                message = f"'{edge}' is due at '{field}', which is of type {record[field].type}."
                yield Finding(place, message, "Name a timestamp.")


def _milliseconds(entity: Entity) -> tuple[str, ...]:
    """The type of times in milliseconds, where the store of an entity compares them as times."""
    return ("uint64",) if entity.in_sql else ()


@rule(
    "E238",
    "Entities that fail too often take an edge that does not exist, or that they cannot take from there.",
    wrong="burn: {from: BAKING, to: COOLING, dead_letter: {transition: bake, …}}",
    right="burn: {from: BAKING, to: COOLING, dead_letter: {transition: bin, …}}  # bin leads on from COOLING",
    needs=("lifecycle",),
)
def check_dead_letter_edges(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for edge, row in entity.transitions.items():
            if row.dead_letter is None:
                continue
            place = spec.place(
                "lifecycle", "entities", name, "transitions", edge, "dead_letter", "transition"
            )
            end = entity.transitions.get(row.dead_letter.transition)
            if end is None:
                known = [each for each in entity.transitions if each != edge]
                yield from report_unknown(
                    spec, place, f"'{edge}' gives up with", row.dead_letter.transition, known
                )
                continue
            not_permitted = [actor for actor in row.by if actor not in end.by]
            # Its last failure leaves it in one state, or finds it in one of several.
            if row.to not in end.sources and not {*row.sources} <= {*end.sources}:
                leads = f"which leads on from {format_states(end.sources)}"
                message = f"'{edge}' gives up with '{row.dead_letter.transition}', {leads}."
                starts = " or ".join((row.to, format_states(row.sources)))
                yield Finding(place, message, f"Name a transition from {starts}.")
            elif not_permitted:
                names = format_list(not_permitted)
                message = f"'{edge}' gives up with '{row.dead_letter.transition}', which {names} may not do."
                yield Finding(place, message, f"Add it to 'by' of '{row.dead_letter.transition}'.")


@rule(
    "E239",
    "Entities wait, but no edge is due when the wait is over.",
    wrong="burn: {from: BAKING, to: COOLING, backoff: {until: again_at, …}}",
    right=(
        "burn: {from: BAKING, to: COOLING, backoff: {until: again_at, …}}\n"
        "serve_again: {from: COOLING, to: WAITING, due: {at: again_at, …}}"
    ),
    needs=("lifecycle", "types"),
)
def check_backoff_ends(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        due = {(state, each.due.at) for each in iter_due_changes(entity) for state in each.states}
        for edge, row in entity.transitions.items():
            claimed_by = entity.lease.oldest_by if entity.lease else None
            ends_by_itself = row.backoff and row.backoff.until == claimed_by
            if row.backoff and (row.to, row.backoff.until) not in due and not ends_by_itself:
                place = spec.place("lifecycle", "entities", name, "transitions", edge, "backoff", key=True)
                until = row.backoff.until
                message = f"'{edge}' lets a {name} wait in {row.to} until '{until}', and nothing ends that."
                yield Finding(place, message, f"Add 'due: {{at: {until}, …}}' to an edge from {row.to}.")


@rule(
    "E240",
    "An override is not told apart by a text of the record, or changes what the entity does not go by.",
    wrong="overrides: {by: burnt, for: {sponge: {LOOK_SECONDS: 3}}}",
    right="overrides: {by: order_number, for: {sponge: {MAX_BURNT: 3}}}",
    needs=("lifecycle", "types", "environment"),
)
def check_overrides(spec: Spec) -> Iterator[Finding]:
    for name, entity, record in iter_records(spec):
        if entity.overrides is None:
            continue
        here, field = (name, "overrides", "by"), entity.overrides.by
        place = spec.place("lifecycle", "entities", *here)
        if field not in record:
            yield from report_unknown_field(spec, here, entity, field, record, "Overrides are told apart by")
        elif is_other_type(spec, record[field], "string"):
            message = f"Overrides are told apart by '{field}', which is of type {record[field].type}."
            yield Finding(place, message, "Name a string.")
        yield from _check_override_values(spec, name, entity)


def _check_override_values(spec: Spec, name: str, entity: Entity) -> Iterator[Finding]:
    """Check that a wait or limit uses each overridden variable, and that its value is valid."""
    used = [
        each.variable for each in iter_numeric_settings(entity) if {"backoff", "dead_letter"} & set(each.path)
    ]
    for text, values in entity.overrides.for_.items() if entity.overrides else ():
        for variable, value in values.items():
            here = ("entities", name, "overrides", "for", text, variable)
            row = spec.environment.variables.get(variable)
            if variable not in used or row is None:
                lack = f"which no wait or limit of a {name} goes by"
                place = spec.place("lifecycle", *here, key=True)
                yield from report_unknown(
                    spec, place, f"'{text}' overrides", variable, dict.fromkeys(used), lack
                )
            elif problem := find_problem(row, value):
                message = f"'{text}' overrides {variable} with {value!r}, {problem[0]}."
                yield Finding(spec.place("lifecycle", *here), message, problem[1])
