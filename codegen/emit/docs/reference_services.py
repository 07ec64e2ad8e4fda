"""Reference tables about methods, callers, errors and events."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.emit.docs.markdown import code, codes, format_duration, format_table, prose
from codegen.language.callers import Permission
from codegen.language.services import Instead, Route
from codegen.source.spec import MethodRow, Spec


def render_methods(spec: Spec, service: str) -> str:
    headers = (
        "Method",
        "HTTP",
        "Request → response",
        "Deadline",
        "Idempotent",
        "Retry",
        "Conditions",
        "Meaning",
    )
    rows = [row for row in spec.methods.values() if row.service_name == service]
    return format_table(headers, (_format_method(spec, row) for row in rows))


def _format_method(spec: Spec, row: MethodRow) -> tuple[str, ...]:
    route = row.method.route
    return (
        code(row.name),
        _format_route(route) if route else "",
        f"{code(row.request)} → {code(row.response)}",
        format_duration(row.deadline_ms),
        format_idempotency(row),
        _format_retry(row),
        ", ".join(_format_condition(spec, name) for name in row.method.raises),
        prose(row.method.doc),
    )


def _format_route(route: Route) -> str:
    default = Route.model_fields["status"].default
    others = "".join(f", {each.status} {format_instead_condition(each)}" for each in route.instead)
    return (
        code(f"{route.method} {route.path}")
        + (f", {route.status}" if route.status != default else "")
        + others
    )


def format_instead_condition(instead: Instead) -> str:
    """Format the condition of an alternative status."""
    return f"if `{instead.if_set}` is set" if instead.if_set else f"if `{instead.if_unset}` is not set"


def format_idempotency(row: MethodRow) -> str:
    """Format the idempotency of a method."""
    key = codes(row.method.idempotency.key)
    text = {
        "always": "yes",
        "when_keyed": f"when {key} is set",
        "compare_and_set": "compare and set",
        "first_write_wins": "first write wins",
        "never": "no",
    }[row.method.idempotency.class_]
    return f"{text}, by {key}" if key and row.method.idempotency.class_ != "when_keyed" else text


def _format_retry(row: MethodRow) -> str:
    if row.retry == "never":
        return "never"
    keyed = row.method.idempotency.class_ == "when_keyed"
    return f"{code(row.retry)} when keyed" if keyed else code(row.retry)


def _format_condition(spec: Spec, name: str) -> str:
    return code(name) if name in spec.hard_conditions else f"*{code(name)}*"


def render_matrix(spec: Spec) -> str:
    """Render the caller matrix: a row for each method, a column for each principal that may call."""
    callers = [name for name in spec.callers.principals if name in {each for each, _ in spec.permissions}]
    rows = [
        [code(ref), *(_format_permission(spec.permissions.get((caller, ref))) for caller in callers)]
        for ref in spec.methods
    ]
    return format_table(["Method", *callers], rows)


def has_call_modes(spec: Spec) -> bool:
    """Whether a permission has a call mode."""
    return any(permission.call for permission in spec.permissions.values())


def _format_permission(permission: Permission | None) -> str:
    if permission is None:
        return ""
    notes = []
    if permission.only:
        notes.append("only " + " and ".join(format_values(permission.only)))
    if permission.call:
        notes.append(f"as {code(permission.call)}")
    if permission.doc:
        notes.append(f"({prose(permission.doc).rstrip('.')})")
    return " ".join(["✓", *notes])


def render_principals(spec: Spec) -> str:
    rows = [
        (code(name), ", ".join(row.proof), prose(row.doc) or _describe_component(spec, name))
        for name, row in spec.callers.principals.items()
    ]
    return format_table(("Principal", "Proof", "Who"), rows)


def _describe_component(spec: Spec, name: str) -> str:
    component = spec.services.components.get(name)
    return f"The component that owns {prose(component.owns)}." if component else ""


def render_errors(spec: Spec) -> str:
    rows = [
        (
            code(name),
            row.grpc or "",
            str(row.http or ""),
            _format_advice(row.retry) + (f", after {row.retry_after_s} s" if row.retry_after_s else ""),
            code(row.message or ""),
            prose(row.doc),
        )
        for name, row in spec.hard_conditions.items()
    ]
    return format_table(("Condition", "gRPC", "HTTP", "Retry", "Message", "Meaning"), rows)


def _format_advice(retry: str | None) -> str:
    return (retry or "").replace("_", " ")


def render_soft_outcomes(spec: Spec) -> str:
    rows = [
        (code(name), " and ".join(format_values(row.soft)), prose(row.doc))
        for name, row in spec.errors.conditions.items()
        if row.soft is not None
    ]
    return format_table(("Outcome", "Shown by", "Meaning"), rows)


def render_reasons(spec: Spec) -> str:
    return format_table(
        ("Reason", "Meaning"), ((code(name), prose(text)) for name, text in spec.errors.reasons.items())
    )


def format_values(fields: Mapping[str, bool | int | str]) -> list[str]:
    """Format the values of fields, one text for each."""
    return [f"{code(field)} = {code(_format_literal(value))}" for field, value in fields.items()]


def render_events(spec: Spec) -> str:
    rows = [
        (code(name), row.level, _format_level_rule(row.always, row.first_always), prose(row.doc))
        for name, row in spec.errors.events.items()
    ]
    return format_table(("Event", "Level", "Written", "Meaning"), rows)


def _format_level_rule(always: bool, first_always: bool) -> str:
    if always:
        return "at any log level"
    return "the first at any log level" if first_always else "by log level"


def _format_literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
