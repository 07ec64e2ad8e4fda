"""Codec of single values between JSON and protobuf: a reader returns the value, or raises InvalidValue."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from runtime.model.json_text import CannotWrite, Numeral, encode_json

Read = Callable[[Any], Any]
Write = Callable[[Any], Any]

_RANGES: Mapping[int, tuple[int, int]] = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SINT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}
_EXACT = 2**53
"""Up to here a float represents every whole number."""
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BARE_EPOCH = datetime(1970, 1, 1)
_WHEN = "must be a time as RFC 3339 has it, such as 2030-01-31T12:00:00Z"


class InvalidValue(Exception):
    """An invalid value of a field, and its path, which is extended while the error propagates."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def within(self, part: str) -> InvalidValue:
        """Return the error with its path extended by a field, or by an element such as `[3]`."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return InvalidValue(self.problem, f"{part}{dot}{self.path}")


def name_json_type(value: Any) -> str:
    """Return the name of a value's JSON type."""
    if value is None:
        return "null"
    for type_, name in ((bool, "a boolean"), (Numeral, "a number"), (str, "text"), (dict, "an object")):
        if isinstance(value, type_):
            return name
    return "a list" if isinstance(value, list) else "a number"


def read_text(value: Any) -> str:
    """Read a text without lone surrogates."""
    if type(value) is not str:
        raise InvalidValue(f"must be text, not {name_json_type(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidValue("must not have half of a surrogate pair") from None
    return value


def read_boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise InvalidValue(f"must be true or false, not {name_json_type(value)}")
    return value


def read_number(value: Any) -> float:
    if type(value) in (int, float, Numeral):
        found = float(value)
        if abs(found) != float("inf"):
            return found
    raise InvalidValue(f"must be a number that a double can hold, not {name_json_type(value)}")


def make_int_reader(kind: int) -> Read:
    """Make the reader of an integer type of protobuf."""
    least, most = _RANGES[kind]
    problem = f"must be a whole number from {least} to {most}"

    def read(value: Any) -> int:
        found = value
        if type(value) is Numeral:
            found = _parse_whole(value)
        if type(found) is not int or not least <= found <= most:
            raise InvalidValue(problem)
        return found

    return read


def _parse_whole(numeral: Numeral) -> int | None:
    """Parse a numeral such as 3.0 or 18446744073709551615, if it is whole."""
    if re.fullmatch(r"-?[0-9]{1,20}", numeral):
        return int(numeral)
    found = float(numeral)
    return int(found) if found.is_integer() and abs(found) <= _EXACT else None


def read_base64(value: Any) -> bytes:
    try:
        return binascii.a2b_base64(read_text(value), strict_mode=True)
    except (binascii.Error, ValueError):
        raise InvalidValue("must be base64") from None


def read_timestamp(value: Any) -> Timestamp:
    found = _INSTANT.fullmatch(value) if type(value) is str else None
    if found is None:
        raise InvalidValue(_WHEN)
    day, hour, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{hour}{'+00:00' if zone in 'Zz' else zone}")
        past = moment.astimezone(UTC) - _EPOCH
    except (ValueError, OverflowError):  # the latter where the year is 0 or 10000 in UTC
        raise InvalidValue(_WHEN) from None
    return Timestamp(seconds=past.days * 86400 + past.seconds, nanos=int((fraction or "0").ljust(9, "0")))


def read_inline_json(value: Any) -> str:
    """Read nested JSON as the text of the field."""
    try:
        return encode_json(value)
    except CannotWrite as problem:
        raise InvalidValue(str(problem)) from None


def enum_names(enum: EnumDescriptor, word: Callable[[str, str], str]) -> dict[str, int]:
    """Return the values of an enum by their JSON names."""
    return {word(enum.full_name, name): value.number for name, value in enum.values_by_name.items()}


def make_enum_reader(names: Mapping[str, int]) -> Read:
    """Make the reader of an enum."""
    problem = f"must be one of {', '.join(names)}"

    def read(value: Any) -> int:
        found = names.get(value) if type(value) is str else None
        if found is None:
            raise InvalidValue(problem)
        return found

    return read


def make_enum_writer(names: Mapping[str, int]) -> Write:
    """Make the writer of an enum; a number without a name stays a number."""
    by_number: dict[int, str | int] = {}
    for name, number in names.items():
        by_number.setdefault(number, name)

    def show(value: int) -> str | int:
        return by_number.get(value, value)

    return show


def format_base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


def format_timestamp(value: Timestamp) -> str:
    return f"{_format_second(value.seconds)}.{value.nanos // 1000:06}Z"


def format_timestamp_ms(value: Timestamp) -> str:
    return f"{_format_second(value.seconds)}.{value.nanos // 1_000_000:03}Z"


@lru_cache(maxsize=1024)
def _format_second(seconds: int) -> str:
    """Format a second; cached, as timestamps of one response are often of the same second."""
    return (_BARE_EPOCH + timedelta(seconds=seconds)).isoformat()


SCALARS: Mapping[int, Read] = {
    FieldDescriptor.TYPE_STRING: read_text,
    FieldDescriptor.TYPE_BOOL: read_boolean,
    FieldDescriptor.TYPE_DOUBLE: read_number,
    FieldDescriptor.TYPE_FLOAT: read_number,
    FieldDescriptor.TYPE_BYTES: read_base64,
    **{kind: make_int_reader(kind) for kind in _RANGES},
}
"""The reader of each scalar type of protobuf."""
