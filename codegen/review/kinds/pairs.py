"""Comparison of two mappings or models: added, common and changed entries, and how to format them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from codegen.review.form import PROSE_KEYS, part_to_data

T = TypeVar("T")


def iter_added(old: Mapping[str, T], new: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """Iterate over the entries that only the new one has."""
    yield from ((name, new[name]) for name in sorted(new) if name not in old)


def iter_common(old: Mapping[str, T], new: Mapping[str, T]) -> Iterator[tuple[str, T, T]]:
    """Iterate over the entries that both have."""
    yield from ((name, old[name], new[name]) for name in sorted(old) if name in new)


def list_gained(before: Iterable[T], after: Iterable[T]) -> list[T]:
    """List the members that a list gained, whatever their order."""
    return sorted(set(after) - set(before), key=str)


def iter_changed_keys(before: BaseModel, after: BaseModel, *but: str) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over the keys of two parts whose values differ, without prose."""
    for name, field in type(before).model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if name not in PROSE_KEYS and name not in but and not is_same(old, new):
            yield field.alias or name, old, new


def iter_changed_meanings(before: BaseModel, after: BaseModel, *but: str) -> Iterator[tuple[str, Any, Any]]:
    """Iterate likewise, but a list whose order has no meaning differs only by its members."""
    left, right = part_to_data(before), part_to_data(after)
    for name, old, new in iter_changed_keys(before, after, *but):
        if left.get(name) != right.get(name):
            yield name, old, new


def is_same(before: Any, after: Any) -> bool:
    """Whether two values are equal and of one type: a spec distinguishes 1 from True."""
    return before == after and type(before) is type(after)


def format_value(value: Any) -> str:
    """Format a value for a sentence."""
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        parts = [format_value(each) if isinstance(each, BaseModel) else str(each) for each in value]
        return ("; " if any(isinstance(each, BaseModel) for each in value) else ", ").join(parts)
    if isinstance(value, BaseModel):
        return (
            ", ".join(f"{name} {format_value(part)}" for name, part in _map_set_keys(value).items())
            or "as by default"
        )
    if isinstance(value, dict):
        return ", ".join(f"{name} = {format_value(part)}" for name, part in value.items()) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def format_change(before: Any, after: Any) -> str:
    """Format the change of a value for a sentence."""
    return f"{format_value(before)} -> {format_value(after)}"


def is_lower(before: Any, after: Any) -> bool:
    """Whether a number decreased."""
    return isinstance(before, int | float) and isinstance(after, int | float) and after < before


def is_higher(before: Any, after: Any) -> bool:
    """Whether a number increased."""
    return is_lower(after, before)


def _map_set_keys(part: BaseModel) -> dict[str, Any]:
    """Map the keys of a part to the values that differ from their defaults, without prose."""
    fields = {name: field for name, field in type(part).model_fields.items() if name not in PROSE_KEYS}
    return {
        field.alias or name: getattr(part, name)
        for name, field in fields.items()
        if getattr(part, name) != field.default
    }
