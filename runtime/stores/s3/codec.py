"""Between records and JSON objects: every field is there, null where it is unset; what is unknown is kept."""

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
    """An object that is no entity of this kind; the message says why."""


class Snapshot(Struct, Generic[Record], frozen=True):
    """An entity as it was read or written: the record, the object's tag, and what else is in the object."""

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
        """The record of the object of a key, and the fields of the object that no record has."""
        try:
            found = json_text.decode_json(body)
        except json_text.NotJson as error:
            raise Unreadable(f"it is no JSON: {error}") from None
        if type(found) is not dict:
            raise Unreadable("it is no JSON object")
        for name, ref in self._large.items():
            if found.get(ref) is not None:
                found[name] = _ELSEWHERE
        record = self._record.read(found)
        if getattr(record, self._key) != key:
            raise Unreadable("it is a copy of another one")
        if getattr(record, self._status) not in self._states:
            raise Unreadable(f"its {self._status} is none that there is")
        others = {name: value for name, value in found.items() if name not in self._record.names}
        return record, others

    def encode(self, record: Record, others: Mapping[str, Any]) -> bytes:
        """The object of a record. A value that is kept apart is not in it."""
        shown = self._record.write(record)
        for name, ref in self._large.items():
            if shown[ref] is not None:
                shown[name] = None
        shown.update(others)
        try:
            return orjson.dumps(shown, default=_verbatim, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
        except TypeError as error:
            raise Unstorable(f"cannot be kept as JSON: {error}") from None


class _StructCodec:
    """How the records of one class are written and read."""

    def __init__(self, shape: Shape, kept: KeptInS3) -> None:
        self._made = shape.made
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
        shown: dict[str, Any] = {}
        for name, write in self._writers:
            part = getattr(value, name)
            shown[name] = part if part is None or write is None else write(part)
        return shown

    def read(self, found: Any) -> Any:
        if type(found) is not dict:
            raise Unreadable("a part of it is no JSON object")
        values = {}
        for name, read in self._readers.items():
            # What is unset has the default of its field; JSON is itself able to be null.
            if (part := found.get(name)) is _ELSEWHERE:
                continue
            if part is not None or (
                read is json_text.encode_json and name in found and name not in self._optional
            ):
                try:
                    values[name] = read(part)
                except (TypeError, ValueError, KeyError, OverflowError):
                    raise Unreadable(f"its {name} is not as it should be") from None
        try:
            return self._made(**values)
        except TypeError:
            raise Unreadable("it lacks fields") from None


_ELSEWHERE = object()
"""What stands for a value that is kept apart."""
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def _written_time(moment: datetime) -> str | None:
    return None if moment == _NEVER else iso(moment)


def iso(moment: datetime) -> str:
    """A time as every object has it."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def same(kind: str, one: Any, other: Any) -> bool:
    """Whether two values of a type are the same, however their JSON is written."""
    if kind != "json" or one is None or other is None:
        return bool(one == other)
    return bool(
        json_text.decode_json((one or "null").encode()) == json_text.decode_json((other or "null").encode())
    )


def _moment(text: Any) -> datetime:
    moment = datetime.fromisoformat(_text(text))
    if not 1 < moment.year < 9000:
        raise ValueError  # Nobody could add to it.
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _integer(kind: str, value: Any) -> int:
    if type(value) is bool or not isinstance(value, (int, Numeral)):
        raise TypeError
    number = int(value)
    bits = 32 if kind.endswith("32") else 64
    low, high = (0, 2**bits) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if not low <= number < high:
        raise ValueError
    return number


def _float(value: Any) -> float:
    if type(value) is bool or not isinstance(value, (int, float, Numeral)):
        raise TypeError
    return float(value)


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError
    return value


def _json(text: str) -> orjson.Fragment:
    # It stands in the object as it is, so anything else in it would make the whole object unreadable.
    if text and (problem := json_text.json_problem(text)):
        raise Unstorable(f"what has to be kept as JSON {problem}")
    return orjson.Fragment(text or "null")


def _converters(kind: str, words: Mapping[int, str], kept: KeptInS3) -> tuple[Convert | None, Convert]:
    """What writes and what reads a value of a type; nothing has to write what JSON has as it is."""
    if kind.startswith("repeated "):
        write, read = _converters(kind.removeprefix("repeated "), words, kept)
        return (lambda items: [write(each) if write else each for each in items]), _each(read)
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
        return _written_time, _moment
    if kind == "json":
        return _json, json_text.encode_json
    if kind == "bool":
        return None, _flag
    if kind in ("double", "float"):
        return None, _float
    return None, _text if kind == "string" else partial(_integer, kind)


def _each(read: Convert) -> Convert:
    def read_all(found: Any) -> tuple[Any, ...]:
        if type(found) is not list:
            raise TypeError
        return tuple(map(read, found))

    return read_all


def _verbatim(value: Any) -> orjson.Fragment:
    if isinstance(value, Numeral):
        return orjson.Fragment(str(value))
    raise TypeError(type(value).__name__)
