"""Caller matrix: the principals, and the permission of each for each method."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.language.callers import Permission
from codegen.source.spec import MethodRow, Spec, field_enum


def emit(spec: Spec) -> Iterator[Artefact]:
    matrix = {format_method_path(spec, row): _list_permissions(spec, row) for row in spec.methods.values()}
    modes = sorted({permission.call for permission in spec.permissions.values() if permission.call})
    states = sorted(
        {
            str(value)
            for (_, ref), permission in spec.permissions.items()
            for field, value in permission.only.items()
            if field_enum(spec, spec.messages[spec.methods[ref].request].fields[field])
        }
    )
    yield Artefact(
        f"generated/{spec.name}/callers.py",
        render_template(
            "python/callers.py.j2",
            spec,
            matrix=matrix,
            modes=modes,
            values=states,
            arguments=_format_arguments,
        ),
    )


def format_method_path(spec: Spec, row: MethodRow) -> str:
    """Format the path of a method on the wire."""
    return f"/{spec.system.protos[row.service.proto].package}.{row.service_name}/{row.name}"


def _list_permissions(spec: Spec, row: MethodRow) -> dict[str, tuple[Permission, dict[str, str]]]:
    return {
        principal: (
            permission,
            {field: _format_literal(spec, row, field, value) for field, value in permission.only.items()},
        )
        for (principal, ref), permission in spec.permissions.items()
        if ref == row.ref
    }


def _format_literal(spec: Spec, row: MethodRow, field: str, value: object) -> str:
    return str(value) if field_enum(spec, spec.messages[row.request].fields[field]) else repr(value)


def _format_arguments(permission: Permission, only: dict[str, str]) -> str:
    fields = ", ".join(f'"{field}": {value}' for field, value in only.items())
    arguments = [f"only=Frozen({{{fields}}})"] if only else []
    return ", ".join([*arguments, f"mode={permission.call.upper()}"] if permission.call else arguments)
