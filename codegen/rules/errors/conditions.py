"""Rules of errors.yaml: conditions, their codes and messages."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from string import Formatter
from typing import get_args

from codegen.diagnostics import Place, suggest
from codegen.language.errors import Role
from codegen.rules.lookup import find_misfit, format_list, get_fields, iter_methods
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import MethodRow, Spec

_HARD = ("grpc", "http", "retry", "message")
_TRANSIENT = (408, 413, 425, 429, 502, 503, 504)
"""HTTP statuses of transient failures."""
ROLE_ARGUMENTS: dict[Role, tuple[str, ...]] = {
    "invalid_request": ("field", "problem"),
    "illegal_transition": ("entity", "from_state", "to_state"),
    "unauthenticated": ("method", "problem"),
    "permission_denied": ("caller", "method", "problem"),
    "upstream_unavailable": ("service",),
    "deadline_exceeded": ("method",),
    "unexpected": ("correlation_id",),
    "malformed_body": ("problem",),
    "unsupported_media_type": ("media_type",),
    "body_too_large": ("limit",),
    "route_not_found": ("path",),
    "method_not_allowed": ("path", "method", "allowed"),
    "lease_lost": ("holder", "key"),
    "lease_stale": ("key",),
    "store_unavailable": (),
    "store_full": ("entity", "limit"),
    "still_held": ("entity", "key", "held"),
    "key_reused": ("entity", "key", "field"),
    "store_refused": ("problem",),
}
"""The arguments that the engine has when it raises the condition of a role."""


@rule(
    "E501",
    "No condition plays one of the engine's roles, so the engine could not say what went wrong.",
    wrong="conditions: {}",
    right="conditions:\n  unexpected: {role: unexpected, grpc: INTERNAL, …}",
    needs=("errors", "lifecycle", "services", "deployments"),
    spreads=True,
)
def check_roles_present(spec: Spec) -> Iterator[Finding]:
    for role in get_args(Role):
        reason = describe_role_need(spec, role)
        if role not in spec.roles and reason is not None:
            place = spec.place("errors", "conditions", key=True)
            message = f"No condition has the role '{role}', which the engine needs{reason}."
            yield Finding(place, message, f"Add a condition with 'role: {role}'.")


def describe_role_need(spec: Spec, role: Role) -> str | None:
    """Describe where the engine needs a role, as the end of a sentence; None if it does not."""
    listens = any(node.http for _, _, _, node in spec.nodes())
    routes = any(row.method.route for row in spec.methods.values())
    stored = [*spec.lifecycle.entities.values()]
    if role in ("route_not_found", "method_not_allowed"):
        return " where nodes take HTTP requests" if listens else None
    if role in ("malformed_body", "unsupported_media_type", "body_too_large"):
        return " where methods have routes" if listens and routes else None
    if role == "lease_lost":
        return " where entities are leased" if any(entity.lease for entity in stored) else None
    if role == "store_unavailable":
        return " where a server keeps entities" if spec.is_stored else None
    if role == "store_full":
        return " where Redis keeps entities" if any(entity.in_redis for entity in stored) else None
    if role == "lease_stale":
        return None
    if role == "store_refused":
        return " where a bucket keeps entities" if any(entity.in_s3 for entity in stored) else None
    if role == "key_reused":
        keyed = any(entity.in_s3 and entity.in_s3.keyed_by for entity in stored)
        return " where keys are made of a field" if keyed else None
    if role == "still_held":
        guarded = any(entity.delete and entity.delete.unless_holding for entity in stored)
        return " where something is not deleted while it holds leases" if guarded else None
    return ""


@rule(
    "E502",
    "Two conditions play the same role.",
    wrong="broken: {role: unexpected}\nfailed: {role: unexpected}",
    right="broken: {role: unexpected}\nfailed: {}",
)
def check_roles_unique(spec: Spec) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for name, condition in spec.errors.conditions.items():
        if condition.role and (other := first.setdefault(condition.role, name)) != name:
            place = spec.place("errors", "conditions", name, "role")
            message = f"'{name}' has the role '{condition.role}', and so has '{other}'."
            yield Finding(place, message, "Leave the role to one of them.")


@rule(
    "E503",
    "A condition that is an error lacks its code, its HTTP status, its advice on retries or its message.",
    wrong="job_not_found: {grpc: NOT_FOUND, doc: …}",
    right='job_not_found: {grpc: NOT_FOUND, http: 404, retry: never, message: "no job {job_id}", doc: …}',
    needs=("errors",),
)
def check_hard_conditions(spec: Spec) -> Iterator[Finding]:
    for name, condition in spec.hard_conditions.items():
        lacks = [key for key in _HARD if getattr(condition, key) is None]
        if lacks:
            place = spec.place("errors", "conditions", name, key=True)
            hint = "Add them, or name by 'soft' the response fields that it sets."
            yield Finding(place, f"The condition '{name}' lacks {format_list(lacks)}.", hint)


@rule(
    "E504",
    "A condition that is part of an ordinary answer has something that only errors have.",
    wrong="queue_empty: {soft: {found: false}, grpc: NOT_FOUND}",
    right="queue_empty: {soft: {found: false}}",
)
def check_soft_conditions(spec: Spec) -> Iterator[Finding]:
    for name, condition in spec.errors.conditions.items():
        if condition.soft is not None:
            extra = [key for key in (*_HARD, "role", "retry_after_s") if getattr(condition, key) is not None]
            if extra:
                place = spec.place("errors", "conditions", name, extra[0], key=True)
                message = f"The condition '{name}' is soft, so it has no {format_list(extra)}."
                yield Finding(place, message, "Remove it, or remove 'soft'.")
            elif not condition.soft:
                place = spec.place("errors", "conditions", name, "soft")
                message = f"The condition '{name}' is soft, but sets no field of a response."
                yield Finding(place, message, "Name at least one field and its value.")


@rule(
    "E505",
    "A method answers by a condition that its response has no field for.",
    wrong="queue_empty: {soft: {fond: false}}",
    right="queue_empty: {soft: {found: false}}",
)
def check_soft_fields(spec: Spec) -> Iterator[Finding]:
    for name, condition in spec.errors.conditions.items():
        for field, value in (condition.soft or {}).items():
            raising = list(_iter_raising_methods(spec, name))
            found = [list(_check_soft_field(spec, place, name, row, field, value)) for place, row in raising]
            if all(found) and found:
                # No response has a field for it, so the condition is wrong, not the methods.
                place = spec.place("errors", "conditions", name, "soft", field, key=True)
                yield Finding(place, found[0][0].message, found[0][0].hint)
            else:
                yield from (each for findings in found for each in findings)


def _iter_raising_methods(spec: Spec, condition: str) -> Iterator[tuple[Place, MethodRow]]:
    for row, path in iter_methods(spec):
        if condition in row.method.raises:
            yield spec.place("services", *path, "raises", row.method.raises.index(condition)), row


def _check_soft_field(
    spec: Spec, place: Place, condition: str, row: MethodRow, field: str, value: object
) -> Iterator[Finding]:
    fields = get_fields(spec, row.response)
    if fields is None:
        return
    if field not in fields:
        lack = f"which {row.response} does not have"
        yield from report_unknown(spec, place, f"'{condition}' sets the response field", field, fields, lack)
    elif wrong := find_misfit(spec, fields[field].type, value):
        message = f"'{condition}' sets '{field}' of {row.response}, but that {wrong.problem}."
        yield Finding(place, message, wrong.hint)


@rule(
    "E506",
    "A condition is raised by no method and plays no role.",
    wrong="job_lost: {grpc: DATA_LOSS, …}  # in no method's raises",
    right="job_lost: {grpc: DATA_LOSS, …, reserved: true}",
    needs=("errors", "services"),
)
def check_conditions_raised(spec: Spec) -> Iterator[Finding]:
    raised = {name for row in spec.methods.values() for name in row.method.raises}
    for name, condition in spec.errors.conditions.items():
        if name not in raised and condition.role is None and not condition.reserved:
            place = spec.place("errors", "conditions", name, key=True)
            message = f"No method raises '{name}'."
            yield Finding(place, message, "Add it to what a method raises, or say 'reserved: true'.")


@rule(
    "E507",
    "A message has a placeholder that cannot be filled in.",
    wrong='job_not_found: {message: "no job {job id}"}',
    right='job_not_found: {message: "no job {job_id}"}',
)
def check_messages(spec: Spec) -> Iterator[Finding]:
    for name, condition in spec.errors.conditions.items():
        place = spec.place("errors", "conditions", name, "message")
        try:
            parts = list(Formatter().parse(condition.message or ""))
        except ValueError as error:
            yield Finding(
                place, f"The message of '{name}' is no template: {error}.", "Write a brace as '{{' or '}}'."
            )
            continue
        for _, argument, form, conversion in parts:
            if argument is None:
                continue
            known = ROLE_ARGUMENTS[condition.role] if condition.role else ()
            if form or conversion or not _is_name(argument):
                message = (
                    f"The message of '{name}' has the placeholder '{{{argument}}}', which is no plain name."
                )
                yield Finding(place, message, "Use a name in lower case with underscores.")
            elif condition.role and argument not in known:
                message = (
                    f"The message of '{name}' asks for '{argument}', which the engine does not know there."
                )
                yield Finding(place, message, suggest(argument, known))


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", text) is not None and not keyword.iskeyword(text)


@rule(
    "E508",
    "A condition is reserved for later, but a method raises it.",
    wrong="capacity_exhausted: {reserved: true}  # and EnqueueJob raises it",
    right="capacity_exhausted: {}  # and EnqueueJob raises it",
)
def check_reserved_conditions(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        for index, name in enumerate(row.method.raises):
            condition = spec.errors.conditions.get(name)
            if condition and condition.reserved:
                place = spec.place("services", *path, "raises", index)
                message = f"{row.name} raises '{name}', which is reserved for later."
                yield Finding(place, message, f"Remove 'reserved' from '{name}' in errors.yaml.")


@rule(
    "E509",
    "A code of a failed call is both passed through and mapped to unavailable.",
    wrong="upstream: {pass_through: [UNAVAILABLE], unavailable: [UNAVAILABLE]}",
    right="upstream: {pass_through: [NOT_FOUND], unavailable: [UNAVAILABLE]}",
)
def check_upstream_codes(spec: Spec) -> Iterator[Finding]:
    for index, code in enumerate(spec.errors.upstream.pass_through):
        if code in spec.errors.upstream.unavailable:
            place = spec.place("errors", "upstream", "pass_through", index)
            yield Finding(place, f"{code} is in 'pass_through' and in 'unavailable'.", "Remove one of them.")


@rule(
    "E511",
    "A condition says when to try again, but it is none that goes away by waiting.",
    wrong="job_not_found: {http: 404, retry: never, retry_after_s: 1, …}",
    right="locker_full: {http: 429, retry: with_backoff, retry_after_s: 1, …}",
)
def check_retry_after(spec: Spec) -> Iterator[Finding]:
    for name, condition in spec.hard_conditions.items():
        if condition.retry_after_s is None or condition.http is None:
            continue
        place = spec.place("errors", "conditions", name, "retry_after_s", key=True)
        if condition.retry == "never":
            message = f"The condition '{name}' is never retried, but says when to try again."
            yield Finding(place, message, "Remove 'retry_after_s', or say another 'retry'.")
        elif condition.http not in _TRANSIENT:
            message = (
                f"The condition '{name}' has the HTTP status {condition.http}, which does not pass by itself."
            )
            yield Finding(place, message, f"It is for {', '.join(map(str, _TRANSIENT))}.")


@rule(
    "E510",
    "An event says both that it is always written and that only its first one is.",
    wrong="heartbeat_attempt: {level: DEBUG, always: true, first_always: true}",
    right="heartbeat_attempt: {level: DEBUG, first_always: true}",
)
def check_event_flags(spec: Spec) -> Iterator[Finding]:
    for name, event in spec.errors.events.items():
        if event.always and event.first_always:
            place = spec.place("errors", "events", name, "first_always", key=True)
            message = f"The event '{name}' is always written, so its first one is, too."
            yield Finding(place, message, "Remove 'always' or 'first_always'.")
