"""The one record that holds all the tables of a system, and the packages around them."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.source.spec import Spec, type_ref

TRANSPORT_LIMITS = {"message_bytes": 4 * 1024 * 1024, "concurrent_streams": 1024, "connections": 4096}
"""Limits that the transport holds to; a spec that names one under `policies.limits` sets it."""


def emit(spec: Spec) -> Iterator[Artefact]:
    named = spec.system.policies.limits
    limits = {name: named[name].value if name in named else usual for name, usual in TRANSPORT_LIMITS.items()}
    text = render_template(
        "python/system.py.j2",
        spec,
        json_fields=sorted(_json_fields(spec)),
        json_style=_json_style(spec),
        enum_prefixes={
            _full_name(spec, name): row.prefix for name, row in spec.enums.items() if row.prefix is not None
        },
        enum_spelling={
            _full_name(spec, name): row.spelled for name, row in spec.enums.items() if row.spelled != "upper"
        },
        **limits,
    )
    yield Artefact(f"generated/{spec.name}/system.py", text)
    yield Artefact(f"generated/{spec.name}/__init__.py", render_template("python/package.py.j2", spec))


def _json_style(spec: Spec) -> str:
    """The arguments of the style; empty where it is the usual one."""
    style = spec.system.json_
    said = {
        "snake": style.names == "snake",
        "shows_unset": style.unset == "shown",
        "milliseconds": style.times == "milliseconds",
        "details": style.details,
    }
    return ", ".join(f"{name}=True" for name, is_so in said.items() if is_so)


def _json_fields(spec: Spec) -> Iterator[str]:
    """The fields that hold JSON text, by their full names."""
    for name, message in spec.messages.items():
        for field, row in message.fields.items():
            if type_ref(row.type).name == "json":
                yield f"{_full_name(spec, name)}.{field}"


def _full_name(spec: Spec, name: str) -> str:
    return f"{spec.system.protos[spec.proto_of[name]].package}.{name}"
