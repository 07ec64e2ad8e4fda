"""Walks over two like things at once: what came, what went, what stayed and which of its words differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from codegen.review.form import TEXTS, said

T = TypeVar("T")


def added(old: Mapping[str, T], new: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """What only the new one has."""
    yield from ((name, new[name]) for name in sorted(new) if name not in old)


def kept(old: Mapping[str, T], new: Mapping[str, T]) -> Iterator[tuple[str, T, T]]:
    """What both have."""
    yield from ((name, old[name], new[name]) for name in sorted(old) if name in new)


def gained(before: Iterable[T], after: Iterable[T]) -> list[T]:
    """The members of a list that came, whatever their order."""
    return sorted(set(after) - set(before), key=str)


def words(before: BaseModel, after: BaseModel, *but: str) -> Iterator[tuple[str, Any, Any]]:
    """Every word of two like parts that says something else; texts for people left out."""
    for name, word in type(before).model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if name not in TEXTS and name not in but and not same(old, new):
            yield word.alias or name, old, new


def meant(before: BaseModel, after: BaseModel, *but: str) -> Iterator[tuple[str, Any, Any]]:
    """The same, but a list whose order says nothing differs only by its members."""
    left, right = said(before), said(after)
    for name, old, new in words(before, after, *but):
        if left.get(name) != right.get(name):
            yield name, old, new


def same(before: Any, after: Any) -> bool:
    """Whether two values are the same; to Python 1 and True are equal, to a spec they are not."""
    return before == after and type(before) is type(after)


def shown(value: Any) -> str:
    """A value in a sentence."""
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, BaseModel):
        return ", ".join(f"{name} {shown(part)}" for name, part in _said(value).items()) or "as by default"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {shown(part)}" for name, part in value.items()) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def turn(before: Any, after: Any) -> str:
    """A change of a value in a sentence."""
    return f"{shown(before)} -> {shown(after)}"


def fell(before: Any, after: Any) -> bool:
    """Whether a number became smaller."""
    return isinstance(before, int | float) and isinstance(after, int | float) and after < before


def rose(before: Any, after: Any) -> bool:
    """Whether a number became larger."""
    return fell(after, before)


def _said(part: BaseModel) -> dict[str, Any]:
    """The words of a part that differ from their defaults; texts for people left out."""
    words = {name: word for name, word in type(part).model_fields.items() if name not in TEXTS}
    return {
        word.alias or name: getattr(part, name)
        for name, word in words.items()
        if getattr(part, name) != word.default
    }
