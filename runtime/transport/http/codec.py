"""Messages between JSON and protobuf, compiled from their descriptors once for each node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, cast

import orjson
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from runtime.model.system import System
from runtime.transport.http.values import (
    SCALARS,
    Misread,
    Read,
    Write,
    choice,
    enum_names,
    inline_json,
    instant,
    kind_of,
    shown_choice,
    shown_instant,
    shown_millisecond,
    shown_octets,
    text,
)

ReadMessage = Callable[[Any], Message]
_TIMESTAMP = "google.protobuf.Timestamp"


class Field(NamedTuple):
    """One field as a reader of messages needs it."""

    attribute: str
    read: Read
    optional: bool


class Codec:
    """The codec of a system. What it makes for a message is kept, so that messages may hold each other."""

    def __init__(self, system: System) -> None:
        self._json_fields = system.json_fields
        self._word = system.word
        self._style = system.json_style
        self._readers: dict[str, ReadMessage] = {}
        self._writers: dict[str, Write] = {}

    def reader(self, kind: type[Message], without: Collection[str] = ()) -> ReadMessage:
        """Makes a message of what JSON says; fields that it does not know are left out, as are some named."""
        return self._reader(descriptor_of(kind), without)

    def writer(self, kind: type[Message]) -> Callable[[Message], bytes]:
        """Makes the JSON of a message. A field that is not optional is always there."""
        plain = self._writer(descriptor_of(kind))

        def write(message: Message) -> bytes:
            return orjson.dumps(plain(message))

        return write

    def field(self, field: FieldDescriptor) -> Field:
        """How a field is read."""
        return Field(field.name, self._field_reader(field), field.containing_oneof is not None)

    def name(self, field: FieldDescriptor) -> str:
        """What a field is called in JSON."""
        return field.name if self._style.snake else field.camelcase_name

    def holds_json(self, field: FieldDescriptor) -> bool:
        """Whether a field is JSON itself."""
        return field.full_name in self._json_fields

    def renames(self, kind: type[Message]) -> dict[str, str]:
        """Names of a message, and of those in it, that are others in JSON: fields and values of enums."""
        found: dict[str, str] = {}
        waiting, seen = [descriptor_of(kind)], set[str]()
        while waiting:
            each = waiting.pop()
            if each.full_name in seen or each.full_name == _TIMESTAMP:
                continue
            seen.add(each.full_name)
            for field in each.fields:
                found[field.name] = self.name(field)
                if field.enum_type is not None:
                    enum = field.enum_type
                    found.update((name, self._word(enum.full_name, name)) for name in enum.values_by_name)
                if field.message_type is not None:
                    waiting.append(field.message_type)
        return {name: shown for name, shown in found.items() if name != shown}

    def _reader(self, descriptor: Descriptor, without: Collection[str]) -> ReadMessage:
        make = GetMessageClass(descriptor)
        fields = {
            self.name(field): self.field(field) for field in descriptor.fields if field.name not in without
        }
        known = fields.get

        def read(value: Any) -> Message:
            if type(value) is not dict:
                raise Misread(f"must be an object, not {kind_of(value)}")
            found: dict[str, Any] = {}
            for name, given in value.items():
                if (field := known(name)) is None or (given is None and field.optional):
                    continue
                try:
                    found[field.attribute] = field.read(given)
                except Misread as misread:
                    raise misread.within(name) from None
            return make(**found)

        return read

    def _nested_reader(self, descriptor: Descriptor) -> ReadMessage:
        """The reader of a message inside another; looked up when it is used, as it may be inside itself."""
        name, readers = descriptor.full_name, self._readers
        if name not in readers:
            readers[name] = _unmade
            readers[name] = self._reader(descriptor, ())

        def read(value: Any) -> Message:
            return readers[name](value)

        return read

    def _field_reader(self, field: FieldDescriptor) -> Read:
        if _is_map(field):
            entry = _inside(field).fields_by_name
            return _map_reader(self._value_reader(entry["key"]), self._value_reader(entry["value"]), entry)
        one = self._value_reader(field)
        return _list_reader(one) if field.is_repeated else one

    def _value_reader(self, field: FieldDescriptor) -> Read:
        if self.holds_json(field):
            return inline_json
        if field.enum_type is not None:
            return choice(self._names(field.enum_type))
        if field.message_type is not None:
            if field.message_type.full_name == _TIMESTAMP:
                return instant
            return self._nested_reader(field.message_type)
        return SCALARS[field.type]

    def _writer(self, descriptor: Descriptor) -> Write:
        name, writers = descriptor.full_name, self._writers
        if name not in writers:
            writers[name] = _unmade
            writers[name] = _message_writer(
                [
                    (
                        self.name(field),
                        field.name,
                        self._field_writer(field),
                        field.containing_oneof is not None,
                    )
                    for field in descriptor.fields
                ],
                shows_unset=self._style.shows_unset,
            )
        return writers[name]

    def _nested_writer(self, descriptor: Descriptor) -> Write:
        name, writers = descriptor.full_name, self._writers
        self._writer(descriptor)

        def write(value: Any) -> Any:
            return writers[name](value)

        return write

    def _field_writer(self, field: FieldDescriptor) -> Write | None:
        if _is_map(field):
            one = self._value_writer(_inside(field).fields_by_name["value"]) or _same
            return lambda values: {str(key): one(values[key]) for key in values}
        each = self._value_writer(field)
        if not field.is_repeated:
            return each
        return list if each is None else lambda values: [each(value) for value in values]

    def _value_writer(self, field: FieldDescriptor) -> Write | None:
        if self.holds_json(field):
            return lambda value: orjson.Fragment(value or "null")
        if field.enum_type is not None:
            return shown_choice(self._names(field.enum_type))
        if field.message_type is not None:
            if field.message_type.full_name == _TIMESTAMP:
                return shown_millisecond if self._style.milliseconds else shown_instant
            return self._nested_writer(field.message_type)
        return shown_octets if field.type == FieldDescriptor.TYPE_BYTES else None

    def _names(self, enum: EnumDescriptor) -> dict[str, int]:
        return enum_names(enum, self._word)


def descriptor_of(kind: type[Message]) -> Descriptor:
    """The fields of a message; the stubs know two classes for what is one."""
    return cast("Descriptor", kind.DESCRIPTOR)


def _message_writer(plan: list[tuple[str, str, Write | None, bool]], *, shows_unset: bool) -> Write:
    def write(message: Message) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, attribute, convert, optional in plan:
            if optional and not message.HasField(attribute):
                if shows_unset:
                    found[name] = None
                continue
            value = getattr(message, attribute)
            found[name] = value if convert is None else convert(value)
        return found

    return write


def _list_reader(one: Read) -> Read:
    def read(values: Any) -> list[Any]:
        if type(values) is not list:
            raise Misread(f"must be a list, not {kind_of(values)}")
        found: list[Any] = []
        for value in values:
            try:
                found.append(one(value))
            except Misread as misread:
                raise misread.within(f"[{len(found)}]") from None
        return found

    return read


def _map_reader(key: Read, one: Read, entry: Mapping[str, FieldDescriptor]) -> Read:
    keyed_by_text = entry["key"].type == FieldDescriptor.TYPE_STRING

    def read(values: Any) -> dict[Any, Any]:
        if type(values) is not dict:
            raise Misread(f"must be an object, not {kind_of(values)}")
        found: dict[Any, Any] = {}
        for name, value in values.items():
            try:
                found[text(name) if keyed_by_text else key(_plain(name))] = one(value)
            except Misread as misread:
                raise misread.within(f"[{name!r}]") from None
        return found

    return read


def _plain(name: str) -> Any:
    """The key of an object as the number or truth value that it stands for."""
    if name in ("true", "false"):
        return name == "true"
    return int(name) if name.removeprefix("-").isdecimal() and len(name) <= 20 else name


def _inside(field: FieldDescriptor) -> Descriptor:
    """The message that a field holds."""
    assert field.message_type is not None
    return field.message_type


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _same(value: Any) -> Any:
    return value


def _unmade(_value: Any) -> Any:
    raise AssertionError("a message is read or written before its codec is complete")
