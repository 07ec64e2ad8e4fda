"""Any message of a type, from its descriptor: right and wrong values alike."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["0", "007", "-1", "9223372036854775808", "\u0661", "e" * 2000, "é" * 700, "\u0000"]),
)
NUMBERS = {
    FieldDescriptor.TYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_ENUM: st.integers(-2, 9),
}
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_STRING: TEXTS,
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=12),
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    **NUMBERS,
}


def messages(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Messages with some of their fields set."""
    fields = {field.name: _values(field) for field in kind.DESCRIPTOR.fields}
    return st.fixed_dictionaries({}, optional=fields).map(lambda values: kind(**values))


def _values(field: Any) -> st.SearchStrategy[Any]:
    inner = field.message_type
    if inner is None:
        single = SCALARS[field.type]
        return st.lists(single, max_size=3) if field.is_repeated else single
    if inner.GetOptions().map_entry:
        return st.dictionaries(TEXTS, TEXTS, max_size=3)
    kind = GetMessageClass(inner)
    return st.lists(messages(kind), max_size=3) if field.is_repeated else messages(kind)
