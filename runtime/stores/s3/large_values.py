"""Large values of entities: each in an object of its own, to which the entity refers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Generic

from msgspec.structs import replace

from runtime.model.lifecycles import Lifecycle
from runtime.stores.contract import Record
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.client.errors import Gone
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.keys import Keys


class LargeValues(Generic[Record]):
    """The large values of one kind of entity.

    The entity refers to a version of its value, so a later write of the same key does not affect it. Where
    the bucket has no versions, the fence is in the key.
    """

    def __init__(self, lifecycle: Lifecycle, kept: KeptInS3, keys: Keys, objects: Objects) -> None:
        self._key = lifecycle.key
        self._fence = lifecycle.lease.fence if lifecycle.lease else None
        self._large = kept.large
        self._shape = (
            kept.messages[kept.shape.types[next(iter(kept.large.refs.values()))]] if kept.large else None
        )
        self._keys = keys
        self._objects = objects
        self.is_versioned = True

    def has_any(self, record: Record) -> bool:
        """Whether it has a value that needs an object of its own."""
        return any(True for _ in self._too_large(record))

    async def put(self, record: Record) -> Record:
        """Write the large values of a record; return the record with their references."""
        made = {
            ref: await self._write_value(record, name, body) for name, ref, body in self._too_large(record)
        }
        return replace(record, **made) if made else record

    async def load(self, record: Record) -> Record:
        """Return the record with its large values read."""
        if self._large is None:
            return record
        wanted = {
            name: found
            for name, ref in self._large.refs.items()
            if (found := getattr(record, ref)) is not None and not getattr(record, name)
        }
        if not wanted:
            return record
        bodies = await asyncio.gather(
            *[self._objects.get(found.key, found.version) for found in wanted.values()]
        )
        read = {
            name: None if body is None else body.body.decode("utf-8", "replace")
            for name, body in zip(wanted, bodies, strict=True)
        }
        return replace(record, **read)

    async def tag(self, record: Record, tags: Mapping[str, str] | None) -> None:
        """Tag the large values of a record like its object, so that they expire together."""
        refs = self._large.refs.values() if self._large is not None else ()
        for found in (getattr(record, ref) for ref in refs):
            if found is not None:
                with suppress(Gone):
                    await self._objects.tag(found.key, tags, found.version)

    def _too_large(self, record: Record) -> Iterator[tuple[str, str, bytes]]:
        if self._large is None:
            return
        for name, ref in self._large.refs.items():
            text = getattr(record, name)
            # A text has at least as many bytes as characters, and at most four times as many.
            if text is None or getattr(record, ref) is not None or 4 * len(text) <= self._large.over:
                continue
            if len(body := text.encode("utf-8", "replace")) > self._large.over:
                yield name, ref, body

    async def _write_value(self, record: Record, name: str, body: bytes) -> Any:
        assert self._shape is not None
        fence = getattr(record, self._fence) if self._fence else 0
        suffix = "" if self.is_versioned else f".{fence}"
        key = self._keys.large(getattr(record, self._key), name, suffix)
        written = await self._objects.put(key, body)
        return self._shape.made(key=key, version=written.version)
