"""Helpers for protobuf descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message


def fields_of(message: type[Message] | Message) -> Sequence[FieldDescriptor]:
    """Return the fields of a message, in their order."""
    # The stubs have two classes of descriptors, one the implementation of the other.
    return cast("Descriptor", message.DESCRIPTOR).fields


def map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """Return the value field of a map's entries; None if the field is no map."""
    nested = field.message_type
    if nested is None or not nested.GetOptions().map_entry:
        return None
    return nested.fields_by_name["value"]


def is_message_list(field: FieldDescriptor) -> bool:
    return field.is_repeated and field.message_type is not None and map_value(field) is None
