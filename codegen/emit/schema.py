"""JSON Schemas of the spec language, for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codegen.emit.artefact import Artefact
from codegen.language import FILES


def emit() -> Iterator[Artefact]:
    for name, model in FILES.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
        yield Artefact(f"spec/schema/{name}.schema.json", json.dumps(schema, indent=2) + "\n")
