"""OpenAPI 3.1 of a system whose methods have routes, and the page that shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from codegen.emit.artefact import Artefact, format_stamp, render_template
from codegen.emit.http import openapi_content
from codegen.emit.http.openapi_schemas import Schema, Schemas, example, is_needed
from codegen.emit.http.openapi_security import callers, listed, schemes, security
from codegen.language.errors import Condition, Role
from codegen.language.services import Route
from codegen.source.spec import MethodRow, Spec, type_ref

WITH_BODY = ("POST", "PUT", "PATCH")
_PLACEHOLDER = re.compile(r"\{([a-z0-9_]+)\}")
_ALWAYS: tuple[Role, ...] = ("unauthenticated", "permission_denied", "deadline_exceeded", "unexpected")
_OF_BODIES: tuple[Role, ...] = ("malformed_body", "unsupported_media_type", "body_too_large")
_FIELD: Schema = {"type": "string", "description": "The field of the request that it is about."}
_DETAILS: Schema = {
    "type": "object",
    "description": "All that is known of it.",
    "properties": {"field": _FIELD},
}
_OF_TRANSPORT = {
    408: ("REQUEST_TIMEOUT", "The body did not come in time.", "the body did not come within 20 s"),
    431: ("REQUEST_HEADER_FIELDS_TOO_LARGE", "Too many headers.", "the headers have more than 32768 bytes"),
}
"""What is answered before there is a method to ask, and so by no condition of a spec."""
_HEADERS: dict[str, Schema] = {
    "Cache-Control": {"description": "Answers are never kept.", "schema": {"const": "no-store"}}
}


def emit(spec: Spec) -> Iterator[Artefact]:
    if routed(spec):
        text = json.dumps(document(spec), indent=2, sort_keys=True, ensure_ascii=False)
        yield Artefact(f"generated/{spec.name}/openapi.json", f"{text}\n")
        yield Artefact(f"generated/{spec.name}/docs.html", render_template("http/docs.html.j2", spec))


def routed(spec: Spec) -> list[tuple[MethodRow, Route]]:
    """The methods that have routes."""
    return [(row, row.method.route) for row in spec.methods.values() if row.method.route is not None]


def document(spec: Spec) -> Schema:
    """The whole description as plain data."""
    schemas = Schemas(spec)
    for row, _ in routed(spec):
        schemas.note(row.request, "request")
        schemas.note(row.response, "response")
    paths: dict[str, Schema] = {}
    for row, route in routed(spec):
        path = _PLACEHOLDER.sub(lambda found: f"{{{spec.json_name(found[1])}}}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(spec, schemas, row, route)
    services = dict.fromkeys(row.service_name for row, _ in routed(spec))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": spec.system.title,
            "version": str(spec.system.version),
            "description": spec.system.summary,
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": spec.services.services[name].doc} for name in services],
        "paths": paths,
        "components": {
            "schemas": {**schemas.components, "Error": _error(spec)},
            "securitySchemes": schemes(spec),
        },
        "x-generated": format_stamp(spec),
    }


def _operation(spec: Spec, schemas: Schemas, row: MethodRow, route: Route) -> Schema:
    fields = spec.messages[row.request].fields
    in_path = _PLACEHOLDER.findall(route.path)
    others = [name for name in fields if name not in (*in_path, route.body)]
    takes_body = route.method in WITH_BODY and route.body is None and bool(others)
    parameters = [_parameter(spec, schemas, row.request, name, "path") for name in in_path]
    if not takes_body:
        parameters += [_parameter(spec, schemas, row.request, name, "query") for name in others]
    if route.answer is not None:
        parameters += openapi_content.ASKED
    found: Schema = {
        "operationId": row.name,
        "summary": row.method.doc,
        "description": f"May be called by {listed(callers(spec, row))}.",
        "tags": [row.service_name],
        "security": security(spec, row),
        "responses": _responses(spec, schemas, row, route, takes_body=takes_body),
    }
    if parameters:
        found["parameters"] = parameters
    if route.body is not None:
        found["requestBody"] = openapi_content.upload(fields[route.body].doc)
    if takes_body:
        schema = (
            schemas.message(row.request, "request", in_path)
            if in_path
            else schemas.ref(row.request, "request")
        )
        content = {"schema": schema, "example": example(schema, schemas.components)}
        found["requestBody"] = {"required": True, "content": {"application/json": content}}
    return found


def _parameter(spec: Spec, schemas: Schemas, message: str, name: str, place: str) -> Schema:
    row = spec.messages[message].fields[name]
    schema = schemas.field(row.model_copy(update={"optional": False}), "request")
    text = schema.pop("description", None)
    if place == "path" and schema.get("type") == "string":
        schema["minLength"] = max(1, schema.get("minLength", 1))
    found: Schema = {
        "name": spec.json_name(name),
        "in": place,
        "required": place == "path" or is_needed(spec, row),
        "schema": schema,
    }
    return found | ({"description": text} if text else {})


def _responses(
    spec: Spec, schemas: Schemas, row: MethodRow, route: Route, *, takes_body: bool
) -> dict[str, Schema]:
    if route.answer is not None:
        found = openapi_content.download(row.method.doc)
    else:
        statuses = (route.status, *(each.status for each in route.instead))
        found = {str(status): _success(spec, schemas, row, status) for status in statuses}
    refused: dict[int, dict[str, Condition]] = {}
    for name in _conditions(spec, row, takes_body=takes_body):
        condition = spec.errors.conditions[name]
        if condition.http is not None:
            refused.setdefault(condition.http, {})[name] = condition
    for status, conditions in refused.items():
        found[str(status)] = _refusal(spec, status, conditions)
    for status, (code, doc, message) in _OF_TRANSPORT.items():
        if takes_body or route.body is not None or status != 408:
            told = _error_body(spec, code, message, {})
            found.setdefault(str(status), _error_answer({code: doc}, {code: told}, _HEADERS))
    return found


def _success(spec: Spec, schemas: Schemas, row: MethodRow, status: int) -> Schema:
    found: Schema = {"description": row.method.doc, "headers": _HEADERS}
    if status != 204:
        schema = schemas.ref(row.response, "response")
        content = {"schema": schema, "example": example(schema, schemas.components)}
        found["content"] = {"application/json": content}
        if links := _links(spec, row):
            found["links"] = links
    return found


def _conditions(spec: Spec, row: MethodRow, *, takes_body: bool) -> dict[str, None]:
    """Everything that a call can be answered instead of a success, each once."""
    roles = [*_ALWAYS, *(_OF_BODIES if takes_body else ())]
    if spec.messages[row.request].fields:
        roles.append("invalid_request")
    if row.method.drives:
        roles.append("illegal_transition")
    if row.method.calls:
        roles.append("upstream_unavailable")
    if any(row.component in (each.held_by, *each.shared_with) for each in _kept(spec)):
        roles.append("store_unavailable")
    names = [spec.roles[role] for role in roles if role in spec.roles]
    return dict.fromkeys((*names, *row.method.raises, *_passed_through(spec, row)))


def _kept(spec: Spec) -> list[Any]:
    return [each for each in spec.lifecycle.entities.values() if each.kept_in is not None]


def _passed_through(spec: Spec, row: MethodRow) -> Iterator[str]:
    """Conditions of the methods that it calls, as far as they reach its own caller as they are."""
    waiting, seen = list(row.method.calls), set[str]()
    while waiting:
        ref = waiting.pop()
        if ref in seen or ref not in spec.methods:
            continue
        seen.add(ref)
        called = spec.methods[ref].method
        waiting += called.calls
        names = [*called.raises, *([spec.roles["illegal_transition"]] if called.drives else ())]
        yield from (
            name for name in names if spec.errors.conditions[name].grpc in spec.errors.upstream.pass_through
        )


def _refusal(spec: Spec, status: int, conditions: dict[str, Condition]) -> Schema:
    headers = dict(_HEADERS)
    if any(row.retry_after_s for row in conditions.values()):
        headers["Retry-After"] = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
    if status == 401:
        headers["WWW-Authenticate"] = {"description": "How to prove oneself.", "schema": {"const": "Bearer"}}
    docs = {name.upper(): row.doc for name, row in conditions.items()}
    return _error_answer(
        docs, {name.upper(): _error_example(spec, name, row) for name, row in conditions.items()}, headers
    )


def _error_answer(docs: dict[str, str], examples: dict[str, Schema], headers: dict[str, Schema]) -> Schema:
    """An answer that has the one body of all refusals, with some codes and no others."""
    narrowed = {"properties": {"error": {"properties": {"code": {"enum": sorted(docs)}}}}}
    content = {
        "schema": {"allOf": [{"$ref": "#/components/schemas/Error"}, narrowed]},
        "examples": {code: {"value": value} for code, value in examples.items()},
    }
    return {
        "description": "\n".join(f"{code}: {docs[code]}" for code in sorted(docs)),
        "headers": headers,
        "content": {"application/json": content},
    }


def _error(spec: Spec) -> Schema:
    """The one body of all refusals."""
    details = spec.system.json_.details
    properties = {
        "code": {"type": "string", "description": "The condition, in capital letters."},
        "message": {"type": "string", "description": "A sentence for people."},
        **({"details": _DETAILS} if details else {"field": _FIELD}),
    }
    required = ["code", "message", *(["details"] if details else ())]
    return {
        "description": "What every answer that is no success says.",
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": "object", "required": required, "properties": properties}},
    }


def _error_example(spec: Spec, name: str, row: Condition) -> Schema:
    told = dict.fromkeys(_PLACEHOLDER.findall(row.message or ""))
    message = _PLACEHOLDER.sub(lambda found: f"<{found[1]}>", row.message or "")
    return _error_body(spec, name.upper(), message, {each: f"<{each}>" for each in told})


def _error_body(spec: Spec, code: str, message: str, told: dict[str, str]) -> Schema:
    more: Schema = {"field": "field"} if "field" in told else {}
    if spec.system.json_.details:
        more = {"details": told}
    return {"error": {"code": code, "message": message, **more}}


def _links(spec: Spec, row: MethodRow) -> dict[str, Schema]:
    """Where an answer has what the path of another method asks for."""
    known = dict(_keys(spec, row.response, ""))
    found: dict[str, Schema] = {}
    for other, route in routed(spec):
        names = _PLACEHOLDER.findall(route.path)
        if other.ref != row.ref and names and all(name in known for name in names):
            found[other.name] = {
                "operationId": other.name,
                "parameters": {
                    f"path.{spec.json_name(name)}": f"$response.body#{known[name]}" for name in names
                },
                "description": other.method.doc,
            }
    return found


def _keys(spec: Spec, message: str, at: str) -> Iterator[tuple[str, str]]:
    """The texts of an answer and where each is, those of messages inside it first."""
    for name, row in spec.messages[message].fields.items():
        kind, inner, _ = type_ref(row.type)
        if kind == "single" and inner in spec.messages and at.count("/") < 2:
            yield from _keys(spec, inner, f"{at}/{spec.json_name(name)}")
        elif row.type == "string" and not row.optional:
            yield name, f"{at}/{spec.json_name(name)}"
