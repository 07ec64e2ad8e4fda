"""Rules about required calls: the caller matrix must permit what lifecycle and methods need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codegen.rules.lookup import format_list, iter_methods, list_external_principals
from codegen.rules.rule import Finding, report_unknown_method, rule
from codegen.source.spec import MethodRow, Spec
from codegen.source.yaml_reader import Path

_FILES = ("callers", "lifecycle", "services")


class RequiredCall(NamedTuple):
    """A call that the matrix must permit: caller, method, and what in the spec requires it."""

    caller: str
    ref: str
    file: str
    path: Path
    reason: str


@rule(
    "E213",
    "An actor may not call the method through which it moves the entity.",
    wrong="# lifecycle.yaml\ndispatch: {by: [worker]}\n# callers.yaml\nworker: {}",
    right=(
        "# lifecycle.yaml\n"
        "dispatch: {by: [vault]}\n"
        "# callers.yaml\n"
        "vault: {JobInternalService: [TransitionJobStatus]}"
    ),
    needs=_FILES,
)
def check_actor_permissions(spec: Spec) -> Iterator[Finding]:
    reasons: dict[tuple[str, str], list[RequiredCall]] = {}
    for need in _iter_transition_calls(spec):
        if not _is_permitted(spec, need):
            reasons.setdefault((need.caller, need.ref), []).append(need)
    for (caller, ref), needs in reasons.items():
        what = format_list([need.reason for need in needs])
        message = f"{caller} does {what} through {ref}, which it may not call."
        yield Finding(spec.place(needs[0].file, *needs[0].path), message, _format_permit_hint(ref))


@rule(
    "E215",
    "An actor may not make a call that comes before its transition.",
    wrong=(
        "# lifecycle.yaml\n"
        "complete: {by: [vault], after: [ResultInternalService.StoreResult]}\n"
        "# callers.yaml\n"
        "vault: {}"
    ),
    right=(
        "# lifecycle.yaml\n"
        "complete: {by: [vault], after: [ResultInternalService.StoreResult]}\n"
        "# callers.yaml\n"
        "vault: {ResultInternalService: [StoreResult]}"
    ),
    needs=_FILES,
)
def check_preceding_call_permissions(spec: Spec) -> Iterator[Finding]:
    reported = {(need.caller, need.ref) for need in _iter_transition_calls(spec)}
    for need in _iter_preceding_calls(spec):
        if not _is_permitted(spec, need) and (need.caller, need.ref) not in reported:
            reported.add((need.caller, need.ref))
            message = f"{need.caller} calls {need.ref} before '{need.reason}', which it may not."
            yield Finding(spec.place(need.file, *need.path), message, _format_permit_hint(need.ref))


@rule(
    "E268",
    "No engine can keep the order of the calls before a transition.",
    wrong=(
        "# types.yaml\n"
        "PingRequest: {fields: {}}\n"
        "# lifecycle.yaml\n"
        "complete: {by: [vault], after: [ResultInternalService.Ping]}"
    ),
    right=(
        "# types.yaml\n"
        "StoreResultRequest: {fields: {job_id: {number: 1, type: string}}}\n"
        "# lifecycle.yaml\n"
        "complete: {by: [vault], after: [ResultInternalService.StoreResult]}"
    ),
    needs=(*_FILES, "types"),
)
def check_call_order(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for edge_name, edge in entity.transitions.items():
            if edge.after:
                path: Path = ("entities", name, "transitions", edge_name)
                for steps, message, hint in _find_order_problems(spec, name, edge_name):
                    yield Finding(spec.place("lifecycle", *path, *steps), message, hint)


def _find_order_problems(spec: Spec, name: str, edge_name: str) -> Iterator[tuple[Path, str, str]]:
    """Find why the order of calls before a transition cannot be enforced: path, message and hint."""
    entity = spec.lifecycle.entities[name]
    edge, key = entity.transitions[edge_name], entity.key
    driver = edge.via or entity.driven_by
    if driver is None:
        message = f"'{edge_name}' comes after calls, and no method drives it; its actors have the store."
        yield ("after",), message, "Remove 'after', or name the method that drives it."
        return
    if driver in spec.methods and not _has_field(spec, key, spec.methods[driver].request):
        message = f"'{edge_name}' comes after calls, and the request of {driver} has no {key}."
        yield ("after",), message, f"Add {key} to the request, or remove 'after'."
    for index, actor in enumerate(edge.by):
        if actor in spec.callers.principals and actor not in spec.services.components:
            message = f"'{edge_name}' comes after calls of {actor}, which is no component."
            yield ("by", index), message, "Remove 'after', or leave the transition to components."
    for index, ref in enumerate(edge.after):
        row = spec.methods.get(ref)
        if row is not None and not _has_field(spec, key, row.request, row.response):
            message = f"'{edge_name}' comes after {ref}, which has no {key} in its request or answer."
            yield ("after", index), message, f"Name a method that is about one {name}."


def _has_field(spec: Spec, key: str, *messages: str) -> bool:
    return any(each not in spec.messages or key in spec.messages[each].fields for each in messages)


@rule(
    "E214",
    "The condition of a permission excludes a transition of the actor.",
    wrong=(
        "# withdraw: {from: QUEUED, to: CANCELED, by: [desk]}\n"
        "- TransitionJobStatus: {only: {to_status: FAILED}}"
    ),
    right=(
        "# withdraw: {from: QUEUED, to: CANCELED, by: [desk]}\n"
        "- TransitionJobStatus: {only: {to_status: CANCELED}}"
    ),
    needs=_FILES,
)
def check_transition_conditions(spec: Spec) -> Iterator[Finding]:
    excluded: dict[tuple[str, str, str], list[tuple[Path, str]]] = {}
    for name, entity in spec.lifecycle.entities.items():
        for edge_name, edge in entity.transitions.items():
            ref = edge.via or entity.driven_by or ""
            drives = spec.methods[ref].method.drives if ref in spec.methods else None
            states = {drives.from_: edge.sources, drives.to: (edge.to,)} if drives else {}
            for index, actor in enumerate(edge.by):
                permission = spec.permissions.get((actor, ref))
                for field, only in permission.only.items() if permission else ():
                    if only not in states.get(field, (only,)):
                        path: Path = ("entities", name, "transitions", edge_name, "by", index)
                        case = (actor, ref, f"{field} {only}")
                        excluded.setdefault(case, []).append((path, edge_name))
    for (actor, ref, condition), edges in excluded.items():
        what = format_list([edge_name for _, edge_name in edges])
        message = f"{actor} does {what} through {ref}, but may call it only with {condition}."
        hint = "Change the condition in callers.yaml, or name another actor."
        yield Finding(spec.place("lifecycle", *edges[0][0]), message, hint)


@rule(
    "E311",
    "A method calls something that no service has.",
    wrong="GetJobStatus: {calls: [JobInternalService.GetRecord]}",
    right="GetJobStatus: {calls: [JobInternalService.GetJobRecord]}",
    spreads=True,
)
def check_calls_exist(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        for index, ref in enumerate(row.method.calls):
            yield from report_unknown_method(
                spec, spec.place("services", *path, "calls", index), f"{row.name} calls", ref
            )


@rule(
    "E312",
    "A method calls something that its component may not call.",
    wrong=(
        "# services.yaml\nGetJobStatus: {calls: [JobInternalService.GetJobRecord]}\n# callers.yaml\ndesk: {}"
    ),
    right=(
        "# services.yaml\n"
        "GetJobStatus: {calls: [JobInternalService.GetJobRecord]}\n"
        "# callers.yaml\n"
        "desk: {JobInternalService: [GetJobRecord]}"
    ),
    needs=_FILES,
)
def check_call_permissions(spec: Spec) -> Iterator[Finding]:
    reported = {
        (need.caller, need.ref) for need in (*_iter_transition_calls(spec), *_iter_preceding_calls(spec))
    }
    for need in _iter_handler_calls(spec):
        if not _is_permitted(spec, need) and (need.caller, need.ref) not in reported:
            reported.add((need.caller, need.ref))
            message = f"{need.reason} calls {need.ref}, which {need.caller} may not call."
            yield Finding(spec.place(need.file, *need.path), message, _format_permit_hint(need.ref))


@rule(
    "E313",
    "A method has less time than a single call that it makes.",
    wrong="GetJobStatus: {deadline_ms: 500, calls: [JobInternalService.GetJobRecord]}  # which has 1000",
    right="GetJobStatus: {deadline_ms: 1500, calls: [JobInternalService.GetJobRecord]}  # which has 1000",
)
def check_deadlines(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        for ref in row.method.calls:
            called = spec.methods.get(ref)
            if called and called.deadline_ms > row.deadline_ms and not _has_fresh_deadline(spec, row, ref):
                is_explicit = row.method.deadline_ms is not None
                place = spec.place(
                    "services", *path, *(["deadline_ms"] if is_explicit else []), key=not is_explicit
                )
                message = (
                    f"{row.name} has {row.deadline_ms} ms, less than the {called.deadline_ms} ms "
                    f"of {ref}, which it calls."
                )
                yield Finding(place, message, f"Give it at least {called.deadline_ms} ms.")
                break


def _has_fresh_deadline(spec: Spec, row: MethodRow, ref: str) -> bool:
    permission = spec.permissions.get((row.component, ref))
    mode = spec.system.policies.calls.get(permission.call or "") if permission else None
    return mode is not None and mode.deadline == "fresh"


@rule(
    "E407",
    "No principal may call a method.",
    wrong="# callers.yaml has no GetResult\nResultInternalService: {methods: {GetResult: {}}}",
    right="desk:\n  ResultInternalService: [GetResult]",
    needs=_FILES,
    spreads=True,
)
def check_methods_callable(spec: Spec) -> Iterator[Finding]:
    callable_ = {ref for _, ref in spec.permissions} | {need.ref for need in list_required_calls(spec)}
    for row, path in iter_methods(spec):
        if row.ref not in callable_:
            place = spec.place("services", *path, key=True)
            yield Finding(
                place,
                f"No principal may call {row.ref}.",
                "Permit it to someone in callers.yaml, or remove it.",
            )


@rule(
    "E412",
    "A principal that is no component may call nothing, so it is of no use.",
    wrong="principals: {client: {proof: [anonymous]}}\nmay_call: {}",
    right=("principals: {client: {proof: [anonymous]}}\nmay_call:\n  client: {DeskService: [SubmitJob]}"),
    severity="warning",
    needs=("callers", "services", "system"),
)
def check_principals_used(spec: Spec) -> Iterator[Finding]:
    callers = {principal for principal, _ in spec.permissions}
    for name in list_external_principals(spec):
        if name not in callers and not (spec.system.page and name == spec.system.page.principal):
            place = spec.place("callers", "principals", name, key=True)
            yield Finding(
                place, f"{name} is no component and may call nothing.", "Permit it something or remove it."
            )


def list_required_calls(spec: Spec) -> list[RequiredCall]:
    """List every call that the lifecycle and the methods require."""
    return [*_iter_transition_calls(spec), *_iter_preceding_calls(spec), *_iter_handler_calls(spec)]


def _iter_transition_calls(spec: Spec) -> Iterator[RequiredCall]:
    """Iterate over the calls that drive transitions; an actor with the store itself needs none."""
    for name, entity in spec.lifecycle.entities.items():
        path: Path = ("entities", name)
        acts: list[tuple[Path, str, tuple[str, ...], str | None]] = [
            ((*path, "create"), "create", entity.create.by, entity.create.via)
        ]
        if entity.delete:
            acts.append(((*path, "delete"), "delete", entity.delete.by, entity.delete.via))
        for edge_name, edge in entity.transitions.items():
            where = (*path, "transitions", edge_name)
            acts.append((where, edge_name, edge.by, edge.via or entity.driven_by))
        for where, what, actors, ref in acts:
            for index, actor in enumerate(actors if ref else ()):
                yield RequiredCall(actor, ref or "", "lifecycle", (*where, "by", index), what)


def _iter_preceding_calls(spec: Spec) -> Iterator[RequiredCall]:
    for name, entity in spec.lifecycle.entities.items():
        for edge_name, edge in entity.transitions.items():
            for index, ref in enumerate(edge.after if edge.via or entity.driven_by else ()):
                where = ("entities", name, "transitions", edge_name, "after", index)
                yield from (RequiredCall(actor, ref, "lifecycle", where, edge_name) for actor in edge.by)


def _iter_handler_calls(spec: Spec) -> Iterator[RequiredCall]:
    for row, path in iter_methods(spec):
        if row.component:
            for index, ref in enumerate(row.method.calls):
                yield RequiredCall(row.component, ref, "services", (*path, "calls", index), row.name)


def _is_permitted(spec: Spec, need: RequiredCall) -> bool:
    """Whether the matrix permits a call; an undefined name counts as permitted, since another rule has it."""
    undefined = need.ref not in spec.methods or need.caller not in spec.callers.principals
    return undefined or (need.caller, need.ref) in spec.permissions


def _format_permit_hint(ref: str) -> str:
    service, _, method = ref.partition(".")
    return f"Permit it in callers.yaml under {service}: [{method}]."
