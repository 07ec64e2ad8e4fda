"""The reference page of the spec language, from the models that are the language."""

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
    parts = [_INTRODUCTION, *(_file(name, model) for name, model in FILES.items())]
    yield Artefact("docs/reference/language.md", "\n".join(parts))


_INTRODUCTION = """\
# The spec language

A spec is a folder of eight YAML files, and a ninth, `metrics.yaml`, where something is measured over all
processes. Each is described below with every key that it may have; a key without a default must be there.
Keys are always text, so `on` and `no` are names like any other; dates stay text too.

Generated from the models in `codegen/language/`. Do not edit; run `nox -s generate`.
"""


def _file(name: str, model: type[BaseModel]) -> str:
    lines = [f"## `{name}.yaml`", "", _sentence(model), ""]
    if issubclass(model, RootModel):
        inner = get_args(model.model_fields["root"].annotation)
        lines += [f"A mapping: {_type(inner[0])} to {_type(inner[1])}.", ""]
    for part in _parts(model):
        if not issubclass(part, RootModel):
            lines += _table(part, heading=part is not model)
    return "\n".join(lines)


def _table(part: type[BaseModel], *, heading: bool) -> list[str]:
    rows = [_row(field.alias or name, field) for name, field in part.model_fields.items()]
    head = [f"### {part.__name__}", "", _sentence(part), ""] if heading else []
    return [*head, "| key | is | default | meaning |", "|---|---|---|---|", *rows, ""]


def _row(name: str, field: FieldInfo) -> str:
    default = "" if field.is_required() else _default(field.get_default(call_default_factory=True))
    return f"| `{name}` | {_type(field.annotation)} | {default} | {(field.description or '').strip()} |"


def _default(value: Any) -> str:
    if value is PydanticUndefined or value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, BaseModel):
        return "as below"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(annotation: Any) -> str:
    """A type as a reader of YAML would say it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin in (typing.Union, python_types.UnionType):
        return " or ".join(dict.fromkeys(_type(each) for each in arguments if each is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping to {_type(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return {"str": "text", "int": "number", "float": "number", "bool": "true or false"}.get(
        getattr(annotation, "__name__", ""), str(annotation)
    )


def _parts(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The model and every part it holds, each once, in the order in which a reader meets them."""
    found: dict[type[BaseModel], None] = {}
    waiting: list[Any] = [model]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, type) and issubclass(each, BaseModel):
            if each not in found:
                found[each] = None
                waiting = [field.annotation for field in each.model_fields.values()] + waiting
        else:
            waiting = list(get_args(each)) + waiting
    return list(found)


def _sentence(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())
