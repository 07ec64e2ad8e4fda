"""The compiled descriptors of the taskqueue in words that a test can compare."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor

from generated import taskqueue_internal_pb2, taskqueue_public_pb2

PUBLIC: FileDescriptor = taskqueue_public_pb2.DESCRIPTOR
INTERNAL: FileDescriptor = taskqueue_internal_pb2.DESCRIPTOR
FILES = (PUBLIC, INTERNAL)

_SCALARS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT32: "uint32",
}


def messages(*files: FileDescriptor) -> dict[str, Descriptor]:
    """Every message by name."""
    return {name: each for file in files for name, each in file.message_types_by_name.items()}


def enums(*files: FileDescriptor) -> dict[str, EnumDescriptor]:
    """Every enum by name."""
    return {name: each for file in files for name, each in file.enum_types_by_name.items()}


def methods(file: FileDescriptor) -> dict[str, list[str]]:
    """The methods of every service of a file, in their order."""
    return {
        name: [method.name for method in service.methods] for name, service in file.services_by_name.items()
    }


def fields(*files: FileDescriptor) -> Iterator[FieldDescriptor]:
    """Every field of every message."""
    for message in messages(*files).values():
        yield from message.fields


def format_message(message: Descriptor) -> str:
    """A message as a list such as `string job_id, repeated JobStatus status_filter`."""
    return ", ".join(f"{format_type(field)} {field.name}" for field in message.fields)


def format_type(field: FieldDescriptor) -> str:
    """The type of a field as it is written in a .proto file, without packages."""
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, value = (format_type(inner.fields_by_name[name]) for name in ("key", "value"))
        return f"map<{key},{value}>"
    name = inner.name if inner is not None else _format_plain_type(field)
    return f"repeated {name}" if field.is_repeated else name


def _format_plain_type(field: FieldDescriptor) -> str:
    return field.enum_type.name if field.enum_type is not None else _SCALARS[field.type]
