"""Codec between records and hashes: every value is a text in Redis, and an unset field is not there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Generic

import msgspec
import orjson

from runtime.model.lifecycles import Lifecycle
from runtime.stores.contract import Record
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.semantics.rules import Rules

GIVEN, SIGNATURE, TURN = ".given", ".signature", ".turn"
"""Fields of a hash that are none of the record: what it was created with as one text, its needs, and the
microseconds of its creation where the record has milliseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ANY = "any"
"""The signature of the empty set."""

Words = Mapping[str, Mapping[int, str]]
_Write = Callable[[Any], str]
_Read = Callable[[str], Any]


def to_microseconds(moment: datetime) -> int:
    """Convert a time to what Redis has."""
    return (moment - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=1024)
def parse_moment(text: str | float) -> datetime:
    """Convert microseconds to a time, cached: entities that were changed together have the same."""
    return _EPOCH + timedelta(microseconds=int(text))


def compute_signature(texts: Collection[str]) -> str:
    """Compute what stands for a set of texts in the name of a key."""
    if not texts:
        return _ANY
    named = json.dumps(sorted(set(texts)), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def decode_json(text: str) -> Any:
    """Decode what a script has written as JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text, strict=False)  # In it is what others wrote, and what is no text.


def unpack_fields(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge what an entity was created with into the fields of its hash; what was written later counts."""
    given = values.get(GIVEN)
    if given is None:
        return values
    found = {**decode_json(given), **values}
    del found[GIVEN]
    return found


class HashCodec(Generic[Record]):
    """How the records of one kind are written to and read from their hashes."""

    def __init__(self, rules: Rules, record: type[Record], words: Words) -> None:
        self._record: Callable[..., Record] = record
        self._rules = rules
        self.words = words
        self._numbers = {
            name: {word: number for number, word in each.items()} for name, each in words.items()
        }
        self.writers = {name: self._writer(name) for name in rules.names}
        self._readers = [(name, self._reader(name)) for name in rules.names]

    def encode(self, name: str, value: Any) -> str | None:
        """Encode the value of a field; None where it is unset."""
        return None if value is None else self.writers[name](value)

    def decode_all(self, values: Sequence[str | None]) -> list[Record | None]:
        """Decode what a script answers: the values of each record; none at all where there is no record."""
        width = len(self._readers)
        return [self._decode(values[place : place + width]) for place in range(0, len(values), width)]

    def _decode(self, values: Sequence[str | None]) -> Record | None:
        # A field that is unset is not there: the record has its default.
        found = {
            name: read(text)
            for (name, read), text in zip(self._readers, values, strict=True)
            if text is not None
        }
        return self._record(**found) if found else None

    def decode_row(self, row: list[str]) -> Record | None:
        """Decode a hash, which comes as names and values in turn; None for an empty one."""
        if not row:
            return None
        return self.decode_fields(unpack_fields(dict(zip(row[0::2], row[1::2], strict=True))))

    def decode_fields(self, values: Mapping[str, str]) -> Record:
        """Decode fields, of which there may be more than the record has."""
        find = values.get
        # A field that is unset is not there: the record has its default.
        return self._record(
            **{name: read(found) for name, read in self._readers if (found := find(name)) is not None}
        )

    def number(self, name: str, word: str) -> int:
        """Return the number of a word."""
        numbers = self._numbers.get(name)
        return numbers[word] if numbers and word in numbers else int(word)

    def word(self, name: str, number: int) -> str:
        """Return the word of a number."""
        words = self.words.get(name)
        return words[number] if words and number in words else str(number)

    def _writer(self, name: str) -> _Write:
        types = self._rules.types_of(name)
        if datetime in types:
            return lambda value: str(to_microseconds(value))
        if bool in types:
            return lambda value: "true" if value else "false"
        if name in self.words:
            return lambda value: self.word(name, value)
        if str in types:
            return str
        if tuple in types or list in types:
            return lambda value: orjson.dumps(list(value)).decode() if value else "[]"
        if int in types or float in types:
            return str
        return lambda value: msgspec.json.encode(value).decode()

    def _reader(self, name: str) -> _Read:
        types = self._rules.types_of(name)
        if datetime in types:
            return parse_moment
        if bool in types:
            return "true".__eq__
        if name in self.words:
            return lambda text: self.number(name, text)
        if str in types:
            return str
        if tuple in types:
            return lambda text: () if text == "[]" else tuple(json.loads(text))
        if list in types:
            return json.loads
        if int in types:
            return int
        if float in types:
            return float
        kind = next((each for each in types if each is not type(None)), Any)
        return lambda text: msgspec.json.decode(text, type=kind)


class NewRecords(Generic[Record]):
    """The form in which a script gets new records: most of each as one text, and the rest apart."""

    def __init__(
        self, lifecycle: Lifecycle, rules: Rules, codec: HashCodec[Record], *, is_packed: bool
    ) -> None:
        stamps = {*lifecycle.creation_stamps} - {rules.not_before}
        kept = lifecycle.stored_as(KeptInRedis)
        written = {*stamps, kept.sequence if kept else ""}
        # The script knows the state in which an entity begins, unless there are several.
        written |= set() if lifecycle.begins else {lifecycle.status}
        apart = clearable_fields(rules) | {lifecycle.status} if is_packed else {*rules.names}
        fields = [(name, codec.writers[name]) for name in rules.names if name not in written]
        self._packed = [each for each in fields if each[0] not in apart]
        self.packed = [name for name, _ in self._packed]
        self._apart = [each for each in fields if each[0] in apart]
        holder = rules.lease.holder if rules.lease else None
        self._needs = holder.needs if holder else None

    def encode(self, record: Any) -> tuple[bytes, bytes]:
        """Encode a record: the text that stays one, and the fields that stand by themselves."""
        packed = {
            name: write(value) for name, write in self._packed if (value := getattr(record, name)) is not None
        }
        apart = {
            name: write(value) for name, write in self._apart if (value := getattr(record, name)) is not None
        }
        if self._needs is not None:
            apart[SIGNATURE] = compute_signature(getattr(record, self._needs))
        return _to_json(packed), _to_json(apart)


def clearable_fields(rules: Rules) -> set[str]:
    """Return the fields that a change may unset, which therefore are never in the text of the creation."""
    found = {*rules.waits}
    for change in rules.changes.values():
        found |= {*change.clear, *change.from_request}
    if (lease := rules.lease) is not None:
        found |= {each for each in (lease.owner, lease.expires, lease.token) if each}
    return found


def _to_json(texts: Mapping[str, str]) -> bytes:
    if not texts:
        return b""
    try:
        return orjson.dumps(texts)
    except TypeError:
        "".join(texts.values()).encode()  # It says what is wrong.
        raise
