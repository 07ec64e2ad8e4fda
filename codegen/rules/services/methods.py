"""Rules of services.yaml about the contract of each method."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.rules.lookup import get_fields, is_other_type, iter_methods
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import MethodRow, Spec, type_ref
from codegen.source.yaml_reader import Path

_KEYED = ("when_keyed", "compare_and_set", "first_write_wins")


@rule(
    "E307",
    "A method names a retry profile that does not exist.",
    wrong="GetJobStatus: {retry: standart}",
    right="GetJobStatus: {retry: standard}",
)
def check_retry_profiles_exist(spec: Spec) -> Iterator[Finding]:
    known = ["never", *spec.system.policies.retry]
    place = spec.place("services", "defaults", "retry")
    yield from report_unknown(
        spec, place, "Methods retry by the profile", spec.services.defaults.retry, known
    )
    for row, path in iter_methods(spec):
        if row.method.retry is not None:
            place = spec.place("services", *path, "retry")
            yield from report_unknown(
                spec, place, f"{row.name} is retried by the profile", row.method.retry, known
            )


@rule(
    "E308",
    "A method is retried although each call has an effect of its own.",
    wrong="DequeueJob: {idempotency: {class: never}, retry: standard}",
    right="DequeueJob: {idempotency: {class: never}, retry: never}",
)
def check_retries_idempotent(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        if row.retry in spec.system.policies.retry and row.method.idempotency.class_ == "never":
            is_explicit = row.method.retry is not None
            place = spec.place("services", *path, "retry" if is_explicit else "idempotency")
            origin = "" if is_explicit else " by default"
            message = f"{row.name} is retried{origin}, and a second call would have a second effect."
            yield Finding(place, message, "Say 'retry: never', or make it idempotent and say by which key.")


@rule(
    "E309",
    "The key that makes two calls the same is not in the request, or is not given.",
    wrong="SubmitJob: {idempotency: {class: when_keyed, key: [request_id]}}",
    right="SubmitJob: {idempotency: {class: when_keyed, key: [client_request_id]}}",
)
def check_idempotency_keys(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        class_, key = row.method.idempotency.class_, row.method.idempotency.key
        if class_ in _KEYED and not key and "key" not in spec.dropped:
            place = spec.place("services", *path, "idempotency")
            hint = "Add 'key: […]' with the fields of the request that make two calls the same."
            yield Finding(place, f"{row.name} is idempotent by '{class_}', but has no key.", hint)
        if class_ == "never" and key:
            place = spec.place("services", *path, "idempotency", "key")
            yield Finding(place, f"{row.name} is never idempotent, but has a key.", "Remove the key.")
        named_elsewhere = {*_list_route_fields(row), *_list_drive_fields(row)}
        for index, name in enumerate(key):
            if name not in named_elsewhere:
                yield from _report_unknown_field(spec, row, name, (*path, "idempotency", "key", index))


@rule(
    "E310",
    "A method names a pagination policy that does not exist.",
    wrong="ListJobs: {pagination: ofset}",
    right="ListJobs: {pagination: offset}",
)
def check_pagination_exists(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        if policy := row.method.pagination:
            place = spec.place("services", *path, "pagination")
            known = spec.system.policies.pagination
            yield from report_unknown(
                spec, place, f"{row.name} lists under the pagination policy", policy, known
            )


@rule(
    "E314",
    "A method raises a condition that is not declared.",
    wrong="GetJobStatus: {raises: [no_such_job]}",
    right="GetJobStatus: {raises: [job_not_found]}",
    spreads=True,
)
def check_conditions_exist(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        for index, name in enumerate(row.method.raises):
            place = spec.place("services", *path, "raises", index)
            yield from report_unknown(
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
def check_size_limits(spec: Spec) -> Iterator[Finding]:
    limits = spec.system.policies.limits
    named: list[tuple[Path, str, str | None]] = [
        ((*path, "max_request"), row.name, row.method.max_request) for row, path in iter_methods(spec)
    ]
    named.append((("defaults", "max_request"), "a method", spec.services.defaults.max_request))
    for path, name, limit in named:
        if limit is None:
            continue
        place = spec.place("services", *path)
        yield from report_unknown(
            spec, place, f"The request of {name} is bounded by the limit", limit, limits
        )
        if limit in limits and limits[limit].unit != "bytes":
            message = f"The request of {name} is bounded by '{limit}', which is in {limits[limit].unit}."
            yield Finding(place, message, "Name a limit in bytes.")


@rule(
    "E316",
    "A method that moves an entity does not name the fields of its request that hold the two states.",
    wrong="TransitionJobStatus: {drives: {entity: job, from: reason, to: to_status}}",
    right="TransitionJobStatus: {drives: {entity: job, from: expected_from_status, to: to_status}}",
)
def check_drives(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        if (drives := row.method.drives) is None:
            continue
        place = spec.place("services", *path, "drives", "entity")
        subject = f"{row.name} moves the entity"
        yield from report_unknown(spec, place, subject, drives.entity, spec.lifecycle.entities)
        fields, states = get_fields(spec, row.request) or {}, _find_states_enum(spec, drives.entity)
        for key, name in (("from", drives.from_), ("to", drives.to)):
            if name not in fields:
                yield from _report_unknown_field(spec, row, name, (*path, "drives", key))
            elif states and is_other_type(spec, fields[name], states):
                actual = fields[name].type
                message = f"'{name}' is of type {actual}; the states of a {drives.entity} are {states}."
                right = [each for each, field in fields.items() if field.type == states]
                hint = f"Name {' or '.join(right)}." if right else ""
                yield Finding(spec.place("services", *path, "drives", key), message, hint)


def _find_states_enum(spec: Spec, entity_name: str) -> str:
    """Find the enum of an entity's states; empty if it is not defined."""
    entity = spec.lifecycle.entities.get(entity_name)
    field = (get_fields(spec, entity.record) or {}).get(entity.status) if entity else None
    return field.type if field and field.type in spec.enums else ""


