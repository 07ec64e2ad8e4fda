"""JSON Schemas of the spec language, for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pydantic

from codegen.emit.artefact import Artefact
from codegen.emit.template_cache import cache_texts
from codegen.language import FILES
from codegen.review.record import record_schema


def emit() -> Iterator[Artefact]:
    """Emit a schema for each file of a spec, and one for change records."""
    for name, text in cache_texts("schemas", pydantic.VERSION, _build_schemas).items():
        yield Artefact(f"spec/schema/{name}.schema.json", text)


def _build_schemas() -> dict[str, str]:
    schemas = {name: model.model_json_schema() for name, model in FILES.items()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: json.dumps(head | schema, indent=2) + "\n"
        for name, schema in {**schemas, "change": record_schema()}.items()
    }
