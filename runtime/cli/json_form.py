"""Format answers as JSON: fields with their names of the spec, and numbers as numbers."""

from __future__ import annotations

import json
from typing import Any, cast

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from runtime.cli.descriptors import map_value

_LONG = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)
_LONG_WRAPPERS = ("google.protobuf.Int64Value", "google.protobuf.UInt64Value")


def format_json(answer: Message) -> str:
    """Format an answer as indented JSON."""
    data = json_format.MessageToDict(
        answer, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return json.dumps(_convert_numbers(data, cast("Descriptor", answer.DESCRIPTOR)), indent=2)


def _convert_numbers(data: Any, descriptor: Descriptor) -> Any:
    """Convert the texts that protobuf's JSON has for 64-bit numbers to numbers."""
    if descriptor.full_name in _LONG_WRAPPERS:
        return int(data)
    if not isinstance(data, dict) or descriptor.full_name.startswith("google.protobuf."):
        return data
    return {name: _convert_field(value, descriptor.fields_by_name[name]) for name, value in data.items()}


def _convert_field(value: Any, field: FieldDescriptor) -> Any:
    if (item := map_value(field)) is not None:
        return {key: _convert_field(each, item) for key, each in value.items()}
    if isinstance(value, list) and field.is_repeated:
        return [_convert_one(each, field) for each in value]
    return _convert_one(value, field)


def _convert_one(value: Any, field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        return _convert_numbers(value, field.message_type)
    return int(value) if field.cpp_type in _LONG else value
