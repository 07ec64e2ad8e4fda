"""Examples of the parts of the language: a YAML file for each file of a spec, excerpts for each part.

An excerpt begins with the key under which the part stands. `…` stands for a value that is not shown. A test
finds every excerpt in a spec that passes all rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import yaml
from pydantic import BaseModel, RootModel

from codegen.language import FILES
from codegen.source.yaml_reader import parse

ELIDED = "…"
"""Stands for a value that an excerpt does not show."""


class Excerpt(NamedTuple):
    """A piece of a spec file, as text and as data."""

    text: str
    data: dict[str, Any]


def list_parts(model: type[BaseModel]) -> list[type[BaseModel]]:
    """List a model and every part of it, each once, in depth-first order."""
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


def list_names() -> list[str]:
    """List the names of all parts that have excerpts."""
    return list(_read_excerpts())


def list_excerpts(part: type[BaseModel]) -> list[Excerpt]:
    """List the excerpts that show a part."""
    return _read_excerpts().get(part.__name__, [])


@cache
def list_instances(part: type[BaseModel]) -> list[dict[str, Any]]:
    """List the values of a part in its excerpts: what stands under the keys around it."""
    return [found for excerpt in list_excerpts(part) for found in find_instances(part, excerpt.data)]


def list_examples(part: type[BaseModel], key: str) -> list[Any]:
    """List the complete values of a key in the excerpts of its part."""
    found = [each[key] for each in list_instances(part) if key in each and not has_gap(each[key])]
    return [each for index, each in enumerate(found) if each not in found[:index]]


def has_gap(value: Any) -> bool:
    """Whether a value, or one in it, is not shown."""
    if isinstance(value, dict):
        return any(map(has_gap, value.values()))
    return any(map(has_gap, value)) if isinstance(value, list) else value == ELIDED


@cache
def _read_excerpts() -> dict[str, list[Excerpt]]:
    return {
        name: excerpts
        for file in FILES
        for name, excerpts in _read_file(Path(__file__).with_name(f"{file}.yaml"))
    }


def _read_file(path: Path) -> Iterator[tuple[str, list[Excerpt]]]:
    text = path.read_text(encoding="utf-8")
    for name, excerpts in yaml.compose(text, yaml.SafeLoader).value:
        yield name.value, [_read_excerpt(path.name, text, node) for node in excerpts.value]


def _read_excerpt(name: str, text: str, node: yaml.Node) -> Excerpt:
    """Cut an excerpt out of its file, without the indentation that the list around it gives it."""
    lines = text[node.start_mark.index : node.end_mark.index].rstrip().split("\n")
    indentation = " " * node.start_mark.column
    cut = "\n".join([lines[0], *(line.removeprefix(indentation) for line in lines[1:])])
    source, _ = parse(name, cut)
    return Excerpt(cut, source.data)


def find_instances(part: type[BaseModel], data: dict[str, Any]) -> list[dict[str, Any]]:
    """Find the values of a part in the data of an excerpt."""
    if part in FILES.values():
        return [data]
    for parent in _list_all_parts():
        for name, field in parent.model_fields.items():
            value = data if issubclass(parent, RootModel) else data.get(field.alias or name)
            if found := list(_reach(part, field.annotation, value)):
                return found
    return []


@cache
def _list_all_parts() -> list[type[BaseModel]]:
    return list(dict.fromkeys(part for model in FILES.values() for part in list_parts(model)))


def _reach(part: type[BaseModel], annotation: Any, value: Any) -> Iterator[dict[str, Any]]:
    """Find the values of a part in that of an annotation."""
    if annotation is part:
        yield from (value,) if isinstance(value, dict) else ()
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            if isinstance(value, dict):
                yield from _reach(part, field.annotation, value.get(field.alias or name))
    elif get_origin(annotation) is dict:
        for each in value.values() if isinstance(value, dict) else ():
            yield from _reach(part, get_args(annotation)[1], each)
    elif get_origin(annotation) is tuple:
        for each in value if isinstance(value, list) else ():
            yield from _reach(part, get_args(annotation)[0], each)
    else:
        for each in get_args(annotation):
            yield from _reach(part, each, value)
