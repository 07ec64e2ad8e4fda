"""What OpenAPI says of bodies that are content and not JSON: uploads, downloads, and parts of them."""

from __future__ import annotations

from codegen.emit.http.openapi_schemas import Schema

MEDIA_TYPE = "application/octet-stream"
_BYTES: Schema = {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
_TEXT: Schema = {"type": "string"}
_OF_CONTENT: dict[str, Schema] = {
    "ETag": {"description": "Tells this content from any other.", "schema": _TEXT},
    "Accept-Ranges": {"description": "Parts can be asked for.", "schema": {"const": "bytes"}},
}
_RANGE: Schema = {
    "Content-Range": {
        "description": "Which part it is, or how much there is.",
        "schema": _TEXT,
    }
}
ASKED: list[Schema] = [
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
"""The headers that a download understands."""


def upload(text: str | None) -> Schema:
    """A body of any length."""
    found: Schema = {"required": True, "content": _BYTES}
    return found | ({"description": text} if text else {})


def download(text: str) -> dict[str, Schema]:
    """What an answer with content can be, by status."""
    return {
        "200": {"description": text, "headers": _OF_CONTENT, "content": _BYTES},
        "206": {"description": "The part.", "headers": {**_OF_CONTENT, **_RANGE}, "content": _BYTES},
        "304": {"description": "It is there already.", "headers": _OF_CONTENT},
        "416": {"description": "There is no such part.", "headers": {**_OF_CONTENT, **_RANGE}},
    }
