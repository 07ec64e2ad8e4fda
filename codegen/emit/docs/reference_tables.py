"""The tables of a reference page that tell of methods, callers, errors and events."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.emit.docs.markdown import code, codes, duration, prose, table
from codegen.language.callers import Permission
from codegen.language.services import Instead, Route
from codegen.source.spec import MethodRow, Spec


def methods(spec: Spec, service: str) -> str:
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
    return table(headers, (_method(spec, row) for row in rows))


def _method(spec: Spec, row: MethodRow) -> tuple[str, ...]:
    route = row.method.route
    return (
        code(row.name),
        _route(route) if route else "",
        f"{code(row.request)} → {code(row.response)}",
        duration(row.deadline_ms),
        idempotency(row),
        _retry(row),
        ", ".join(_condition(spec, name) for name in row.method.raises),
        prose(row.method.doc),
    )


def _route(route: Route) -> str:
    usual = Route.model_fields["status"].default
    others = "".join(f", {each.status} {told(each)}" for each in route.instead)
    return (
        code(f"{route.method} {route.path}") + (f", {route.status}" if route.status != usual else "") + others
    )


def told(instead: Instead) -> str:
    """When a method answers with another status, in words."""
    return f"if `{instead.if_set}` is set" if instead.if_set else f"if `{instead.if_unset}` is not set"


def idempotency(row: MethodRow) -> str:
    """What happens on a repeat, in words."""
    key = codes(row.method.idempotency.key)
    said = {
        "always": "yes",
        "when_keyed": f"when {key} is set",
        "compare_and_set": "compare and set",
        "first_write_wins": "first write wins",
        "never": "no",
    }[row.method.idempotency.class_]
    return f"{said}, by {key}" if key and row.method.idempotency.class_ != "when_keyed" else said


def _retry(row: MethodRow) -> str:
    if row.retry == "never":
        return "never"
    keyed = row.method.idempotency.class_ == "when_keyed"
    return f"{code(row.retry)} when keyed" if keyed else code(row.retry)


def _condition(spec: Spec, name: str) -> str:
    return code(name) if name in spec.hard_conditions else f"*{code(name)}*"


def matrix(spec: Spec) -> str:
    """Who may call what: a row for each method, a column for each principal that calls at all."""
    callers = [name for name in spec.callers.principals if name in {each for each, _ in spec.permissions}]
    rows = [
        [code(ref), *(_permission(spec.permissions.get((caller, ref))) for caller in callers)]
        for ref in spec.methods
    ]
    return table(["Method", *callers], rows)


def has_call_modes(spec: Spec) -> bool:
    """Whether a permission says how the call is made."""
    return any(permission.call for permission in spec.permissions.values())


def _permission(permission: Permission | None) -> str:
    if permission is None:
        return ""
    said = []
    if permission.only:
        said.append("only " + " and ".join(sets(permission.only)))
    if permission.call:
        said.append(f"as {code(permission.call)}")
    if permission.doc:
        said.append(f"({prose(permission.doc).rstrip('.')})")
    return " ".join(["✓", *said])


def principals(spec: Spec) -> str:
    rows = [
        (code(name), ", ".join(row.proof), prose(row.doc) or _role(spec, name))
        for name, row in spec.callers.principals.items()
    ]
    return table(("Principal", "Proof", "Who"), rows)


def _role(spec: Spec, name: str) -> str:
    component = spec.services.components.get(name)
    return f"The component that owns {prose(component.owns)}." if component else ""


def errors(spec: Spec) -> str:
    rows = [
        (
            code(name),
            row.grpc or "",
            str(row.http or ""),
            _advice(row.retry) + (f", after {row.retry_after_s} s" if row.retry_after_s else ""),
            code(row.message or ""),
            prose(row.doc),
        )
        for name, row in spec.hard_conditions.items()
    ]
    return table(("Condition", "gRPC", "HTTP", "Retry", "Message", "Meaning"), rows)


def _advice(retry: str | None) -> str:
    return (retry or "").replace("_", " ")


def soft_outcomes(spec: Spec) -> str:
    rows = [
        (code(name), " and ".join(sets(row.soft)), prose(row.doc))
        for name, row in spec.errors.conditions.items()
        if row.soft is not None
    ]
    return table(("Outcome", "Told by", "Meaning"), rows)


def reasons(spec: Spec) -> str:
    return table(
        ("Reason", "Meaning"), ((code(name), prose(text)) for name, text in spec.errors.reasons.items())
    )


def sets(fields: Mapping[str, bool | int | str]) -> list[str]:
    """What fields are set to, each by itself."""
    return [f"{code(field)} = {code(_literal(value))}" for field, value in fields.items()]


def events(spec: Spec) -> str:
    rows = [
        (code(name), row.level, _written(row.always, row.first_always), prose(row.doc))
        for name, row in spec.errors.events.items()
    ]
    return table(("Event", "Level", "Written", "Meaning"), rows)


def _written(always: bool, first_always: bool) -> str:
    if always:
        return "at any log level"
    return "the first at any log level" if first_always else "by log level"


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
