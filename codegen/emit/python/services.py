"""Handler protocols, typed clients of the same shape, and method tables of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.python.requests import name_functions
from codegen.source.spec import MethodRow, Spec


class MethodTableRow(NamedTuple):
    """A method and the names of its generated functions."""

    row: MethodRow
    check: str
    settle: str
    log_fields: tuple[str, ...]


def emit(spec: Spec) -> Iterator[Artefact]:
    functions = name_functions(spec)
    services = {
        name: [_build_row(spec, spec.methods[f"{name}.{method}"], functions) for method in service.methods]
        for name, service in spec.services.services.items()
    }
    rows = [row for methods in services.values() for row in methods]
    data = {
        "services": services,
        "types": sorted({name for row in rows for name in (row.row.request, row.row.response)}),
        "limits": sorted({row.row.max_request for row in rows if row.row.max_request}),
        "functions": sorted({name for row in rows for name in (row.check, row.settle) if name}),
    }
    for module in ("services", "methods", "clients"):
        text = render_template(f"python/services/{module}.py.j2", spec, **data)
        yield Artefact(f"generated/{spec.name}/{module}.py", text)


def _build_row(spec: Spec, row: MethodRow, functions: dict[str, tuple[str, str]]) -> MethodTableRow:
    check, settle = functions[row.request]
    fields = spec.messages[row.request].fields
    return MethodTableRow(
        row, check, settle, tuple(name for name in spec.system.policies.log_fields if name in fields)
    )
