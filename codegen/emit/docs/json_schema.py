"""JSON Schemas of the spec language, for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pydantic
from pydantic import BaseModel, RootModel

from codegen.emit.artefact import Artefact
from codegen.emit.template_cache import cache_texts
from codegen.language import FILES
from codegen.language.examples import list_examples, list_parts
from codegen.review.record import record_schema


def emit() -> Iterator[Artefact]:
    """Emit a schema for each file of a spec, and one for change records."""
    for name, text in cache_texts("schemas", pydantic.VERSION, _build_schemas).items():
        yield Artefact(f"spec/schema/{name}.schema.json", text)


def _build_schemas() -> dict[str, str]:
    schemas = {name: _build_schema(model) for name, model in FILES.items()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {
        name: json.dumps(head | schema, indent=2) + "\n"
        for name, schema in {**schemas, "change": record_schema()}.items()
    }


def _build_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Build the schema of a file, with the examples of every key."""
    schema = model.model_json_schema()
    for part in list_parts(model):
        if issubclass(part, RootModel):
            continue
        properties = (schema if part is model else schema["$defs"][part.__name__])["properties"]
        for key, shown in properties.items():
            shown.pop("examples", None)
            if examples := list_examples(part, key):
                shown["examples"] = examples
    return schema
