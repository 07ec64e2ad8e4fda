"""The record of all tables of a system, and the package around them."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.python.storage import has_storage
from codegen.source.spec import Spec, type_ref

TRANSPORT_LIMITS = {"message_bytes": 4 * 1024 * 1024, "concurrent_streams": 1024, "connections": 4096}
"""Defaults of the limits of the transport; `policies.limits` of a spec overrides them."""


def emit(spec: Spec) -> Iterator[Artefact]:
    named = spec.system.policies.limits
    limits = {
        name: named[name].value if name in named else default for name, default in TRANSPORT_LIMITS.items()
    }
    text = render_template(
        "python/system.py.j2",
        spec,
        has_storage=has_storage(spec),
        json_fields=sorted(_list_json_fields(spec)),
        json_style=_format_json_style(spec),
        enum_prefixes={
            _qualify_name(spec, name): row.prefix
            for name, row in spec.enums.items()
            if row.prefix is not None
        },
        enum_spelling={
            _qualify_name(spec, name): row.spelled
            for name, row in spec.enums.items()
            if row.spelled != "upper"
        },
        **limits,
    )
    yield Artefact(f"generated/{spec.name}/system.py", text)
    yield Artefact(f"generated/{spec.name}/__init__.py", render_template("python/package.py.j2", spec))


def _format_json_style(spec: Spec) -> str:
    """Format the arguments of the JSON style; empty for the default one."""
    style = spec.system.json_
    options = {
        "snake": style.names == "snake",
        "shows_unset": style.unset == "shown",
        "milliseconds": style.times == "milliseconds",
        "details": style.details,
    }
    return ", ".join(f"{name}=True" for name, is_set in options.items() if is_set)


def _list_json_fields(spec: Spec) -> Iterator[str]:
    """List the fields with JSON text, by their full names."""
    for name, message in spec.messages.items():
        for field, row in message.fields.items():
            if type_ref(row.type).name == "json":
                yield f"{_qualify_name(spec, name)}.{field}"


def _qualify_name(spec: Spec, name: str) -> str:
    return f"{spec.system.protos[spec.proto_of[name]].package}.{name}"
