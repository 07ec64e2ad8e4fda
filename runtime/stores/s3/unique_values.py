"""Unique values in a bucket: a small object for each value names its entity.

It is created before the entity by a conditional write, so that of two concurrent creations with the same
value one finds the other. One that names a missing entity was left behind by a process that died, or belongs
to an entity that is just being created.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from runtime.model.json_text import NotJson, decode_json
from runtime.stores.s3.client.errors import Away, NotMatched
from runtime.stores.s3.codec import Snapshot
from runtime.stores.s3.context import BucketContext
from runtime.stores.semantics.creation import unique_until, unique_values

_CREATED_WITHIN = 10_000_000
"""Microseconds in which a missing entity may still be created."""
_TRIES = 8


class _Reservation(NamedTuple):
    """The content of a value's object, and its ETag."""

    key: str
    until: int | None
    at: int
    etag: str


class UniqueValues:
    """The unique values of one kind of entity."""

    def __init__(self, context: BucketContext[Any]) -> None:
        self._context = context

    def named(self, record: Any) -> Mapping[str, Any]:
        """Return the unique values of a record, without the one that its key is derived from."""
        found = unique_values(self._context.rules, record)
        found.pop(self._context.layout.keyed_by or "", None)
        return found

    async def find(self, record: Any, now: int) -> Snapshot[Any] | None:
        """Find the entity with one of a record's values; None where there is none."""
        for name, value in self.named(record).items():
            reservation = await self._read(self._path(name, value))
            if reservation is not None and (found := await self._read_entity(reservation, now)) is not None:
                return found
        return None

    async def reserve(self, key: str, record: Any, now: int) -> Snapshot[Any] | None:
        """Reserve the values of a record for an entity; return the entity that has one of them instead."""
        rules, reserved = self._context.rules, list[tuple[str, str]]()
        for name, value in self.named(record).items():
            path, until = self._path(name, value), unique_until(rules, name, now)
            body = orjson.dumps({"key": key, "until": until, "at": now})
            for _ in range(_TRIES):
                reservation = await self._read(path)
                if (
                    reservation is not None
                    and (found := await self._read_entity(reservation, now)) is not None
                ):
                    await self._release(key, reserved)
                    return found
                if reservation is not None and self._may_be_created(reservation, key, now):
                    await self._context.world.sleep(0.05)
                    continue
                try:
                    if reservation is None:
                        await self._context.objects.create(path, body)
                    else:
                        await self._context.objects.replace(path, body, reservation.etag)
                except NotMatched:
                    continue
                reserved.append((name, value))
                break
            else:
                await self._release(key, reserved)
                raise Away("an entity with the same unique value is just being created")
        return None

    async def release(self, key: str, record: Any) -> None:
        """Release the values of a deleted entity."""
        await self._release(key, self.named(record).items())

    async def _release(self, key: str, values: Any) -> None:
        for name, value in values:
            path = self._path(name, value)
            reservation = await self._read(path)
            if reservation is not None and reservation.key == key:
                await self._context.objects.delete(path, reservation.etag)

    async def _read_entity(self, reservation: _Reservation, now: int) -> Snapshot[Any] | None:
        """Read the entity of a value, unless the value has expired."""
        if reservation.until is not None and reservation.until <= now:
            return None
        return await self._context.writes.read(reservation.key)

    @staticmethod
    def _may_be_created(reservation: _Reservation, key: str, now: int) -> bool:
        """Whether a concurrent creation of the entity of a value may be under way."""
        is_remembered = reservation.until is None or reservation.until > now
        return is_remembered and reservation.key != key and abs(now - reservation.at) < _CREATED_WITHIN

    async def _read(self, path: str) -> _Reservation | None:
        found = await self._context.objects.get(path)
        if found is None:
            return None
        try:
            members = decode_json(found.body)
            until = None if members["until"] is None else int(members["until"])
            return _Reservation(str(members["key"]), until, int(members["at"]), found.etag)
        except (NotJson, KeyError, TypeError, ValueError):
            return _Reservation("", 0, 0, found.etag)  # Unreadable: free to replace.

    def _path(self, name: str, value: Any) -> str:
        digest = hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._context.layout.unique.format(field=name, value=digest)
