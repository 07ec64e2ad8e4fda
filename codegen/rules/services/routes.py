"""Rules of services.yaml about HTTP routes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.language.services import Route
from codegen.rules.lookup import get_fields, is_other_type, iter_methods
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import MethodRow, Spec, type_ref
from codegen.source.yaml_reader import Path

RESERVED_PATHS = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs")
"""Paths that every listener serves itself."""
_WITHOUT_BODY = ("GET", "DELETE")


@rule(
    "E330",
    "A method has a path at which every node that takes HTTP requests has something of its own.",
    wrong="GetHealth: {route: {method: GET, path: /healthz}}",
    right="GetHealth: {route: {method: GET, path: /shop/health}}",
)
def check_paths_free(spec: Spec) -> Iterator[Finding]:
    for row, route, path in _iter_routes(spec):
        if route.path in RESERVED_PATHS:
            message = f"{row.name} is found at {route.path}, where each node has a page of its own."
            yield Finding(spec.place("services", *path, "path"), message, "Give it another path.")


@rule(
    "E331",
    "A field stands in the path that may be absent, that is no short text there, or that is there twice.",
    wrong='ListJobs: {route: {method: GET, path: "/jobs/since/{created_from}"}}',
    right="ListJobs: {route: {method: GET, path: /jobs}}  # and created_from in the query",
)
def check_path_fields(spec: Spec) -> Iterator[Finding]:
    for row, route, path in _iter_routes(spec):
        fields = get_fields(spec, row.request) or {}
        names = re.findall(r"\{([a-z0-9_]+)\}", route.path)
        place = spec.place("services", *path, "path")
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                yield Finding(place, f"The path of {row.name} has '{name}' twice.", "Name it once.")
            elif name in fields and fields[name].optional:
                message = f"'{name}' of {row.request} is optional, but a path always has all of its parts."
                yield Finding(place, message, "Leave it to the query or the body.")
            elif name in fields and fields[name].type in ("timestamp", "json"):
                message = f"'{name}' is of type {fields[name].type}, which does not fit into a path."
                yield Finding(place, message, "Leave it to the query or the body.")


@rule(
    "E332",
    "A request without a body has a field that does not fit into a query.",
    wrong="FindJobs: {request: Filter, route: {method: GET, path: /jobs}}  # Filter has a map",
    right="FindJobs: {request: Filter, route: {method: POST, path: /jobs/search}}",
)
def check_query_fields(spec: Spec) -> Iterator[Finding]:
    for row, route, path in _iter_routes(spec):
        if route.method not in _WITHOUT_BODY and route.body is None:
            continue
        for name, field in (get_fields(spec, row.request) or {}).items():
            kind, inner, _ = type_ref(field.type)
            if f"{{{name}}}" in route.path or not (kind == "map" or inner in spec.messages):
                continue
            if route.body is not None:
                message = f"The body of {row.name} is '{route.body}', but '{name}' is of type {field.type}."
                yield Finding(spec.place("services", *path, "body"), message, "No query has room for it.")
            else:
                message = f"{row.name} has no body, but '{name}' is of type {field.type}, which needs one."
                yield Finding(spec.place("services", *path, "method"), message, "Make it a POST.")


@rule(
    "E333",
    "A method answers with a status that has no body, but its answer has fields.",
    wrong="PurgeJobs: {route: {method: POST, path: /purge, status: 204}}  # the response has a count",
    right="PurgeJobs: {route: {method: POST, path: /purge, status: 200}}",
)
def check_answer_body(spec: Spec) -> Iterator[Finding]:
    for row, route, path in _iter_routes(spec):
        if route.status in (204, 205) and get_fields(spec, row.response):
            message = (
                f"{row.name} answers {route.status}, which has no body for the fields of {row.response}."
            )
            yield Finding(
                spec.place("services", *path, "status"), message, "Say 200, or another with a body."
            )


@rule(
    "E335",
    "A method answers with another status for a field that its answer does not have, or for none or two.",
    wrong="SubmitJob: {route: {method: POST, path: /jobs, instead: [{status: 200, if_set: known}]}}",
    right="SubmitJob: {route: {method: POST, path: /jobs, instead: [{status: 200, if_set: repeated}]}}",
)
def check_alternative_statuses(spec: Spec) -> Iterator[Finding]:
    for row, route, path in _iter_routes(spec):
        fields = get_fields(spec, row.response)
        for index, each in enumerate(route.instead):
            here = (*path, "instead", index)
            words = [word for word in ("if_set", "if_unset") if getattr(each, word)]
            if len(words) != 1:
                message = f"{row.name} answers {each.status} under no condition, or under two."
                hint = "Say 'if_set' or 'if_unset' with a field of the answer."
                yield Finding(spec.place("services", *here), message, hint)
            elif fields is not None:
                place = spec.place("services", *here, words[0])
                subject = f"{row.name} answers {each.status} by"
                lack = f"which {row.response} does not have"
                yield from report_unknown(spec, place, subject, getattr(each, words[0]), fields, lack)


@rule(
    "E336",
    "The body of a request or answer is a field that there is not, that is no bytes, or that has no place.",
    wrong='PutPicture: {route: {method: PUT, path: "/pictures/{name}", body: name}}',
    right='PutPicture: {route: {method: PUT, path: "/pictures/{name}", body: content}}',
)
def check_body_fields(spec: Spec) -> Iterator[Finding]:
    for row, route, path in _iter_routes(spec):
        for word, what, message_name in (("body", "body", row.request), ("answer", "answer", row.response)):
            field, fields = getattr(route, word), get_fields(spec, message_name)
            if field is None or fields is None:
                continue
            place, subject = spec.place("services", *path, word), f"The {what} of {row.name} is"
            if field not in fields:
                yield from report_unknown(
                    spec, place, subject, field, fields, f"which {message_name} does not have"
                )
            elif is_other_type(spec, fields[field], "bytes"):
                text = f"{subject} '{field}', which is of type {fields[field].type}."
                yield Finding(place, text, "Name a field of bytes.")
            elif word == "body" and route.method in _WITHOUT_BODY:
                text = f"{subject} '{field}', but a {route.method} has none."
                yield Finding(place, text, "Make it a POST or a PUT.")
            elif f"{{{field}}}" in route.path and word == "body":
                yield Finding(place, f"{subject} '{field}', which is in the path already.", "Name another.")


@rule(
    "E334",
    "A method is read by GET although a repeated call is not the same as one.",
    wrong="CollectParcel: {idempotency: {class: never}, route: {method: GET, path: /collect}}",
    right="CollectParcel: {idempotency: {class: never}, route: {method: POST, path: /collect}}",
)
def check_get_idempotent(spec: Spec) -> Iterator[Finding]:
    for row, route, path in _iter_routes(spec):
        class_ = row.method.idempotency.class_
        if route.method == "GET" and class_ != "always":
            message = (
                f"{row.name} is found by GET, which anyone may repeat, but it is idempotent by '{class_}'."
            )
            yield Finding(spec.place("services", *path, "method"), message, "Make it a POST.")


def _iter_routes(spec: Spec) -> Iterator[tuple[MethodRow, Route, Path]]:
    for row, path in iter_methods(spec):
        if row.method.route is not None:
            yield row, row.method.route, (*path, "route")
