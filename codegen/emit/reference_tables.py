"""The tables of a reference page that tell of methods, callers, errors, states and policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.emit.markdown import code, codes, duration, prose, table
from codegen.language.callers import Permission
from codegen.language.lifecycle import Backoff, Due, Entity, GiveUp, Take
from codegen.language.services import Route
from codegen.spec import MethodRow, Spec, field_enum


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
    return code(f"{route.method} {route.path}") + (f", {route.status}" if route.status != usual else "")


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


def _permission(permission: Permission | None) -> str:
    if permission is None:
        return ""
    said = []
    if permission.only:
        said.append("only " + " and ".join(_sets(permission.only)))
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
        (code(name), " and ".join(_sets(row.soft)), prose(row.doc))
        for name, row in spec.errors.conditions.items()
        if row.soft is not None
    ]
    return table(("Outcome", "Told by", "Meaning"), rows)


def reasons(spec: Spec) -> str:
    return table(
        ("Reason", "Meaning"), ((code(name), prose(text)) for name, text in spec.errors.reasons.items())
    )


def states(spec: Spec, entity: Entity) -> str:
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    rows = [
        (
            code(name),
            _kind(entity, name),
            code(entity.shown.as_.get(name, "")) if entity.shown else "",
            prose(enum.values[name].doc if enum and name in enum.values else None),
        )
        for name in state_names(spec, entity)
    ]
    return table(("State", "Kind", "Shown as", "Meaning"), rows)


def state_names(spec: Spec, entity: Entity) -> list[str]:
    """The states of an entity in the order of its enum."""
    ends = [end for row in entity.transitions.values() for end in (row.from_, row.to)]
    used = list(dict.fromkeys([entity.initial, *ends, *entity.terminal]))
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    known = [name for name in (enum.values if enum else {}) if name in used]
    return [*known, *(name for name in used if name not in known)]


def _kind(entity: Entity, state: str) -> str:
    return "initial" if state == entity.initial else "terminal" if state in entity.terminal else ""


def transitions(entity: Entity) -> str:
    rows = [
        (
            code(name),
            prose(row.trigger),
            code(row.from_),
            code(row.to),
            ", ".join(row.by),
            codes(row.when),
            codes(row.after),
            ", ".join(
                [
                    *map(code, row.stamps),
                    *_sets(row.sets),
                    *(_take(*each) for each in row.takes.items()),
                    *([f"{code(row.counts)} + 1"] if row.counts else []),
                ]
            ),
            _wait(row.waits) if row.waits else "",
            _give_up(row.gives_up) if row.gives_up else "",
            _due(row.due) if row.due else "",
            code(row.via or ""),
        )
        for name, row in entity.transitions.items()
    ]
    headers = ("Transition", "Trigger", "From", "To", "Actors", "Needs", "After", "Stamps")
    return table((*headers, "Waits", "Gives up", "Due", "Via"), rows)


def _wait(row: Backoff) -> str:
    return (
        f"until {code(row.until)}: {code(row.base)} seconds, twice as long for each further "
        f"{code(row.count)}, at most {code(row.max)}"
    )


def _give_up(row: GiveUp) -> str:
    return f"{code(row.with_)} once {code(row.count)} is above {code(row.limit)}"


def _due(row: Due) -> str:
    later = f" and {code(row.after)} seconds" if row.after else ""
    return f"at {code(row.at)}{later}; {row.by} looks every {code(row.every)} seconds"


def keeping(entity: Entity) -> Iterator[str]:
    """Where an entity is kept and who owns it for how long, a sentence each."""
    if kept := entity.kept_in:
        yield (
            f"A {kept.store} server keeps it, at {code(kept.url)} in the table {code(kept.table)}; "
            f"{code(kept.history)} has every transition that was ever made."
        )
        if kept.unique:
            yield f"No two have the same {codes(kept.unique)}."
    if lease := entity.lease:
        yield (
            f"Whoever takes it to {code(lease.state)} owns it for {code(lease.seconds)} seconds and may "
            f"renew that: {code(lease.owner)} says who, {code(lease.expires)} until when, and "
            f"{code(lease.fence)} tells one time from the next. The oldest by {code(lease.oldest_by)} "
            "goes first."
        )


def _take(field: str, take: Take) -> str:
    said = f"{code(field)} from {code(take.from_)}"
    said += f", else {code(take.default)}" if take.default else ""
    return said + (" unless it has one" if take.keep_first else "")


def _sets(fields: Mapping[str, bool | int | str]) -> list[str]:
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
