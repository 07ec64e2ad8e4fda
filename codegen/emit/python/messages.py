"""Messages and enums of all proto files of a system in one module."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    modules = {
        f"generated.{proto.file.removesuffix('.proto')}_pb2": _list_names(spec, key)
        for key, proto in spec.system.protos.items()
    }
    yield Artefact(
        f"generated/{spec.name}/messages.py", render_template("python/messages.py.j2", spec, modules=modules)
    )


def _list_names(spec: Spec, proto: str) -> list[str]:
    types = spec.types.root[proto]
    values = [value for enum in types.enums.values() for value in enum.values]
    return sorted([*types.enums, *values, *types.messages])
