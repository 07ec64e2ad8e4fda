"""Options of a command line for the fields of any request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import click
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from msgspec import Struct

from runtime.cli.descriptors import fields_of, map_value
from runtime.cli.values import FLOATS, RANGES, EnumWord, Text, Word, scalar_type

_TIMESTAMP = "google.protobuf.Timestamp"


class RequestField(Struct, frozen=True):
    """A leaf field of a request: its path, and its option."""

    path: tuple[str, ...]
    descriptor: FieldDescriptor
    option: str
    word: Word | None = None
    """Returns the name of an enum value."""

    @property
    def key(self) -> str:
        """The name of its parameter."""
        return "field_" + "__".join(self.path)

    def parameter(self) -> click.Option:
        """The option of a command."""
        names = [self.key, f"--{self.option}"]
        field = self.descriptor
        if field.is_repeated and (one := make_singular(self.option)) != self.option:
            names.insert(1, f"--{one}")
        if field.type == FieldDescriptor.TYPE_BOOL and not field.is_repeated:
            return click.Option([self.key, f"--{self.option}/--no-{self.option}"], default=None)
        return click.Option(names, multiple=field.is_repeated, type=self._type(), metavar=self._metavar())

    def _type(self) -> click.ParamType[Any]:
        item = map_value(self.descriptor)
        return scalar_type(self.descriptor, self.word) if item is None else _Entry(item, self.word)

    def _metavar(self) -> str | None:
        field = self.descriptor
        if map_value(field) is not None:
            return "KEY=VALUE"
        if field.message_type is not None:
            return "TIME" if field.message_type.full_name == _TIMESTAMP else "JSON"
        if field.type == FieldDescriptor.TYPE_BYTES:
            return "TEXT|@FILE"
        if field.enum_type is not None:
            return f"[{'|'.join(EnumWord(field.enum_type, self.word).words)}]"
        return "NUMBER" if field.cpp_type in (*RANGES, *FLOATS) else None


class _Entry(click.ParamType[tuple[str, Any]]):
    """One entry of a map."""

    name = "entry"

    def __init__(self, item: FieldDescriptor, word: Word | None) -> None:
        self._type = scalar_type(item, word)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not equals:
            self.fail(f"{value!r} is not KEY=VALUE.", param, ctx)
        return Text().convert(name, param, ctx), self._type.convert(text, param, ctx)


def list_request_fields(
    request: type[Message], reserved: Collection[str] = (), word: Word | None = None
) -> list[RequestField]:
    """List the fields of a request. Nested fields have their own name as the option unless ambiguous."""
    leaves = list(_find_leaves(fields_of(request), (), frozenset()))
    used = Counter(_to_kebab(path[-1]) for path, _ in leaves)
    found = []
    for path, field in leaves:
        short, full = _to_kebab(path[-1]), _to_kebab("-".join(path))
        option = short if used[short] == 1 or len(path) == 1 else full
        found.append(RequestField(path, field, f"field-{full}" if option in reserved else option, word))
    return found


def build_request(fields: Collection[RequestField], given: Mapping[str, Any]) -> dict[str, Any]:
    """Build the JSON form of a request from the parameters of a command, without those that are unset."""
    request: dict[str, Any] = {}
    for field in fields:
        value = given.get(field.key)
        if value is None or value == ():
            continue
        *parents, last = field.path
        holder = request
        for name in parents:
            holder = holder.setdefault(name, {})
        if field.descriptor.is_repeated:
            value = dict(value) if map_value(field.descriptor) is not None else list(value)
        holder[last] = value
    return request


def make_singular(name: str) -> str:
    """Make the singular of a name: `labels` are given one by one, as `--label`."""
    for ending, one in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if name.endswith(ending):
            return name.removesuffix(ending) + one
    return name if name.endswith(("ss", "us", "is")) else name.removesuffix("s")


def _find_leaves(
    fields: Iterable[FieldDescriptor], path: tuple[str, ...], above: frozenset[str]
) -> Iterator[tuple[tuple[str, ...], FieldDescriptor]]:
    for field in fields:
        here = (*path, field.name)
        nested = field.message_type
        if (
            nested is None
            or field.is_repeated
            or nested.full_name in above
            or nested.full_name.startswith("google.protobuf.")
        ):
            yield here, field
        else:
            yield from _find_leaves(nested.fields, here, above | {nested.full_name})


def _to_kebab(name: str) -> str:
    return name.replace("_", "-").lower()
