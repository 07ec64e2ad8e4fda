"""Emitter of .proto files."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.language.types import ProtoTypes
from codegen.source.spec import Spec, type_ref

WIRE_TYPES = {"json": "string", "timestamp": "google.protobuf.Timestamp"}
"""Types of the spec language whose protobuf type has another name."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """Emit a file for each proto of the spec."""
    for key, proto in spec.system.protos.items():
        types = spec.types.root[key]
        text = render_template(
            "proto/file.proto.j2",
            spec,
            proto=proto,
            imports=[
                *_list_well_known_imports(types),
                *(spec.system.protos[name].file for name in proto.imports),
            ],
            services={name: row for name, row in spec.services.services.items() if row.proto == key},
            enums=types.enums,
            messages=types.messages,
            type_name=lambda text, key=key: _qualify_type(spec, key, text),
        )
        yield Artefact(f"proto/{proto.file}", text)


def _list_well_known_imports(types: ProtoTypes) -> list[str]:
    used = {type_ref(row.type).name for message in types.messages.values() for row in message.fields.values()}
    return ["google/protobuf/timestamp.proto"] if "timestamp" in used else []


def _qualify_type(spec: Spec, key: str, text: str) -> str:
    """Qualify each name in a field type that another proto defines with its package."""
    words = []
    for word in text.replace("<", " < ").replace(">", " > ").replace(",", " , ").split():
        owner = spec.proto_of.get(word, key)
        if word in WIRE_TYPES:
            words.append(WIRE_TYPES[word])
            continue
        words.append(word if owner == key else f"{spec.system.protos[owner].package}.{word}")
    return " ".join(words).replace(" < ", "<").replace(" >", ">").replace(" ,", ",")
