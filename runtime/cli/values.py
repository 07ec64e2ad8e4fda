"""Parameter types of options: texts, numbers, enums, bytes and messages, with an error for invalid ones."""

from __future__ import annotations

import base64
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from runtime.cli.descriptors import map_value

Word = Callable[[str, str], str]
"""Takes an enum and a value of it; returns its name for users."""
RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
FLOATS = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)
_UNSPECIFIED = "UNSPECIFIED"


class Text(click.ParamType[str]):
    """A text that is valid UTF-8: a shell also passes other bytes."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            self.fail("the text is not UTF-8.", param, ctx)
        return text


class Whole(click.ParamType[int]):
    """A whole number within bounds."""

    name = "number"

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if not isinstance(value, int) and not re.fullmatch(r"[-+]?[0-9]{1,30}", str(value)):
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        number = int(value)
        if not self._low <= number <= self._high:
            self.fail(f"{number} is not a whole number from {self._low} to {self._high}.", param, ctx)
        return number


class Number(click.ParamType[float]):
    """A number with a fraction."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number.", param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class Bytes(click.ParamType[str]):
    """Bytes as base64, from a text or, after an @, from a file."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.startswith("@"):
            return base64.b64encode(os.fsencode(value)).decode()
        try:
            return base64.b64encode(Path(value[1:]).read_bytes()).decode()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "this is no file name"
            self.fail(f"{value[1:]!r} cannot be read: {why}.", param, ctx)


class EnumWord(click.ParamType[str]):
    """A value of an enum, by its name with or without the prefix, or by its word, in any case."""

    name = "choice"

    def __init__(self, enum: EnumDescriptor, word: Word | None = None) -> None:
        # The unspecified value is given by leaving the option out.
        named = [
            each.name for each in enum.values if each.number != 0 or not each.name.endswith(_UNSPECIFIED)
        ]
        prefix = next((each.name.removesuffix(_UNSPECIFIED) for each in enum.values if each.number == 0), "")
        short = {name: name.removeprefix(prefix) or name for name in named}
        self.words = [word(enum.full_name, name) if word else short[name] for name in named]
        """The names of all values but the unspecified one."""
        self._names = {
            _normalise(alias): name
            for name, shown in zip(named, self.words, strict=True)
            for alias in (shown, short[name], name)
        }

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        found = self._names.get(_normalise(str(value)))
        if found is None:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, self.words))}.", param, ctx)
        return found


class JsonMessage(click.ParamType[Any]):
    """A message as JSON; protobuf's own types, such as times, as their text."""

    name = "json"

    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        is_known = self._descriptor.full_name.startswith("google.protobuf.")
        try:
            data = json.loads(value)
        except (ValueError, RecursionError) as error:
            if not is_known:
                where = f": see character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
                self.fail(f"the text is not JSON{where}.", param, ctx)
            data = value
        if not is_known and not isinstance(data, dict):
            self.fail(f"{next(find_misfits(data, self._descriptor))}.", param, ctx)
        try:
            json_format.ParseDict(data, message_factory.GetMessageClass(self._descriptor)())
        except (json_format.ParseError, ValueError, TypeError, RecursionError):
            kind = self._descriptor.name
            if kind == "Timestamp":
                self.fail(f"{value!r} is no time such as 2026-01-31T12:00:00Z.", param, ctx)
            problem = next(find_misfits(data, self._descriptor), None)
            self.fail(f"{problem}." if problem else f"{value!r} is not a {kind}.", param, ctx)
        return data


def find_misfits(data: Any, descriptor: Descriptor, path: str = "") -> Iterator[str]:
    """Find the parts of some JSON that do not fit a message, a clause each."""
    here = path or "the JSON"
    if not isinstance(data, dict):
        yield f"{here} must be an object with the fields of {descriptor.name}"
        return
    fields = {name: each for each in descriptor.fields for name in (each.name, each.json_name)}
    for name, value in data.items():
        place = f"{path}.{name}" if path else name
        if (field := fields.get(name)) is None:
            known = ", ".join(each.name for each in descriptor.fields)
            yield f"{place!r} is no field of {descriptor.name}, which has {known}"
        elif map_value(field) is not None:
            if not isinstance(value, dict):
                yield f"{place!r} must be an object"
        elif field.is_repeated:
            if not isinstance(value, list):
                yield f"{place!r} must be a list"
            else:
                for index, each in enumerate(value):
                    yield from _find_misfit(each, field, f"{place}[{index}]")
        else:
            yield from _find_misfit(value, field, place)


def _find_misfit(value: Any, field: FieldDescriptor, place: str) -> Iterator[str]:
    if value is None:
        return
    if field.message_type is not None:
        if not field.message_type.full_name.startswith("google.protobuf."):
            yield from find_misfits(value, field.message_type, place)
    elif field.cpp_type in RANGES:
        low, high = RANGES[field.cpp_type]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            yield f"{place!r} must be a whole number from {low} to {high}"
    elif field.cpp_type in FLOATS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{place!r} must be a number"
    elif field.type == FieldDescriptor.TYPE_BOOL:
        if not isinstance(value, bool):
            yield f"{place!r} must be true or false"
    elif field.enum_type is not None:
        if value not in field.enum_type.values_by_name:
            yield f"{place!r} must be one of {', '.join(field.enum_type.values_by_name)}"
    elif not isinstance(value, str):
        yield f"{place!r} must be a text"


def scalar_type(field: FieldDescriptor, word: Word | None = None) -> click.ParamType[Any]:
    """Return the parameter type of one value of a field."""
    if field.message_type is not None:
        return JsonMessage(field.message_type)
    if field.cpp_type in RANGES:
        return Whole(*RANGES[field.cpp_type])
    if field.cpp_type in FLOATS:
        return Number()
    if field.enum_type is not None:
        return EnumWord(field.enum_type, word)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return click.BOOL
    return Bytes() if field.type == FieldDescriptor.TYPE_BYTES else Text()


def _normalise(word: str) -> str:
    return word.lower().replace("-", "_")
