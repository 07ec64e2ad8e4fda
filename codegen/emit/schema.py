"""JSON Schemas of the spec language, for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codegen.emit.artefact import Artefact
from codegen.language import FILES
from codegen.review.record import record_schema


def emit() -> Iterator[Artefact]:
    """A schema for each file of a spec, and one for change records."""
    schemas = {name: model.model_json_schema() for name, model in FILES.items()}
    for name, schema in {**schemas, "change": record_schema()}.items():
        text = json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2)
        yield Artefact(f"spec/schema/{name}.schema.json", text + "\n")
