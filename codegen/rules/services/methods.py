"""Rules of services.yaml about what each method says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.rules.lookup import fields_of, is_other_type, method_paths
from codegen.rules.rule import Finding, rule, unknown
from codegen.source.spec import MethodRow, Spec, type_ref
from codegen.source.yaml_reader import Path

_KEYED = ("when_keyed", "compare_and_set", "first_write_wins")


@rule(
    "E307",
    "A method names a retry profile that does not exist.",
    wrong="GetJobStatus: {retry: standart}",
    right="GetJobStatus: {retry: standard}",
)
def unknown_retry(spec: Spec) -> Iterator[Finding]:
    known = ["never", *spec.system.policies.retry]
    place = spec.place("services", "defaults", "retry")
    yield from unknown(spec, place, "Methods retry by the profile", spec.services.defaults.retry, known)
    for row, path in method_paths(spec):
        if row.method.retry is not None:
            place = spec.place("services", *path, "retry")
            yield from unknown(spec, place, f"{row.name} is retried by the profile", row.method.retry, known)


@rule(
    "E308",
    "A method is retried although each call has an effect of its own.",
    wrong="DequeueJob: {idempotency: {class: never}, retry: standard}",
    right="DequeueJob: {idempotency: {class: never}, retry: never}",
)
def retried_but_not_idempotent(spec: Spec) -> Iterator[Finding]:
    for row, path in method_paths(spec):
        if row.retry in spec.system.policies.retry and row.method.idempotency.class_ == "never":
            said = row.method.retry is not None
            place = spec.place("services", *path, "retry" if said else "idempotency")
            origin = "" if said else " by default"
            message = f"{row.name} is retried{origin}, and a second call would have a second effect."
            yield Finding(place, message, "Say 'retry: never', or make it idempotent and say by which key.")


@rule(
    "E309",
    "The key that makes two calls the same is not in the request, or is not given.",
    wrong="SubmitJob: {idempotency: {class: when_keyed, key: [request_id]}}",
    right="SubmitJob: {idempotency: {class: when_keyed, key: [client_request_id]}}",
)
def bad_key(spec: Spec) -> Iterator[Finding]:
    for row, path in method_paths(spec):
        class_, key = row.method.idempotency.class_, row.method.idempotency.key
        if class_ in _KEYED and not key and "key" not in spec.dropped:
            place = spec.place("services", *path, "idempotency")
            hint = "Add 'key: […]' with the fields of the request that make two calls the same."
            yield Finding(place, f"{row.name} is idempotent by '{class_}', but has no key.", hint)
        if class_ == "never" and key:
            place = spec.place("services", *path, "idempotency", "key")
            yield Finding(place, f"{row.name} is never idempotent, but has a key.", "Remove the key.")
        named_elsewhere = {*_route_fields(row), *_drive_fields(row)}
        for index, name in enumerate(key):
            if name not in named_elsewhere:
                yield from _unknown_field(spec, row, name, (*path, "idempotency", "key", index))


@rule(
    "E310",
    "A method names a pagination policy that does not exist.",
    wrong="ListJobs: {pagination: ofset}",
    right="ListJobs: {pagination: offset}",
)
def unknown_pagination(spec: Spec) -> Iterator[Finding]:
    for row, path in method_paths(spec):
        if policy := row.method.pagination:
            place = spec.place("services", *path, "pagination")
            known = spec.system.policies.pagination
            yield from unknown(spec, place, f"{row.name} lists under the pagination policy", policy, known)


@rule(
    "E314",
    "A method raises a condition that is not declared.",
    wrong="GetJobStatus: {raises: [no_such_job]}",
    right="GetJobStatus: {raises: [job_not_found]}",
    spreads=True,
)
def unknown_condition(spec: Spec) -> Iterator[Finding]:
    for row, path in method_paths(spec):
        for index, name in enumerate(row.method.raises):
            place = spec.place("services", *path, "raises", index)
            yield from unknown(
                spec,
                place,
                f"{row.name} raises",
                name,
                spec.errors.conditions,
                "which errors.yaml does not have",
            )


@rule(
    "E315",
    "The size of a request is bounded by a limit that does not exist or does not count bytes.",
    wrong="StoreResult: {max_request: message_byte}",
    right="StoreResult: {max_request: message_bytes}",
)
def bad_size_limit(spec: Spec) -> Iterator[Finding]:
    limits = spec.system.policies.limits
    named: list[tuple[Path, str, str | None]] = [
        ((*path, "max_request"), row.name, row.method.max_request) for row, path in method_paths(spec)
    ]
    named.append((("defaults", "max_request"), "a method", spec.services.defaults.max_request))
    for path, name, limit in named:
        if limit is None:
            continue
        place = spec.place("services", *path)
        yield from unknown(spec, place, f"The request of {name} is bounded by the limit", limit, limits)
        if limit in limits and limits[limit].unit != "bytes":
            message = f"The request of {name} is bounded by '{limit}', which is in {limits[limit].unit}."
            yield Finding(place, message, "Name a limit in bytes.")


@rule(
    "E316",
    "A method that moves an entity does not name the fields of its request that hold the two states.",
    wrong="TransitionJobStatus: {drives: {entity: job, from: reason, to: to_status}}",
    right="TransitionJobStatus: {drives: {entity: job, from: expected_from_status, to: to_status}}",
)
def bad_drive(spec: Spec) -> Iterator[Finding]:
    for row, path in method_paths(spec):
        if (drives := row.method.drives) is None:
            continue
        place = spec.place("services", *path, "drives", "entity")
        subject = f"{row.name} moves the entity"
        yield from unknown(spec, place, subject, drives.entity, spec.lifecycle.entities)
        fields, states = fields_of(spec, row.request) or {}, _states_type(spec, drives.entity)
        for key, name in (("from", drives.from_), ("to", drives.to)):
            if name not in fields:
                yield from _unknown_field(spec, row, name, (*path, "drives", key))
            elif states and is_other_type(spec, fields[name], states):
                actual = fields[name].type
                message = f"'{name}' is of type {actual}; the states of a {drives.entity} are {states}."
                right = [each for each, field in fields.items() if field.type == states]
                hint = f"Name {' or '.join(right)}." if right else ""
                yield Finding(spec.place("services", *path, "drives", key), message, hint)


def _states_type(spec: Spec, entity_name: str) -> str:
    """The enum of an entity's states, or nothing if it is not known."""
    entity = spec.lifecycle.entities.get(entity_name)
    field = (fields_of(spec, entity.record) or {}).get(entity.status) if entity else None
    return field.type if field and field.type in spec.enums else ""