@rule(
    "E317",
    "The field that names the caller is not a string of the request.",
    wrong="TransitionJobStatus: {names_caller: who}",
    right="TransitionJobStatus: {names_caller: actor}",
)
def check_caller_fields(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        fields = get_fields(spec, row.request)
        name = row.method.names_caller
        if name is None or fields is None:
            continue
        if name not in fields:
            yield from _report_unknown_field(spec, row, name, (*path, "names_caller"))
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
def check_routes_unique(spec: Spec) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    for row, path in iter_methods(spec):
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
def check_route_fields(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        fields = get_fields(spec, row.request)
        if row.method.route is None or fields is None:
            continue
        place = spec.place("services", *path, "route", "path")
        text = row.method.route.path
        if re.search(r"[{}]", re.sub(r"(?<=/)\{[a-z0-9_]+\}(?=/|:|$)", "", text)):
            message = f"The path '{text}' has braces that are not around the name of one whole part."
            yield Finding(place, message, "Write it as '/things/{thing_id}'.")
            continue
        for name in _list_route_fields(row):
            if name not in fields:
                yield from _report_unknown_field(spec, row, name, (*path, "route", "path"))
            elif type_ref(fields[name].type).kind != "single" or fields[name].type in spec.messages:
                message = f"'{name}' is of type {fields[name].type}, which does not fit into a path."
                yield Finding(place, message, "Name a field with a simple value.")


def _list_route_fields(row: MethodRow) -> list[str]:
    return re.findall(r"\{([^{}]*)\}", row.method.route.path) if row.method.route else []


def _list_drive_fields(row: MethodRow) -> list[str]:
    return [row.method.drives.from_, row.method.drives.to] if row.method.drives else []


def _report_unknown_field(spec: Spec, row: MethodRow, name: str, path: Path) -> Iterator[Finding]:
    if (fields := get_fields(spec, row.request)) is None:
        return
    place = spec.place("services", *path)
    yield from report_unknown(
        spec, place, f"{row.name} names the field", name, fields, f"which {row.request} does not have"
    )
