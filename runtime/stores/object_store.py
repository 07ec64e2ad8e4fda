"""What handlers know of entities that are objects of a bucket, whichever server has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Shift, Transition
from runtime.stores.store import Held, LeaseStore, Moved, Record, Size, Store


class NotReadable(Exception):
    """The object of an entity is there, but somebody else wrote it: it is no such entity."""

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


class FoundPage(NamedTuple, Generic[Record]):
    """A page of a listing, and what was met on the way that cannot be read."""

    records: list[Record]
    unreadable: list[tuple[datetime, str]]
    """When each of these objects was written, and the key of the entity in whose place it is."""


class Sizes(NamedTuple):
    """How many entities there are."""

    by_state: dict[tuple[str, int], Size]
    """By part and state, with how long ago the oldest of them changed."""
    unreadable: dict[str, int]
    """Objects that cannot be read, by part."""


class ObjectStore(Store[Record], Protocol[Record]):
    """Entities as objects of a bucket, each with its key for life. A change is one guarded write."""

    async def create_or_find(self, record: Record, call: Call) -> tuple[Record, bool]:
        """Adds an entity, or finds the one of the same key; whether it is new."""
        ...

    async def create_or_find_all(
        self, records: Sequence[Record], call: Call
    ) -> list[tuple[Record, bool] | Failure]:
        """The same for many, each by itself and many at a time; or why it was not added."""
        ...

    async def move_to(self, key: str, target: int, call: Call, /, **given: str) -> Moved:
        """Moves an entity from whatever state it is in, if an edge leads from there to the target."""
        ...

    async def shift(
        self,
        key: str,
        shift: Shift,
        call: Call,
        held: Held | None = None,
        having: Mapping[str, object] = MappingProxyType({}),
        /,
        **given: Any,
    ) -> bool:
        """Makes a change that leaves the state as it is; False where it does not apply.

        `having` are values that the entity must have when it is written.
        """
        ...

    async def delete(
        self, key: str, expected: int, call: Call, *, having: Mapping[str, object] = MappingProxyType({})
    ) -> Moved:
        """Removes an entity that is in the expected state and has these values."""
        ...

    def taking(
        self, parts: Collection[str] | None = None, kinds: Collection[str] | None = None
    ) -> LeaseStore[Record]:
        """What a worker takes leases with: of some parts and kinds only, or of all."""
        ...

    async def whole(self, record: Record) -> Record:
        """The record with what is kept apart from it."""
        ...

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = MappingProxyType({}),
        after: tuple[datetime, str] | None = None,
        size: int = 50,
    ) -> list[Record]:
        """A page of the listing, what changed last first; no states means all of them."""
        ...

    async def find_page(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = MappingProxyType({}),
        after: tuple[datetime, str] | None = None,
        size: int = 50,
    ) -> FoundPage[Record]:
        """The same with what cannot be read: all that was written since the last of the page, if not more."""
        ...

    async def oldest_waiting(self, size: int) -> list[Record]:
        """Some of those that have waited longest for a lease, as far as the index says."""
        ...

    async def versions(self, key: str) -> list[VersionOf[Record]]:
        """Everything that an entity has been, oldest first."""
        ...

    async def versioned(self) -> bool:
        """Whether the bucket keeps what an entity has been."""
        ...

    async def sizes(self) -> Sizes:
        """Reads all of them and counts."""
        ...

    async def sweep(self, transition: Transition, call: Call) -> int:
        """Moves some of the entities for which an edge is due; how many."""
        ...

    async def repair(self, call: Call) -> int:
        """Puts some of the indexes in order that do not say what the entities say; how many entries."""
        ...

    async def hinted(self, key: str) -> bool:
        """Waits until the indexes say what this process has last made of an entity; whether they do."""
        ...

    async def drained(self) -> int:
        """Waits until the indexes say what this process has changed; how many entries failed since."""
        ...

    async def problem(self) -> str | None:
        """Why the store cannot be used now; None when it can."""
        ...
