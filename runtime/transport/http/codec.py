"""Codec between JSON and protobuf messages, compiled from descriptors once for each node."""

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
    InvalidValue,
    Read,
    Write,
    enum_names,
    format_base64,
    format_timestamp,
    format_timestamp_ms,
    make_enum_reader,
    make_enum_writer,
    name_json_type,
    read_inline_json,
    read_text,
    read_timestamp,
)

ReadMessage = Callable[[Any], Message]
_TIMESTAMP = "google.protobuf.Timestamp"


class Field(NamedTuple):
    """The decoder of one field."""

    attribute: str
    read: Read
    optional: bool


class Codec:
    """The codec of a system. Readers and writers are cached by message, so that messages may be recursive."""

    def __init__(self, system: System) -> None:
        self._json_fields = system.json_fields
        self._word = system.word
        self._style = system.json_style
        self._readers: dict[str, ReadMessage] = {}
        self._writers: dict[str, Write] = {}

    def reader(self, kind: type[Message], without: Collection[str] = ()) -> ReadMessage:
        """Make the decoder of a message; unknown fields are ignored, as are those of `without`."""
        return self._reader(descriptor_of(kind), without)

    def writer(self, kind: type[Message]) -> Callable[[Message], bytes]:
        """Make the encoder of a message. A field that is not optional is always present."""
        plain = self._writer(descriptor_of(kind))

        def write(message: Message) -> bytes:
            return orjson.dumps(plain(message))

        return write

    def field(self, field: FieldDescriptor) -> Field:
        """Make the decoder of a field."""
        return Field(field.name, self._field_reader(field), field.containing_oneof is not None)

    def name(self, field: FieldDescriptor) -> str:
        """Return the JSON name of a field."""
        return field.name if self._style.snake else field.camelcase_name

    def has_json(self, field: FieldDescriptor) -> bool:
        """Whether a field has JSON text."""
        return field.full_name in self._json_fields

    def renames(self, kind: type[Message]) -> dict[str, str]:
        """Return the JSON names of fields and enum values of a message, nested too, where they differ."""
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
                raise InvalidValue(f"must be an object, not {name_json_type(value)}")
            found: dict[str, Any] = {}
            for name, given in value.items():
                if (field := known(name)) is None or (given is None and field.optional):
                    continue
                try:
                    found[field.attribute] = field.read(given)
                except InvalidValue as error:
                    raise error.within(name) from None
            return make(**found)

        return read

    def _nested_reader(self, descriptor: Descriptor) -> ReadMessage:
        """Make the decoder of a nested message; looked up at use, as a message may be recursive."""
        name, readers = descriptor.full_name, self._readers
        if name not in readers:
            readers[name] = _not_compiled
            readers[name] = self._reader(descriptor, ())

        def read(value: Any) -> Message:
            return readers[name](value)

        return read

    def _field_reader(self, field: FieldDescriptor) -> Read:
        if _is_map(field):
            entry = _message_of(field).fields_by_name
            return _map_reader(self._value_reader(entry["key"]), self._value_reader(entry["value"]), entry)
        one = self._value_reader(field)
        return _list_reader(one) if field.is_repeated else one

    def _value_reader(self, field: FieldDescriptor) -> Read:
        if self.has_json(field):
            return read_inline_json
        if field.enum_type is not None:
            return make_enum_reader(self._names(field.enum_type))
        if field.message_type is not None:
            if field.message_type.full_name == _TIMESTAMP:
                return read_timestamp
            return self._nested_reader(field.message_type)
        return SCALARS[field.type]

    def _writer(self, descriptor: Descriptor) -> Write:
        name, writers = descriptor.full_name, self._writers
        if name not in writers:
            writers[name] = _not_compiled
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
            one = self._value_writer(_message_of(field).fields_by_name["value"]) or _unchanged
            return lambda values: {str(key): one(values[key]) for key in values}
        each = self._value_writer(field)
        if not field.is_repeated:
            return each
        return list if each is None else lambda values: [each(value) for value in values]

    def _value_writer(self, field: FieldDescriptor) -> Write | None:
        if self.has_json(field):
            return lambda value: orjson.Fragment(value or "null")
        if field.enum_type is not None:
            return make_enum_writer(self._names(field.enum_type))
        if field.message_type is not None:
            if field.message_type.full_name == _TIMESTAMP:
                return format_timestamp_ms if self._style.milliseconds else format_timestamp
            return self._nested_writer(field.message_type)
        return format_base64 if field.type == FieldDescriptor.TYPE_BYTES else None

    def _names(self, enum: EnumDescriptor) -> dict[str, int]:
        return enum_names(enum, self._word)


def descriptor_of(kind: type[Message]) -> Descriptor:
    """Return the descriptor of a message; the stubs have two classes for it."""
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
            raise InvalidValue(f"must be a list, not {name_json_type(values)}")
        found: list[Any] = []
        for value in values:
            try:
                found.append(one(value))
            except InvalidValue as error:
                raise error.within(f"[{len(found)}]") from None
        return found

    return read


def _map_reader(key: Read, one: Read, entry: Mapping[str, FieldDescriptor]) -> Read:
    keyed_by_text = entry["key"].type == FieldDescriptor.TYPE_STRING

    def read(values: Any) -> dict[Any, Any]:
        if type(values) is not dict:
            raise InvalidValue(f"must be an object, not {name_json_type(values)}")
        found: dict[Any, Any] = {}
        for name, value in values.items():
            try:
                found[read_text(name) if keyed_by_text else key(_parse_map_key(name))] = one(value)
            except InvalidValue as error:
                raise error.within(f"[{name!r}]") from None
        return found

    return read


def _parse_map_key(name: str) -> Any:
    """Parse the key of a map as the number or boolean that it stands for."""
    if name in ("true", "false"):
        return name == "true"
    return int(name) if name.removeprefix("-").isdecimal() and len(name) <= 20 else name


def _message_of(field: FieldDescriptor) -> Descriptor:
    """Return the message type of a field."""
    assert field.message_type is not None
    return field.message_type


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _unchanged(value: Any) -> Any:
    return value


def _not_compiled(_value: Any) -> Any:
    raise AssertionError("a message is read or written before its codec is complete")
