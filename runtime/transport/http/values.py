"""Single values between JSON and protobuf: each reader takes what JSON gave, or says what it must be."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

from runtime.model.json_text import CannotWrite, Numeral, write

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
"""Up to here a float holds every whole number."""
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BARE_EPOCH = datetime(1970, 1, 1)
_WHEN = "must be a time as RFC 3339 has it, such as 2030-01-31T12:00:00Z"


class Misread(Exception):
    """A value that is none of its field, and the way to it, which grows while it is passed upwards."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def within(self, part: str) -> Misread:
        """The same one level further up: inside a field, or inside an element such as `[3]`."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        return Misread(self.problem, f"{part}{dot}{self.path}")


def kind_of(value: Any) -> str:
    """What a value is in the words of JSON."""
    if value is None:
        return "null"
    for type_, name in ((bool, "a boolean"), (Numeral, "a number"), (str, "text"), (dict, "an object")):
        if isinstance(value, type_):
            return name
    return "a list" if isinstance(value, list) else "a number"


def text(value: Any) -> str:
    """A text, without half surrogates, which no encoding has."""
    if type(value) is not str:
        raise Misread(f"must be text, not {kind_of(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Misread("must not have half of a surrogate pair") from None
    return value


def boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise Misread(f"must be true or false, not {kind_of(value)}")
    return value


def number(value: Any) -> float:
    if type(value) in (int, float, Numeral):
        found = float(value)
        if abs(found) != float("inf"):
            return found
    raise Misread(f"must be a number that a double can hold, not {kind_of(value)}")


def whole(kind: int) -> Read:
    """A whole number of a type of protobuf."""
    least, most = _RANGES[kind]
    problem = f"must be a whole number from {least} to {most}"

    def read(value: Any) -> int:
        found = value
        if type(value) is Numeral:
            found = _whole_of(value)
        if type(found) is not int or not least <= found <= most:
            raise Misread(problem)
        return found

    return read


def _whole_of(numeral: Numeral) -> int | None:
    """A numeral such as 3.0 or 18446744073709551615 as what it is, if it is whole."""
    if re.fullmatch(r"-?[0-9]{1,20}", numeral):
        return int(numeral)
    found = float(numeral)
    return int(found) if found.is_integer() and abs(found) <= _EXACT else None


def octets(value: Any) -> bytes:
    try:
        return binascii.a2b_base64(text(value), strict_mode=True)
    except (binascii.Error, ValueError):
        raise Misread("must be base64") from None


def instant(value: Any) -> Timestamp:
    found = _INSTANT.fullmatch(value) if type(value) is str else None
    if found is None:
        raise Misread(_WHEN)
    day, hour, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{hour}{'+00:00' if zone in 'Zz' else zone}")
        past = moment.astimezone(UTC) - _EPOCH
    except (ValueError, OverflowError):  # the latter where the year is 0 or 10000 in UTC
        raise Misread(_WHEN) from None
    return Timestamp(seconds=past.days * 86400 + past.seconds, nanos=int((fraction or "0").ljust(9, "0")))


def inline_json(value: Any) -> str:
    """JSON inside JSON, as the text that the field holds."""
    try:
        return write(value)
    except CannotWrite as problem:
        raise Misread(str(problem)) from None


def enum_names(enum: EnumDescriptor, word: Callable[[str, str], str]) -> dict[str, int]:
    """The values of an enum by the names that JSON has for them."""
    return {word(enum.full_name, name): value.number for name, value in enum.values_by_name.items()}


def choice(names: Mapping[str, int]) -> Read:
    """A value of an enum by its name."""
    problem = f"must be one of {', '.join(names)}"

    def read(value: Any) -> int:
        found = names.get(value) if type(value) is str else None
        if found is None:
            raise Misread(problem)
        return found

    return read


def shown_choice(names: Mapping[str, int]) -> Write:
    """The name of a value; a number that has none stays a number."""
    by_number: dict[int, str | int] = {}
    for name, number in names.items():
        by_number.setdefault(number, name)

    def show(value: int) -> str | int:
        return by_number.get(value, value)

    return show


def shown_octets(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


def shown_instant(value: Timestamp) -> str:
    return f"{_shown_second(value.seconds)}.{value.nanos // 1000:06}Z"


def shown_millisecond(value: Timestamp) -> str:
    return f"{_shown_second(value.seconds)}.{value.nanos // 1_000_000:03}Z"


@lru_cache(maxsize=1024)
def _shown_second(seconds: int) -> str:
    """Much of what is shown together happened in the same second."""
    return (_BARE_EPOCH + timedelta(seconds=seconds)).isoformat()


SCALARS: Mapping[int, Read] = {
    FieldDescriptor.TYPE_STRING: text,
    FieldDescriptor.TYPE_BOOL: boolean,
    FieldDescriptor.TYPE_DOUBLE: number,
    FieldDescriptor.TYPE_FLOAT: number,
    FieldDescriptor.TYPE_BYTES: octets,
    **{kind: whole(kind) for kind in _RANGES},
}
"""How a value of each type of protobuf is read."""
