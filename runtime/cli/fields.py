"""Request fields as options of a command line, whatever the request."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from runtime.cli.descriptors import fields_of, map_value
from runtime.frozen import dataclass

_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_FLOATS = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)


@dataclass(frozen=True, slots=True)
class RequestField:
    """A field that holds a value of its own: its path through the request, and its option."""

    path: tuple[str, ...]
    descriptor: FieldDescriptor
    option: str

    @property
    def key(self) -> str:
        """The name of its parameter."""
        return "field_" + "__".join(self.path)

    def parameter(self) -> click.Option:
        """The option of a command."""
        names = [self.key, f"--{self.option}"]
        field = self.descriptor
        if field.is_repeated and (one := singular(self.option)) != self.option:
            names.insert(1, f"--{one}")
        if field.is_repeated or _is_json(field):
            return click.Option(
                names, multiple=field.is_repeated, type=_text_type(field), metavar=_metavar(field)
            )
        if field.type == FieldDescriptor.TYPE_BOOL:
            return click.Option([self.key, f"--{self.option}/--no-{self.option}"], default=None)
        return click.Option(names, type=_scalar_type(field), metavar=_metavar(field))

    def value(self, given: Any) -> Any:
        """What was given, as the JSON form of a message has it."""
        field = self.descriptor
        if (item := map_value(field)) is not None:
            return dict(_entry(self, text, item) for text in given)
        return (
            [_json_value(field, each) for each in given] if field.is_repeated else _json_value(field, given)
        )


def request_fields(request: type[Message], reserved: Collection[str] = ()) -> list[RequestField]:
    """The fields of a request. Those of nested messages go by their own name unless two would share it."""
    leaves = list(_leaves(fields_of(request), (), frozenset()))
    used = Counter(_kebab(path[-1]) for path, _ in leaves)
    found = []
    for path, field in leaves:
        short, full = _kebab(path[-1]), _kebab("-".join(path))
        option = short if used[short] == 1 or len(path) == 1 else full
        found.append(RequestField(path, field, f"field-{full}" if option in reserved else option))
    return found


def assembled(fields: Collection[RequestField], given: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON form of a request, from the parameters of a command. What was not given is not in it."""
    request: dict[str, Any] = {}
    for field in fields:
        value = given.get(field.key)
        if value is None or value == ():
            continue
        *parents, last = field.path
        holder = request
        for name in parents:
            holder = holder.setdefault(name, {})
        holder[last] = field.value(value)
    return request


def singular(name: str) -> str:
    """The name of one of many: `labels` are given one by one, as `--label`."""
    for ending, one in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh")):
        if name.endswith(ending):
            return name.removesuffix(ending) + one
    return name if name.endswith(("ss", "us", "is")) else name.removesuffix("s")


def _leaves(
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
            yield from _leaves(nested.fields, here, above | {nested.full_name})


def _is_json(field: FieldDescriptor) -> bool:
    """Whether a field is given as JSON: many messages, one that holds itself, or one of protobuf's own."""
    nested = field.message_type
    return nested is not None and map_value(field) is None


def _scalar_type(field: FieldDescriptor) -> click.ParamType[Any]:
    if field.cpp_type in _RANGES:
        return click.IntRange(*_RANGES[field.cpp_type])
    if field.cpp_type in _FLOATS:
        return click.FLOAT
    if field.enum_type is not None:
        return click.Choice(_choices(field.enum_type), case_sensitive=False)
    return click.STRING


def _choices(enum: EnumDescriptor) -> list[str]:
    """The values that say something: to say nothing is to leave the option out."""
    return [each.name for each in enum.values if each.number != 0 or not each.name.endswith("_UNSPECIFIED")]


def _text_type(field: FieldDescriptor) -> click.ParamType[Any]:
    return _scalar_type(field) if field.message_type is None else click.STRING


def _metavar(field: FieldDescriptor) -> str | None:
    if map_value(field) is not None:
        return "KEY=VALUE"
    if _is_json(field):
        return "JSON"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "TEXT|@FILE"
    if field.enum_type is not None:
        return f"[{'|'.join(_choices(field.enum_type))}]"
    return "NUMBER" if field.cpp_type in _RANGES else None


def _entry(field: RequestField, text: str, item: FieldDescriptor) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE.", param_hint=f"--{singular(field.option)}")
    return name, _json_value(item, value)


def _json_value(field: FieldDescriptor, given: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        content = Path(given[1:]).read_bytes() if given.startswith("@") else given.encode()
        return base64.b64encode(content).decode()
    if field.message_type is not None:
        try:
            return json.loads(given)
        except ValueError:
            return given
    return given


def _kebab(name: str) -> str:
    return name.replace("_", "-").lower()
