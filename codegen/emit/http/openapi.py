"""OpenAPI 3.1 document of a system whose methods have routes, and the page that displays it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from codegen.emit.artefact import Artefact, format_stamp, render_template
from codegen.emit.http import openapi_content
from codegen.emit.http.openapi_schemas import Schema, SchemaBuilder, build_example, is_needed
from codegen.emit.http.openapi_security import build_schemes, build_security, format_names, list_callers
from codegen.language.errors import Condition, Role
from codegen.language.services import Route
from codegen.source.spec import MethodRow, Spec, type_ref

BODY_METHODS = ("POST", "PUT", "PATCH")
_PLACEHOLDER = re.compile(r"\{([a-z0-9_]+)\}")
_COMMON_ROLES: tuple[Role, ...] = ("unauthenticated", "permission_denied", "deadline_exceeded", "unexpected")
_BODY_ROLES: tuple[Role, ...] = ("malformed_body", "unsupported_media_type", "body_too_large")
_FIELD: Schema = {"type": "string", "description": "The field of the request that it is about."}
_DETAILS: Schema = {
    "type": "object",
    "description": "All that is known of it.",
    "properties": {"field": _FIELD},
}
_TRANSPORT_ERRORS = {
    408: ("REQUEST_TIMEOUT", "The body did not come in time.", "the body did not come within 20 s"),
    431: ("REQUEST_HEADER_FIELDS_TOO_LARGE", "Too many headers.", "the headers have more than 32768 bytes"),
}
"""Errors of the HTTP server before it has found a method, and so without a condition of the spec."""
_HEADERS: dict[str, Schema] = {
    "Cache-Control": {"description": "Answers are never kept.", "schema": {"const": "no-store"}}
}


def emit(spec: Spec) -> Iterator[Artefact]:
    if list_routed_methods(spec):
        text = json.dumps(build_document(spec), indent=2, sort_keys=True, ensure_ascii=False)
        yield Artefact(f"generated/{spec.name}/openapi.json", f"{text}\n")
        yield Artefact(f"generated/{spec.name}/docs.html", render_template("http/docs.html.j2", spec))


def list_routed_methods(spec: Spec) -> list[tuple[MethodRow, Route]]:
    """List the methods that have routes."""
    return [(row, row.method.route) for row in spec.methods.values() if row.method.route is not None]


def build_document(spec: Spec) -> Schema:
    """Build the document as plain data."""
    schemas = SchemaBuilder(spec)
    for row, _ in list_routed_methods(spec):
        schemas.register(row.request, "request")
        schemas.register(row.response, "response")
    paths: dict[str, Schema] = {}
    for row, route in list_routed_methods(spec):
        path = _PLACEHOLDER.sub(lambda found: f"{{{spec.json_name(found[1])}}}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _build_operation(spec, schemas, row, route)
    services = dict.fromkeys(row.service_name for row, _ in list_routed_methods(spec))
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
            "schemas": {**schemas.components, "Error": _build_error_schema(spec)},
            "securitySchemes": build_schemes(spec),
        },
        "x-generated": format_stamp(spec),
    }


def _build_operation(spec: Spec, schemas: SchemaBuilder, row: MethodRow, route: Route) -> Schema:
    fields = spec.messages[row.request].fields
    in_path = _PLACEHOLDER.findall(route.path)
    others = [name for name in fields if name not in (*in_path, route.body)]
    has_json_body = route.method in BODY_METHODS and route.body is None and bool(others)
    parameters = [_build_parameter(spec, schemas, row.request, name, "path") for name in in_path]
    if not has_json_body:
        parameters += [_build_parameter(spec, schemas, row.request, name, "query") for name in others]
    if route.answer is not None:
        parameters += openapi_content.REQUEST_HEADERS
    found: Schema = {
        "operationId": row.name,
        "summary": row.method.doc,
        "description": f"May be called by {format_names(list_callers(spec, row))}.",
        "tags": [row.service_name],
        "security": build_security(spec, row),
        "responses": _build_responses(spec, schemas, row, route, has_json_body=has_json_body),
    }
    if parameters:
        found["parameters"] = parameters
    if route.body is not None:
        found["requestBody"] = openapi_content.build_request_body(fields[route.body].doc)
    if has_json_body:
        schema = (
            schemas.build_message(row.request, "request", in_path)
            if in_path
            else schemas.build_ref(row.request, "request")
        )
        content = {"schema": schema, "example": build_example(schema, schemas.components)}
        found["requestBody"] = {"required": True, "content": {"application/json": content}}
    return found


def _build_parameter(spec: Spec, schemas: SchemaBuilder, message: str, name: str, location: str) -> Schema:
    row = spec.messages[message].fields[name]
    schema = schemas.build_field(row.model_copy(update={"optional": False}), "request")
    text = schema.pop("description", None)
    if location == "path" and schema.get("type") == "string":
        schema["minLength"] = max(1, schema.get("minLength", 1))
    found: Schema = {
        "name": spec.json_name(name),
        "in": location,
        "required": location == "path" or is_needed(spec, row),
        "schema": schema,
    }
    return found | ({"description": text} if text else {})


def _build_responses(
    spec: Spec, schemas: SchemaBuilder, row: MethodRow, route: Route, *, has_json_body: bool
) -> dict[str, Schema]:
    if route.answer is not None:
        found = openapi_content.build_responses(row.method.doc)
    else:
        statuses = (route.status, *(each.status for each in route.instead))
        found = {str(status): _build_success(spec, schemas, row, status) for status in statuses}
    by_status: dict[int, dict[str, Condition]] = {}
    for name in _list_conditions(spec, row, has_json_body=has_json_body):
        condition = spec.errors.conditions[name]
        if condition.http is not None:
            by_status.setdefault(condition.http, {})[name] = condition
    for status, conditions in by_status.items():
        found[str(status)] = _build_refusal(spec, status, conditions)
    for status, (code, doc, message) in _TRANSPORT_ERRORS.items():
        if has_json_body or route.body is not None or status != 408:
            body = _build_error_body(spec, code, message, {})
            found.setdefault(str(status), _build_error_response({code: doc}, {code: body}, _HEADERS))
    return found


def _build_success(spec: Spec, schemas: SchemaBuilder, row: MethodRow, status: int) -> Schema:
    found: Schema = {"description": row.method.doc, "headers": _HEADERS}
    if status != 204:
        schema = schemas.build_ref(row.response, "response")
        content = {"schema": schema, "example": build_example(schema, schemas.components)}
        found["content"] = {"application/json": content}
        if links := _build_links(spec, row):
            found["links"] = links
    return found


def _list_conditions(spec: Spec, row: MethodRow, *, has_json_body: bool) -> dict[str, None]:
    """List every condition that a call can fail with, each once."""
    roles = [*_COMMON_ROLES, *(_BODY_ROLES if has_json_body else ())]
    if spec.messages[row.request].fields:
        roles.append("invalid_request")
    if row.method.drives:
        roles.append("illegal_transition")
    if row.method.calls:
        roles.append("upstream_unavailable")
    if any(row.component in (each.held_by, *each.shared_with) for each in _list_stored_entities(spec)):
        roles.append("store_unavailable")
    names = [spec.roles[role] for role in roles if role in spec.roles]
    return dict.fromkeys((*names, *row.method.raises, *_list_passed_conditions(spec, row)))


def _list_stored_entities(spec: Spec) -> list[Any]:
    return [*spec.lifecycle.entities.values()] if spec.is_durable else []


def _list_passed_conditions(spec: Spec, row: MethodRow) -> Iterator[str]:
    """List the conditions of the methods that it calls, as far as they are passed through to its caller."""
    pending, seen = list(row.method.calls), set[str]()
    while pending:
        ref = pending.pop()
        if ref in seen or ref not in spec.methods:
            continue
        seen.add(ref)
        called = spec.methods[ref].method
        pending += called.calls
        names = [*called.raises, *([spec.roles["illegal_transition"]] if called.drives else ())]
        yield from (
            name for name in names if spec.errors.conditions[name].grpc in spec.errors.upstream.pass_through
        )


def _build_refusal(spec: Spec, status: int, conditions: dict[str, Condition]) -> Schema:
    headers = dict(_HEADERS)
    if any(row.retry_after_s for row in conditions.values()):
        headers["Retry-After"] = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
    if status == 401:
        headers["WWW-Authenticate"] = {"description": "How to prove oneself.", "schema": {"const": "Bearer"}}
    docs = {name.upper(): row.doc for name, row in conditions.items()}
    return _build_error_response(
        docs,
        {name.upper(): _build_error_example(spec, name, row) for name, row in conditions.items()},
        headers,
    )


def _build_error_response(
    docs: dict[str, str], examples: dict[str, Schema], headers: dict[str, Schema]
) -> Schema:
    """Build an error response: the common error schema, narrowed to some codes."""
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


def _build_error_schema(spec: Spec) -> Schema:
    """Build the common schema of error bodies."""
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


def _build_error_example(spec: Spec, name: str, row: Condition) -> Schema:
    fields = dict.fromkeys(_PLACEHOLDER.findall(row.message or ""))
    message = _PLACEHOLDER.sub(lambda found: f"<{found[1]}>", row.message or "")
    return _build_error_body(spec, name.upper(), message, {each: f"<{each}>" for each in fields})


def _build_error_body(spec: Spec, code: str, message: str, fields: dict[str, str]) -> Schema:
    more: Schema = {"field": "field"} if "field" in fields else {}
    if spec.system.json_.details:
        more = {"details": fields}
    return {"error": {"code": code, "message": message, **more}}


def _build_links(spec: Spec, row: MethodRow) -> dict[str, Schema]:
    """Build links to the methods whose path parameters are in this response."""
    known = dict(_find_text_fields(spec, row.response, ""))
    found: dict[str, Schema] = {}
    for other, route in list_routed_methods(spec):
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


def _find_text_fields(spec: Spec, message: str, at: str) -> Iterator[tuple[str, str]]:
    """Find the text fields of a response and their JSON pointers, those of nested messages first."""
    for name, row in spec.messages[message].fields.items():
        kind, inner, _ = type_ref(row.type)
        if kind == "single" and inner in spec.messages and at.count("/") < 2:
            yield from _find_text_fields(spec, inner, f"{at}/{spec.json_name(name)}")
        elif row.type == "string" and not row.optional:
            yield name, f"{at}/{spec.json_name(name)}"
