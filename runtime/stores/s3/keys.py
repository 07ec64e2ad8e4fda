"""The keys of a bucket: format and parse those of entities and index entries."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from runtime.model.lifecycles import Lifecycle
from runtime.stores.layouts.s3 import KeptInS3, KeyIndex

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEX = "0123456789abcdef"
_WIDTH = 10
"""Digits of a minute, for which the order of texts is that of times in the next 19,000 years."""


def minute(moment: datetime) -> str:
    """Format the minute of a time for a key."""
    seconds = (moment - _EPOCH).total_seconds()
    return f"{max(0, int(seconds // 60)):0{_WIDTH}d}"


def moment_of(text: str) -> datetime:
    """Parse the minute in a key; the epoch for a malformed one."""
    return _EPOCH + timedelta(minutes=int(text)) if text.isascii() and text.isdigit() else _EPOCH


def derived_uuid(text: str) -> str:
    """Derive a version 4 UUID from a text, deterministically."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


class ObjectKeyPattern:
    """A pattern that formats and parses keys of one kind."""

    def __init__(self, text: str) -> None:
        self._text = text
        parts = [(before, name) for before, name, _, _ in string.Formatter().parse(self._text)]
        self.names = tuple(name for _, name in parts if name)
        expression = "".join(
            re.escape(before) + (f"(?P<{name}>[^/]+)" if name else "") for before, name in parts
        )
        self._expression = re.compile(expression)

    def key(self, values: Mapping[str, str]) -> str:
        """Format the key with these values."""
        return self._text.format_map(values)

    def parse(self, key: str) -> dict[str, str] | None:
        """Parse the values in a key; None where it is of another kind."""
        found = self._expression.fullmatch(key)
        return found.groupdict() if found else None

    def prefix(self, values: Mapping[str, str]) -> str:
        """Return the longest common prefix of all keys with these values."""
        made = ""
        for before, name, _, _ in string.Formatter().parse(self._text):
            made += before
            if name is None:
                break
            if name not in values:
                return made
            made += values[name]
        return made


class Keys:
    """All keys of one kind of entity."""

    def __init__(self, lifecycle: Lifecycle, kept: KeptInS3) -> None:
        self._key = lifecycle.key
        self._shard = kept.shard
        self.object = ObjectKeyPattern(kept.object)
        self.indexes = {name: _Index(each) for name, each in kept.indexes.items()}
        self._large = ObjectKeyPattern(kept.large.object) if kept.large else None
        self.checkpoint = kept.repairs.mark if kept.repairs else None
        """Key of the checkpoint of the last repair."""
        digits = kept.shard.digits if kept.shard else 0
        self.shards: tuple[str, ...] = tuple(_shard_names(digits)) if kept.shard else ("",)

    def shard_of(self, key: str) -> str:
        """Return the shard of an entity."""
        return key[: self._shard.digits] if self._shard else ""

    @staticmethod
    def is_storable(key: str) -> bool:
        """Whether a text can be a segment of an object key."""
        return bool(key) and "/" not in key and key not in (".", "..")

    def path_of(self, key: str) -> str:
        """Return the object key of an entity."""
        return self.object.key(self._values(key))

    def large(self, key: str, name: str, suffix: str = "") -> str:
        """Return the object key of a large value; `suffix` is of the attempt where there are no versions."""
        assert self._large is not None
        stem, dot, ending = self._large.key({**self._values(key), "field": name}).rpartition(".")
        return f"{stem}{suffix}{dot}{ending}" if dot else f"{ending}{suffix}"

    def prefix(self, shard: str | None) -> str:
        """Return the prefix of the entities of one shard, or of all."""
        return self.object.prefix(self._of_shard(shard))

    def key_of(self, key: str) -> str | None:
        """Parse the key of the entity from that of its object; None where it is of another kind."""
        return self._check_shard(self.object.parse(key))

    def entries(self, record: Any, state: int) -> dict[str, str]:
        """Return the index entries of a record in a state, by index."""
        key: str = getattr(record, self._key)
        return {
            name: made
            for name, index in self.indexes.items()
            if state in index.states and (made := self.entry(name, key, record)) is not None
        }

    def entry(self, index: str, key: str, record: Any) -> str | None:
        """Format the entry of a record in an index; None where it lacks a time that is in the key."""
        values = self._values(key)
        known = self.indexes[index]
        for name in known.pattern.names:
            if name not in values:
                value = getattr(record, name)
                if value is None:
                    return None
                values[name] = minute(value) if isinstance(value, datetime) else str(value)
        return known.pattern.key(values)

    def parse_entry(self, index: str, key: str) -> tuple[str, str] | None:
        """Parse the key of the entity and the minute from an entry; None for a malformed one."""
        known = self.indexes[index]
        found = known.pattern.parse(key)
        key_found = self._check_shard(found)
        if found is None or key_found is None:
            return None
        return key_found, found[known.at] if known.at else ""

    def index_prefix(self, index: str, shard: str | None) -> str:
        """Return the prefix of the entries of one shard, or of all."""
        return self.indexes[index].pattern.prefix(self._of_shard(shard))

    def _values(self, key: str) -> dict[str, str]:
        values = {self._key: key}
        if self._shard:
            values[self._shard.field] = self.shard_of(key)
        return values

    def _of_shard(self, shard: str | None) -> dict[str, str]:
        return {self._shard.field: shard} if self._shard and shard is not None else {}

    def _check_shard(self, found: Mapping[str, str] | None) -> str | None:
        """Return the parsed key, if it is in its own shard."""
        if found is None:
            return None
        key = found[self._key]
        return key if not self._shard or found[self._shard.field] == self.shard_of(key) else None


class _Index:
    def __init__(self, index: KeyIndex) -> None:
        self.pattern = ObjectKeyPattern(index.key)
        self.states: Collection[int] = index.states
        self.at = index.at


def _shard_names(digits: int) -> list[str]:
    found = [""]
    for _ in range(digits):
        found = [f"{begun}{digit}" for begun in found for digit in _HEX]
    return found
