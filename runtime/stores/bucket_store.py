"""What only a bucket has, beside the contract: versions, objects of other writers, and indexes that lag.

A handler that uses it asks whether its store is a `BucketStore`, so that it runs on every other engine, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, runtime_checkable

from runtime.call.context import Call
from runtime.stores.contract import Record, RecordPage


class NotReadable(Exception):
    """The object of an entity is there, but another writer has left it: it is no such entity."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem


class VersionOf(NamedTuple, Generic[Record]):
    """An entity as it once was; no record where that cannot be read."""

    record: Record | None
    version: str
    at: datetime
    etag: str


class BucketPage(RecordPage[Record]):
    """A page of a listing, and what was met on the way that cannot be read."""

    unreadable: Sequence[tuple[datetime, str]] = ()
    """When each of these objects was written, and the key of the entity in whose place it is: all that was
    written since the last of the page, if not more."""


class ShardSize(NamedTuple):
    """How many entities of a state a shard has, and how long ago the oldest of them changed."""

    entities: int
    oldest_s: float


class Sizes(NamedTuple):
    """How many entities there are."""

    by_state: dict[tuple[str, int], ShardSize]
    """By shard and state."""
    unreadable: dict[str, int]
    """Objects that cannot be read, by shard."""


@runtime_checkable
class BucketStore(Protocol[Record]):
    """The extras of a store in a bucket. All else that a handler may ask is in `EntityStore`."""

    async def versions(self, key: str) -> list[VersionOf[Record]]:
        """Return everything that an entity has been, oldest first. Only versions have whole records."""
        ...

    async def is_versioned(self) -> bool:
        """Whether the bucket keeps what an entity has been."""
        ...

    async def sizes(self) -> Sizes:
        """Count all entities by shard, and the objects that are none, in one pass over all of them."""
        ...

    async def oldest_waiting(self, size: int) -> list[Record]:
        """Return some of those that have waited longest for a lease, as far as the index says.

        `find` would have to read every object, as a bucket lists them by their names alone.
        """
        ...

    async def repair(self, call: Call) -> int:
        """Put some entries of the indexes in order that do not say what the entities say; return how many."""
        ...

    async def wait_indexed(self, key: str) -> bool:
        """Wait until the indexes say what this process has last made of an entity; whether they do."""
        ...

    async def drain_indexes(self) -> int:
        """Wait until the indexes say what this process has changed; return how many entries failed since."""
        ...
