"""Codec of records and JSON objects: every field is present, null where unset; unknown members are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic

import orjson
from msgspec import Struct, field

from runtime.model import json_text
from runtime.model.json_text import Numeral
from runtime.model.lifecycles import Lifecycle
from runtime.stores.contract import Record
from runtime.stores.layouts.s3 import KeptInS3, Shape
from runtime.stores.store import Unstorable

Convert = Callable[[Any], Any]


class Unreadable(Exception):
    """An object that cannot be decoded as an entity of this kind; the message says why."""


class Snapshot(Struct, Generic[Record], frozen=True):
    """An entity as it was read or written: the record, the ETag, and the other members of the object."""

    record: Record
    etag: str
    version: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict)


class ObjectCodec(Generic[Record]):
    """The encoder and decoder of the objects of one kind of entity."""

    def __init__(self, lifecycle: Lifecycle, kept: KeptInS3) -> None:
        self._record = _StructCodec(kept.shape, kept)
        self._large = dict(kept.large.refs) if kept.large else {}
        self._key = lifecycle.key
        self._status = lifecycle.status
        self._states = lifecycle.states

    def decode(self, key: str, body: bytes) -> tuple[Record, dict[str, Any]]:
        """Decode the object of a key to a record, and the members that are no field of it."""
        try:
            found = json_text.decode_json(body)
        except json_text.NotJson as error:
            raise Unreadable(f"it is no JSON: {error}") from None
        if type(found) is not dict:
            raise Unreadable("it is no JSON object")
        for name, ref in self._large.items():
            if found.get(ref) is not None:
                found[name] = _SEPARATE
        record = self._record.read(found)
        if getattr(record, self._key) != key:
            raise Unreadable("it is a copy of another one")
        if getattr(record, self._status) not in self._states:
            raise Unreadable(f"its {self._status} is none that there is")
        others = {name: value for name, value in found.items() if name not in self._record.names}
        return record, others

    def encode(self, record: Record, others: Mapping[str, Any]) -> bytes:
        """Encode the object of a record, without the large values that have objects of their own."""
        members = self._record.write(record)
        for name, ref in self._large.items():
            if members[ref] is not None:
                members[name] = None
        members.update(others)
        try:
            return orjson.dumps(members, default=_verbatim, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
        except TypeError as error:
            raise Unstorable(f"cannot be encoded as JSON: {error}") from None


class _StructCodec:
    """The encoder and decoder of one record class."""

    def __init__(self, shape: Shape, kept: KeptInS3) -> None:
        self._record_class = shape.made
        self.names = frozenset(shape.types)
        self._optional = shape.optional
        self._writers: list[tuple[str, Convert | None]] = []
        self._readers: dict[str, Convert] = {}
        for name, kind in shape.types.items():
            assert name in shape.made.__struct_fields__, f"{shape.made.__name__} lacks {name}"
            write, read = _converters(kind, shape.words.get(name, {}), kept)
            self._writers.append((name, write))
            self._readers[name] = read

    def write(self, value: Any) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for name, write in self._writers:
            part = getattr(value, name)
            members[name] = part if part is None or write is None else write(part)
        return members

    def read(self, found: Any) -> Any:
        if type(found) is not dict:
            raise Unreadable("a part of it is no JSON object")
        values = {}
        for name, read in self._readers.items():
            # An unset field has its default; a field of type JSON may be null itself.
            if (part := found.get(name)) is _SEPARATE:
                continue
            if part is not None or (
                read is json_text.encode_json and name in found and name not in self._optional
            ):
                try:
                    values[name] = read(part)
                except (TypeError, ValueError, KeyError, OverflowError):
                    raise Unreadable(f"its {name} is not as it should be") from None
        try:
            return self._record_class(**values)
        except TypeError:
            raise Unreadable("it lacks fields") from None


_SEPARATE = object()
"""The placeholder of a large value with an object of its own."""
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def _format_time(moment: datetime) -> str | None:
    return None if moment == _NEVER else iso(moment)


def iso(moment: datetime) -> str:
    """Format a time as in every object."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def same(kind: str, one: Any, other: Any) -> bool:
    """Whether two values of a type are equal; JSON is compared by value, not by text."""
    if kind != "json" or one is None or other is None:
        return bool(one == other)
    return bool(
        json_text.decode_json((one or "null").encode()) == json_text.decode_json((other or "null").encode())
    )


def _parse_time(text: Any) -> datetime:
    moment = datetime.fromisoformat(_parse_string(text))
    if not 1 < moment.year < 9000:
        raise ValueError  # Adding a duration to it could overflow.
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parse_string(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _parse_integer(kind: str, value: Any) -> int:
    if type(value) is bool or not isinstance(value, (int, Numeral)):
        raise TypeError
    number = int(value)
    bits = 32 if kind.endswith("32") else 64
    low, high = (0, 2**bits) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if not low <= number < high:
        raise ValueError
    return number


def _parse_float(value: Any) -> float:
    if type(value) is bool or not isinstance(value, (int, float, Numeral)):
        raise TypeError
    return float(value)


def _parse_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _encode_json(text: str) -> orjson.Fragment:
    # The fragment is not escaped: invalid JSON in it would make the whole object unreadable.
    if text and (problem := json_text.json_problem(text)):
        raise Unstorable(f"a JSON field {problem}")
    return orjson.Fragment(text or "null")


def _converters(kind: str, words: Mapping[int, str], kept: KeptInS3) -> tuple[Convert | None, Convert]:
    """Return the encoder and the decoder of a type; no encoder for what is JSON already."""
    if kind.startswith("repeated "):
        write, read = _converters(kind.removeprefix("repeated "), words, kept)
        return (lambda items: [write(each) if write else each for each in items]), _parse_list(read)
    if kind.startswith("map<"):
        write, read = _converters(kind[4:-1].split(",")[1].strip(), words, kept)
        return (
            lambda entries: {key: write(each) if write else each for key, each in entries.items()},
            lambda found: {key: read(each) for key, each in found.items()},
        )
    if kind in kept.messages:
        codec = _StructCodec(kept.messages[kind], kept)
        return codec.write, codec.read
    if kind == "enum":
        numbers = {word: number for number, word in words.items()}
        return words.__getitem__, numbers.__getitem__
    if kind == "timestamp":
        return _format_time, _parse_time
    if kind == "json":
        return _encode_json, json_text.encode_json
    if kind == "bool":
        return None, _parse_bool
    if kind in ("double", "float"):
        return None, _parse_float
    return None, _parse_string if kind == "string" else partial(_parse_integer, kind)


def _parse_list(read: Convert) -> Convert:
    def read_all(found: Any) -> tuple[Any, ...]:
        if type(found) is not list:
            raise TypeError
        return tuple(map(read, found))

    return read_all


def _verbatim(value: Any) -> orjson.Fragment:
    if isinstance(value, Numeral):
        return orjson.Fragment(str(value))
    raise TypeError(type(value).__name__)
