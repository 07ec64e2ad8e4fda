"""Reference page of the spec language, from its models."""

from __future__ import annotations

import types as python_types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from codegen.emit.artefact import Artefact
from codegen.language import FILES
from codegen.language.base import Part


def emit() -> Iterator[Artefact]:
    parts = [_INTRODUCTION, *(_render_file(name, model) for name, model in FILES.items())]
    yield Artefact("docs/reference/language.md", "\n".join(parts))


_INTRODUCTION = """\
# The spec language

A spec is a folder of eight YAML files, and a ninth, `metrics.yaml`, where a system has metrics over all
processes. Each is described below with every key that it may have; a key without a default is required.
Keys are always text, so `on` and `no` are names like any other; dates stay text too.

Generated from the models in `codegen/language/`. Do not edit; run `nox -s generate`.
"""


def _render_file(name: str, model: type[BaseModel]) -> str:
    lines = [f"## `{name}.yaml`", "", _format_docstring(model), ""]
    if issubclass(model, RootModel):
        inner = get_args(model.model_fields["root"].annotation)
        lines += [f"A mapping: {_format_type(inner[0])} to {_format_type(inner[1])}.", ""]
    for part in _list_parts(model):
        if not issubclass(part, RootModel):
            lines += _render_table(part, heading=part is not model)
    return "\n".join(lines)


def _render_table(part: type[BaseModel], *, heading: bool) -> list[str]:
    rows = [_format_row(field.alias or name, field) for name, field in part.model_fields.items()]
    head = [f"### {part.__name__}", "", _format_docstring(part), ""] if heading else []
    return [*head, "| key | is | default | meaning |", "|---|---|---|---|", *rows, ""]


def _format_row(name: str, field: FieldInfo) -> str:
    default = "" if field.is_required() else _format_default(field.get_default(call_default_factory=True))
    return (
        f"| `{name}` | {_format_type(field.annotation)} | {default} | {(field.description or '').strip()} |"
    )


def _format_default(value: Any) -> str:
    if value is PydanticUndefined or value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, BaseModel):
        return "as below"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _format_type(annotation: Any) -> str:
    """Format a type in the terms of YAML."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _format_type(arguments[0])
    if origin in (typing.Union, python_types.UnionType):
        return " or ".join(dict.fromkeys(_format_type(each) for each in arguments if each is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is tuple:
        return f"list of {_format_type(arguments[0])}"
    if origin is dict:
        return f"mapping to {_format_type(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return {"str": "text", "int": "number", "float": "number", "bool": "true or false"}.get(
        getattr(annotation, "__name__", ""), str(annotation)
    )


def _list_parts(model: type[BaseModel]) -> list[type[BaseModel]]:
    """List the model and every part of it, each once, in depth-first order."""
    found: dict[type[BaseModel], None] = {}
    pending: list[Any] = [model]
    while pending:
        each = pending.pop(0)
        if isinstance(each, type) and issubclass(each, BaseModel):
            if each not in found:
                found[each] = None
                pending = [field.annotation for field in each.model_fields.values()] + pending
        else:
            pending = list(get_args(each)) + pending
    return list(found)


def _format_docstring(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())
