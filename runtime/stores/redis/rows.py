"""Between records and hashes: every value is a text in Redis, and a field that is unset is not there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic

from runtime.model.lifecycles import KeptInRedis
from runtime.stores.redis.given import unpacked
from runtime.stores.store import Record, Unstorable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ANY = "any"
"""The signature of the empty set."""

Write = Callable[[Any], Any]
Read = Callable[[str], Any]
_INTEGERS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64")


def microseconds(moment: datetime) -> int:
    """A time as Redis has it."""
    return (moment - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=1024)
def moment_of(text: str | float) -> datetime:
    """A time as Python has it. Entities that were changed together have the same."""
    return _EPOCH + timedelta(microseconds=int(text))


def signature(texts: Collection[str]) -> str:
    """What stands for a set of texts in the name of a key."""
    if not texts:
        return _ANY
    named = json.dumps(sorted(set(texts)), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def listed(texts: Collection[str]) -> str:
    """A list of texts for a hash."""
    return json.dumps(list(texts), ensure_ascii=False, separators=(",", ":")) if texts else "[]"


def texts_of(text: str) -> tuple[str, ...]:
    """A list of texts as it stands in a hash."""
    return () if text == "[]" else tuple(json.loads(text))


class Rows(Generic[Record]):
    """How the records of one kind are written to and read from their hashes."""

    def __init__(self, kept: KeptInRedis, record: type[Record]) -> None:
        self.record: Callable[..., Record] = record
        self.names = record.__struct_fields__
        self.values_of: Callable[[Record], tuple[Any, ...]] = attrgetter(*self.names)
        self.words = kept.words
        self.numbers: Mapping[str, Mapping[str, int]] = {
            name: {word: number for number, word in words.items()} for name, words in kept.words.items()
        }
        self.writers: dict[str, Write | None] = {name: self._writer(kept, name) for name in self.names}
        self._readers = [(name, self._reader(kept, name)) for name in self.names]

    def read_fields(self, values: Mapping[str, str]) -> Record:
        """The record of a hash, of which it may have more than it needs."""
        find = unpacked(values).get
        # A field that is unset is not in the hash: the record has its default.
        return self.record(
            **{
                name: found if read is None else read(found)
                for name, read in self._readers
                if (found := find(name)) is not None
            }
        )

    def made(self, values: Sequence[Any]) -> Record:
        """The record of values that are as it has them, in the order of its fields."""
        return self.record(**dict(zip(self.names, values, strict=True)))

    def read(self, row: Sequence[str]) -> Record:
        """The record of a hash, given as names and values in turn."""
        return self.read_fields(dict(zip(row[0::2], row[1::2], strict=True)))

    def written(self, name: str, value: Any) -> Any:
        """A value that is set, as it stands in a hash."""
        write = self.writers[name]
        return value if write is None else write(value)

    def _writer(self, kept: KeptInRedis, name: str) -> Write | None:
        kind = kept.types[name]
        if kind == "timestamp":
            return microseconds
        if kind == "bool":
            return lambda value: "true" if value else "false"
        if kind == "repeated string":
            return listed
        if kind == "enum":
            words = kept.words[name]
            return lambda value: words[value]
        return str if kind in ("double", "float") else None

    def _reader(self, kept: KeptInRedis, name: str) -> Read | None:
        kind = kept.types[name]
        if kind in _INTEGERS:
            return int
        if kind == "timestamp":
            return moment_of
        if kind == "bool":
            return "true".__eq__
        if kind == "repeated string":
            return texts_of
        if kind == "enum":
            return self.numbers[name].__getitem__
        return float if kind in ("double", "float") else None


def storable(text: str, most: int | None = None) -> str:
    """A text as it can be kept: cut at a character, and without half a surrogate pair."""
    if text.isascii():
        return text if most is None else text[:most]
    encoded = text.encode("utf-8", "replace")
    return (encoded if most is None else encoded[:most]).decode("utf-8", "ignore")


def refused(name: str) -> Unstorable:
    """What whoever gave a value is told that the store does not take."""
    return Unstorable(f"{name}: the store cannot hold this value")