@rule(
    "E317",
    "The field that names the caller is not a string of the request.",
    wrong="TransitionJobStatus: {names_caller: who}",
    right="TransitionJobStatus: {names_caller: actor}",
)
def bad_caller_field(spec: Spec) -> Iterator[Finding]:
    for row, path in method_paths(spec):
        fields = fields_of(spec, row.request)
        name = row.method.names_caller
        if name is None or fields is None:
            continue
        if name not in fields:
            yield from _unknown_field(spec, row, name, (*path, "names_caller"))
        elif is_other_type(spec, fields[name], "string"):
            message = f"The caller of {row.name} is named in '{name}', which is of type {fields[name].type}."
            yield Finding(spec.place("services", *path, "names_caller"), message, "Name a string.")


@rule(
    "E318",
    "Two methods have the same HTTP route.",
    wrong=(
        'GetJob: {route: {method: GET, path: "/jobs/{job_id}"}}\n'
        'FindJob: {route: {method: GET, path: "/jobs/{name}"}}'
    ),
    right=(
        'GetJob: {route: {method: GET, path: "/jobs/{job_id}"}}\n'
        'FindJob: {route: {method: GET, path: "/names/{name}"}}'
    ),
)
def route_twice(spec: Spec) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    for row, path in method_paths(spec):
        if route := row.method.route:
            shape = (route.method, re.sub(r"\{[^{}]*\}", "{}", route.path))
            if (other := first.setdefault(shape, row.ref)) != row.ref:
                message = f"{row.name} is found at {route.method} {route.path}, and so is {other}."
                yield Finding(
                    spec.place("services", *path, "route"), message, "Give it another path or method."
                )


@rule(
    "E319",
    "A placeholder in the path of a route is no simple field of the request.",
    wrong='GetJobStatus: {route: {method: GET, path: "/jobs/{id}"}}',
    right='GetJobStatus: {route: {method: GET, path: "/jobs/{job_id}"}}',
)
def bad_route(spec: Spec) -> Iterator[Finding]:
    for row, path in method_paths(spec):
        fields = fields_of(spec, row.request)
        if row.method.route is None or fields is None:
            continue
        place = spec.place("services", *path, "route", "path")
        text = row.method.route.path
        if re.search(r"[{}]", re.sub(r"(?<=/)\{[a-z0-9_]+\}(?=/|:|$)", "", text)):
            message = f"The path '{text}' has braces that are not around the name of one whole part."
            yield Finding(place, message, "Write it as '/things/{thing_id}'.")
            continue
        for name in _route_fields(row):
            if name not in fields:
                yield from _unknown_field(spec, row, name, (*path, "route", "path"))
            elif type_ref(fields[name].type).kind != "single" or fields[name].type in spec.messages:
                message = f"'{name}' is of type {fields[name].type}, which does not fit into a path."
                yield Finding(place, message, "Name a field with a simple value.")


def _route_fields(row: MethodRow) -> list[str]:
    return re.findall(r"\{([^{}]*)\}", row.method.route.path) if row.method.route else []


def _drive_fields(row: MethodRow) -> list[str]:
    return [row.method.drives.from_, row.method.drives.to] if row.method.drives else []


def _unknown_field(spec: Spec, row: MethodRow, name: str, path: Path) -> Iterator[Finding]:
    if (fields := fields_of(spec, row.request)) is None:
        return
    place = spec.place("services", *path)
    yield from unknown(
        spec, place, f"{row.name} names the field", name, fields, f"which {row.request} does not have"
    )
