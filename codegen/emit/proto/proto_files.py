"""The .proto files."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, fill
from codegen.language.types import ProtoTypes
from codegen.source.spec import Spec, type_ref

WIRE_TYPES = {"json": "string", "timestamp": "google.protobuf.Timestamp"}
"""Types of the language that protobuf calls otherwise."""


def emit(spec: Spec) -> Iterator[Artefact]:
    for key, proto in spec.system.protos.items():
        types = spec.types.root[key]
        text = fill(
            "proto/file.proto.j2",
            spec,
            proto=proto,
            imports=[*_well_known(types), *(spec.system.protos[name].file for name in proto.imports)],
            services={name: row for name, row in spec.services.services.items() if row.proto == key},
            enums=types.enums,
            messages=types.messages,
            type_name=lambda text, key=key: _qualified(spec, key, text),
        )
        yield Artefact(f"proto/{proto.file}", text)


def _well_known(types: ProtoTypes) -> list[str]:
    used = {type_ref(row.type).name for message in types.messages.values() for row in message.fields.values()}
    return ["google/protobuf/timestamp.proto"] if "timestamp" in used else []


def _qualified(spec: Spec, key: str, text: str) -> str:
    """A field type with the package in front of each name that another proto defines."""
    words = []
    for word in text.replace("<", " < ").replace(">", " > ").replace(",", " , ").split():
        owner = spec.proto_of.get(word, key)
        if word in WIRE_TYPES:
            words.append(WIRE_TYPES[word])
            continue
        words.append(word if owner == key else f"{spec.system.protos[owner].package}.{word}")
    return " ".join(words).replace(" < ", "<").replace(" >", ">").replace(" ,", ",")
