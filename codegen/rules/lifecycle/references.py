"""Rules of lifecycle.yaml: the states, actors, methods and policies that an entity names."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.rules.lookup import get_fields
from codegen.rules.rule import Finding, report_unknown, report_unknown_method, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path


@rule(
    "E203",
    "Something names a state that the entity does not have.",
    wrong="dispatch: {from: QUEUD, to: RUNNING}",
    right="dispatch: {from: QUEUED, to: RUNNING}",
    spreads=True,
)
def check_states_exist(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        enum = spec.enums.get(find_status_enum(spec, entity))
        if enum is None:
            continue
        states = [value for value, row in enum.values.items() if row.number]
        for path, state in _iter_named_states(entity):
            place = spec.place_of_entity(name, *path)
            yield from report_unknown(
                spec, place, f"A {name} has the state", state, states, "which is none of its states"
            )


@rule(
    "E204",
    "Something is done by someone who is no principal.",
    wrong="dispatch: {by: [cordinator]}",
    right="dispatch: {by: [vault]}",
    spreads=True,
)
def check_actors_exist(spec: Spec) -> Iterator[Finding]:
    for path, what, actors in _iter_actions(spec):
        for index, actor in enumerate(actors):
            place = spec.place("lifecycle", *path, "by", index)
            yield from report_unknown(
                spec, place, f"'{what}' is done by", actor, spec.callers.principals, "who is no principal"
            )


@rule(
    "E205",
    "The lifecycle names a method that no service has.",
    wrong="driven_by: JobInternalService.Transition",
    right="driven_by: JobInternalService.TransitionJobStatus",
    spreads=True,
)
def check_methods_exist(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for path, ref in (*_list_drivers(entity), *_iter_preceding_calls(entity)):
            place = spec.place("lifecycle", "entities", name, *path)
            subject = f"'{path[1]}' comes after" if path[-2:-1] == ("after",) else f"A {name} is moved by"
            yield from report_unknown_method(spec, place, subject, ref)


@rule(
    "E206",
    "An entity is held by something that is no component.",
    wrong="job: {held_by: jobs}",
    right="job: {held_by: job}",
    spreads=True,
)
def check_holders_exist(spec: Spec) -> Iterator[Finding]:
    known, lack = spec.services.components, "which is no component"
    for name, entity in spec.lifecycle.entities.items():
        place = spec.place("lifecycle", "entities", name, "held_by")
        yield from report_unknown(spec, place, f"A {name} is held by", entity.held_by, known, lack)
        for index, other in enumerate(entity.shared_with):
            place = spec.place("lifecycle", "entities", name, "shared_with", index)
            yield from report_unknown(spec, place, f"A {name} is shared with", other, known, lack)
            if other == entity.held_by:
                yield Finding(place, f"A {name} is shared with {other}, which holds it anyway.", "Remove it.")


@rule(
    "E207",
    "Nobody does a transition.",
    wrong="dispatch: {by: []}",
    right="dispatch: {by: [vault]}",
)
def check_actors_present(spec: Spec) -> Iterator[Finding]:
    for path, what, actors in _iter_actions(spec):
        if not actors:
            place = spec.place("lifecycle", *path, "by")
            yield Finding(place, f"Nobody does '{what}'.", "Name at least one principal.")


@rule(
    "E219",
    "The method that moves an entity does not say so, or says it of another entity.",
    wrong="# driven_by: JobInternalService.TransitionJobStatus\nTransitionJobStatus: {}",
    right="TransitionJobStatus: {drives: {entity: job, from: expected_from_status, to: to_status}}",
    needs=("services",),
)
def check_drivers_declared(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for path, ref in _list_drivers(entity):
            drives = spec.methods[ref].method.drives if ref in spec.methods else None
            place = spec.place("lifecycle", "entities", name, *path)
            if drives is None and path == ("driven_by",) and ref in spec.methods:
                message = f"A {name} is driven by {ref}, which does not say that it drives one."
                yield Finding(
                    place,
                    message,
                    f"Add 'drives: {{entity: {name}, from: …, to: …}}' to it in services.yaml.",
                )
            elif drives is not None and drives.entity != name and drives.entity in spec.lifecycle.entities:
                yield Finding(place, f"A {name} is moved by {ref}, which drives a {drives.entity}.")


@rule(
    "E220",
    "An entity is moved by a method of a component that does not hold it.",
    wrong="job: {held_by: queue, driven_by: JobInternalService.TransitionJobStatus}",
    right="job: {held_by: job, driven_by: JobInternalService.TransitionJobStatus}",
    needs=("services",),
)
def check_driver_component(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        foreign = {
            ref: path
            for path, ref in reversed(_list_drivers(entity))
            if ref in spec.methods and spec.methods[ref].component not in ("", *list_holders(entity))
        }
        if entity.held_by not in spec.services.components:
            continue
        if entity.driven_by and entity.driven_by in foreign:
            foreign = {entity.driven_by: ("held_by",)}
        for ref, path in foreign.items():
            place = spec.place("lifecycle", "entities", name, *path)
            server = spec.methods[ref].component
            message = f"A {name} is held by {entity.held_by}, but {ref} is served by {server}."
            yield Finding(place, message, "Only the component that holds an entity can move it.")


@rule(
    "E222",
    "An entity is kept under a policy that does not exist, or that is not for terminal records.",
    wrong="job: {retention: job_record}",
    right="job: {retention: job_records}",
)
def check_retention(spec: Spec) -> Iterator[Finding]:
    policies = spec.system.policies.retention
    for name, entity in spec.lifecycle.entities.items():
        if entity.retention:
            place = spec.place("lifecycle", "entities", name, "retention")
            yield from report_unknown(
                spec, place, f"A {name} is kept under the policy", entity.retention, policies
            )
            policy = policies.get(entity.retention)
            if policy and (policy.of, policy.unit) != ("terminal", "records"):
                message = f"A {name} is kept under '{entity.retention}', which is not for terminal records."
                yield Finding(place, message, "Name a policy with 'of: terminal' and 'unit: records'.")


def list_holders(entity: Entity) -> tuple[str, ...]:
    """List the components that apply the transitions of an entity."""
    return (entity.held_by, *entity.shared_with)


def find_status_enum(spec: Spec, entity: Entity) -> str:
    """Find the enum of an entity's states; empty if the record or the field is not defined."""
    field = (get_fields(spec, entity.record) or {}).get(entity.status)
    return field.type if field else ""


