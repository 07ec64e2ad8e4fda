"""The .proto files."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, fill
from codegen.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    for key, proto in spec.system.protos.items():
        types = spec.types.root[key]
        text = fill(
            "proto/file.proto.j2",
            spec,
            proto=proto,
            imports=[spec.system.protos[name].file for name in proto.imports],
            services={name: row for name, row in spec.services.services.items() if row.proto == key},
            enums=types.enums,
            messages=types.messages,
            type_name=lambda text, key=key: _qualified(spec, key, text),
        )
        yield Artefact(f"proto/{proto.file}", text)


def _qualified(spec: Spec, key: str, text: str) -> str:
    """A field type with the package in front of each name that another proto defines."""
    words = []
    for word in text.replace("<", " < ").replace(">", " > ").replace(",", " , ").split():
        owner = spec.proto_of.get(word, key)
        words.append(word if owner == key else f"{spec.system.protos[owner].package}.{word}")
    return " ".join(words).replace(" < ", "<").replace(" >", ">").replace(" ,", ",")
