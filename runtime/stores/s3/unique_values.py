"""Unique values in a bucket: a small object for each value says which entity has it.

It is created before the entity, under the condition that there is none, so that of two who create entities
with the same value one finds the other's. One that names an entity which is not there was left behind by a
process that died, or belongs to an entity that is just being created.
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
"""For so many microseconds an entity that is not there may still be on its way."""
_TRIES = 8


class _Claim(NamedTuple):
    """What the object of a value says, and its tag."""

    key: str
    until: int | None
    at: int
    etag: str


class UniqueValues:
    """The objects of all unique values of one kind of entity."""

    def __init__(self, context: BucketContext[Any]) -> None:
        self._context = context

    def named(self, record: Any) -> Mapping[str, Any]:
        """Return the unique values of a record; the one that its key is made from needs no object."""
        found = unique_values(self._context.rules, record)
        found.pop(self._context.layout.keyed_by or "", None)
        return found

    async def find(self, record: Any, now: int) -> Snapshot[Any] | None:
        """Return the entity that has one of a record's values; None where nothing has."""
        for name, value in self.named(record).items():
            claim = await self._read(self._path(name, value))
            if claim is not None and (found := await self._holder(claim, now)) is not None:
                return found
        return None

    async def reserve(self, key: str, record: Any, now: int) -> Snapshot[Any] | None:
        """Take the values of a record for an entity; return the entity that has one of them instead."""
        rules, taken = self._context.rules, list[tuple[str, str]]()
        for name, value in self.named(record).items():
            path, until = self._path(name, value), unique_until(rules, name, now)
            body = orjson.dumps({"key": key, "until": until, "at": now})
            for _ in range(_TRIES):
                claim = await self._read(path)
                if claim is not None and (found := await self._holder(claim, now)) is not None:
                    await self._release(key, taken)
                    return found
                if claim is not None and self._is_coming(claim, key, now):
                    await self._context.world.sleep(0.05)
                    continue
                try:
                    if claim is None:
                        await self._context.objects.create(path, body)
                    else:
                        await self._context.objects.replace(path, body, claim.etag)
                except NotMatched:
                    continue
                taken.append((name, value))
                break
            else:
                await self._release(key, taken)
                raise Away("an entity with the same unique value is just being created")
        return None

    async def release(self, key: str, record: Any) -> None:
        """Free the values of an entity that is gone."""
        await self._release(key, self.named(record).items())

    async def _release(self, key: str, values: Any) -> None:
        for name, value in values:
            path = self._path(name, value)
            claim = await self._read(path)
            if claim is not None and claim.key == key:
                await self._context.objects.delete(path, claim.etag)

    async def _holder(self, claim: _Claim, now: int) -> Snapshot[Any] | None:
        """Return the entity that has a value, if the value is still remembered."""
        if claim.until is not None and claim.until <= now:
            return None
        return await self._context.writes.read(claim.key)

    @staticmethod
    def _is_coming(claim: _Claim, key: str, now: int) -> bool:
        """Whether the entity of a value may just be being created by another one."""
        is_remembered = claim.until is None or claim.until > now
        return is_remembered and claim.key != key and abs(now - claim.at) < _CREATED_WITHIN

    async def _read(self, path: str) -> _Claim | None:
        found = await self._context.objects.get(path)
        if found is None:
            return None
        try:
            said = decode_json(found.body)
            until = None if said["until"] is None else int(said["until"])
            return _Claim(str(said["key"]), until, int(said["at"]), found.etag)
        except (NotJson, KeyError, TypeError, ValueError):
            return _Claim("", 0, 0, found.etag)  # It is nobody's.

    def _path(self, name: str, value: Any) -> str:
        digest = hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._context.layout.unique.format(field=name, value=digest)