def _iter_named_states(entity: Entity) -> Iterator[tuple[Path, str]]:
    yield ("initial",), entity.initial
    yield from ((("create", "to", index), state) for index, state in enumerate(entity.create.to))
    yield from ((("terminal", index), state) for index, state in enumerate(entity.terminal))
    yield from ((("resting", index), state) for index, state in enumerate(entity.resting))
    yield from ((("failed", index), state) for index, state in enumerate(entity.failed))
    for index, state in enumerate(entity.delete.from_ if entity.delete else ()):
        yield ("delete", "from", index), state
    if entity.lease:
        yield ("lease", "state"), entity.lease.state
    for name, edge in entity.transitions.items():
        for index, state in enumerate(edge.sources):
            yield ("transitions", name, "from", *([index] if len(edge.sources) > 1 else [])), state
        yield ("transitions", name, "to"), edge.to
    for name, update in entity.updates.items():
        yield from ((("updates", name, "in", index), state) for index, state in enumerate(update.in_))
    indexed: list[tuple[Path, tuple[str, ...]]] = [
        (("indexes", name, "in"), row.in_) for name, row in entity.indexes.items()
    ]
    hints = entity.in_s3.indexes if entity.in_s3 else {}
    indexed += [(("s3", "indexes", name, "in"), row.in_) for name, row in hints.items()]
    for path, states in indexed:
        yield from (((*path, index), state) for index, state in enumerate(states))
    if entity.in_s3 and entity.in_s3.retires:
        for index, state in enumerate(entity.in_s3.retires.in_):
            yield ("s3", "retires", "in", index), state


def _iter_actions(spec: Spec) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    """Iterate over creations, deletions, transitions and updates: path, name and actors."""
    for name, entity in spec.lifecycle.entities.items():
        yield ("entities", name, "create"), "create", entity.create.by
        if entity.delete:
            yield ("entities", name, "delete"), "delete", entity.delete.by
        for edge_name, edge in entity.transitions.items():
            yield ("entities", name, "transitions", edge_name), edge_name, edge.by
        for update_name, update in entity.updates.items():
            yield ("entities", name, "updates", update_name), update_name, update.by


def _list_drivers(entity: Entity) -> list[tuple[Path, str]]:
    """List the methods that create, delete and drive an entity."""
    named: list[tuple[Path, str | None]] = [
        (("driven_by",), entity.driven_by),
        (("create", "via"), entity.create.via),
        (("delete", "via"), entity.delete.via if entity.delete else None),
        *((("transitions", name, "via"), edge.via) for name, edge in entity.transitions.items()),
    ]
    return [(path, ref) for path, ref in named if ref]


def _iter_preceding_calls(entity: Entity) -> Iterator[tuple[Path, str]]:
    for name, edge in entity.transitions.items():
        yield from ((("transitions", name, "after", index), ref) for index, ref in enumerate(edge.after))
