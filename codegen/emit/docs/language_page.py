"""Reference page of the spec language, from its models and their examples."""

from __future__ import annotations

import types as python_types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import pydantic
from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from codegen.emit.artefact import Artefact
from codegen.emit.docs.markdown import code, codes, format_table
from codegen.emit.template_cache import cache_texts
from codegen.language import FILES
from codegen.language.base import Part
from codegen.language.environment import ENGINE_ROLES, TYPES, EngineRole, VariableType
from codegen.language.errors import ROLES, Role
from codegen.language.examples import list_excerpts, list_parts

_MOST_CHOICES = 6
"""A longer list of choices is below the table."""
_MEANINGS: Mapping[Any, Mapping[Any, str]] = {Role: ROLES, VariableType: TYPES, EngineRole: ENGINE_ROLES}
"""The meanings of choices that have one each."""


def emit() -> Iterator[Artefact]:
    """Emit the page, which is the same for every spec."""
    for path, text in cache_texts("language", pydantic.VERSION, _render_page).items():
        yield Artefact(path, text)


def _render_page() -> dict[str, str]:
    parts = [_INTRODUCTION, _render_contents(), *(_render_file(name, model) for name, model in FILES.items())]
    return {"docs/reference/language.md": "\n".join(parts)}


_INTRODUCTION = """\
# The spec language

A spec is a folder of eight YAML files. There is a ninth, `storage.yaml`, where names in a storage engine
are not the defaults, and a tenth, `metrics.yaml`, where a system has metrics over all processes. Each is
described below with every key that it may have. Keys are always text, so `on` and `no` are names like any
other; dates stay text too.

The examples are excerpts of specs that pass all rules, those in `spec/` and in `tests/specs/`; a key that no
spec has is in an example that the models accept. `…` stands for a value that is not shown. Editors show
meanings and examples, too, by the JSON Schemas in `spec/schema/`.

Generated from the models in `codegen/language/`. Do not edit; run `nox -s generate`.
"""


def _render_contents() -> str:
    """Render the table of contents: the files, and the parts of each in their order."""
    lines = []
    for name, model in FILES.items():
        parts = ", ".join(_link(part) for part in _list_tables(model) if part is not model)
        lines.append(f"- [`{name}.yaml`](#{name}yaml): {parts}")
    return "\n".join([*lines, ""])


def _render_file(name: str, model: type[BaseModel]) -> str:
    lines = [f"## `{name}.yaml`", "", _format_docstring(model), ""]
    if issubclass(model, RootModel):
        inner = get_args(model.model_fields["root"].annotation)
        lines += [f"A mapping: {_format_type(inner[0])} to {_format_type(inner[1])}.", ""]
    for part in _list_tables(model):
        lines += [] if part is model else [f"### {part.__name__}", "", _format_docstring(part), ""]
        lines += _render_table(part)
    return "\n".join(lines)


def _list_tables(model: type[BaseModel]) -> list[type[BaseModel]]:
    """List the parts of a file that have keys."""
    return [part for part in list_parts(model) if not issubclass(part, RootModel)]


def _render_table(part: type[BaseModel]) -> list[str]:
    """Render the keys of a part, long lists of choices, and the examples."""
    fields = {field.alias or name: field for name, field in part.model_fields.items()}
    rows = [
        (code(name), _format_type(field.annotation), _format_default(field), field.description or "")
        for name, field in fields.items()
    ]
    lines = [format_table(("key", "is", "default", "meaning"), rows), ""]
    lines += _render_long_choices(fields)
    for excerpt in list_excerpts(part):
        lines += ["```yaml", excerpt.text, "```", ""]
    return lines


def _format_default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined or value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, BaseModel):
        return "as below"
    if isinstance(value, tuple):
        return codes(value)
    return code(str(value).lower() if isinstance(value, bool) else value)


def _format_type(annotation: Any) -> str:
    """Format a type in the terms of YAML."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _format_type(arguments[0])
    if origin in (typing.Union, python_types.UnionType):
        return " or ".join(dict.fromkeys(_format_type(each) for each in arguments if each is not type(None)))
    if origin is Literal:
        return "one of those below" if len(arguments) > _MOST_CHOICES else codes(arguments)
    if origin is tuple:
        return f"list of {_format_type(arguments[0])}"
    if origin is dict:
        return f"mapping to {_format_type(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return _link(annotation)
    return {"str": "text", "int": "number", "float": "number", "bool": "true or false"}.get(
        getattr(annotation, "__name__", ""), str(annotation)
    )


def _render_long_choices(fields: Mapping[str, FieldInfo]) -> list[str]:
    """Render the choices that are too many for a cell of the table, once for all keys that have them."""
    keys: dict[Any, list[str]] = {}
    for name, field in fields.items():
        if (found := _find_long_choices(field.annotation)) is not None:
            keys.setdefault(found, []).append(name)
    lines = []
    for annotation, names in keys.items():
        meanings: Mapping[str, str] = _MEANINGS.get(annotation, {})
        choices = get_args(annotation)
        if meanings:
            lines += [
                f"{codes(names)} is one of:",
                "",
                *(f"- {code(each)}: {meanings[each]}" for each in choices),
            ]
        else:
            lines += [f"{codes(names)}: {codes(choices)}."]
        lines += [""]
    return lines


def _find_long_choices(annotation: Any) -> Any:
    """Find the literal with too many choices for a cell; None where there is none."""
    if get_origin(annotation) is Literal:
        return annotation if len(get_args(annotation)) > _MOST_CHOICES else None
    found = (_find_long_choices(each) for each in get_args(annotation))
    return next((each for each in found if each is not None), None)


def _link(part: type[BaseModel]) -> str:
    return f"[{part.__name__}](#{part.__name__.lower()})"


def _format_docstring(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())
