"""OpenAPI of binary bodies: uploads, downloads and byte ranges."""

from __future__ import annotations

from codegen.emit.http.openapi_schemas import Schema

MEDIA_TYPE = "application/octet-stream"
_BYTES: Schema = {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
_TEXT: Schema = {"type": "string"}
_CONTENT_HEADERS: dict[str, Schema] = {
    "ETag": {"description": "Tells this content from any other.", "schema": _TEXT},
    "Accept-Ranges": {"description": "Parts can be asked for.", "schema": {"const": "bytes"}},
}
_RANGE_HEADER: Schema = {
    "Content-Range": {
        "description": "Which part it is, or how much there is.",
        "schema": _TEXT,
    }
}
REQUEST_HEADERS: list[Schema] = [
    {
        "name": name,
        "in": "header",
        "required": False,
        "schema": _TEXT,
        "description": text,
    }
    for name, text in (
        ("Range", "The part that is wanted, such as bytes=0-99."),
        ("If-Range", "The ETag of what the part belongs to; all of it is answered if it is another."),
        ("If-None-Match", "The ETag of what is there already."),
    )
]
"""The request headers of a download."""


def build_request_body(text: str | None) -> Schema:
    """Build the request body of an upload."""
    found: Schema = {"required": True, "content": _BYTES}
    return found | ({"description": text} if text else {})


def build_responses(text: str) -> dict[str, Schema]:
    """Build the responses of a download, by status."""
    return {
        "200": {"description": text, "headers": _CONTENT_HEADERS, "content": _BYTES},
        "206": {
            "description": "The part.",
            "headers": {**_CONTENT_HEADERS, **_RANGE_HEADER},
            "content": _BYTES,
        },
        "304": {"description": "It is there already.", "headers": _CONTENT_HEADERS},
        "416": {"description": "There is no such part.", "headers": {**_CONTENT_HEADERS, **_RANGE_HEADER}},
    }
