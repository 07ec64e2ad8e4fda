"""The table of records that steps work on, as an engine provides it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from typing import Any, NamedTuple, Protocol

from runtime.model.lifecycles import Transition
from runtime.stores.contract import HistoryEntry
from runtime.stores.semantics.rules import Rules


class ListingSpan(NamedTuple):
    """The part of a listing that is wanted; `after` is the entry behind which it begins."""

    since: int | None = None
    until: int | None = None
    after: tuple[int, str] | None = None


EVERYTHING = ListingSpan()


class Records(Protocol):
    """The records by key."""

    def get(self, key: str, /) -> Any | None:
        """Return a record; None where there is none."""
        ...

    def __getitem__(self, key: str, /) -> Any: ...

    def __contains__(self, key: object, /) -> bool: ...


class Listing(Protocol):
    """The order of listings."""

    def iterate(
        self,
        states: Collection[int],
        offset: int,
        *,
        newest_first: bool,
        span: ListingSpan,
        equal: Mapping[str, object],
    ) -> Iterator[tuple[int, str]]:
        """Iterate over times and keys of a part of the listing; no states means all of them.

        Entities with other values than in `equal` may be left out.
        """
        ...

    def count(self, state: int, since: int | None = None) -> int:
        """Return how many entities are in a state."""
        ...

    def oldest(self, state: int) -> int | None:
        """Return the least time of those in a state."""
        ...


class Claims(Protocol):
    """The order of claims, and who holds what."""

    def candidates(self, now: int, offered: frozenset[str] | None, paused: Collection[int]) -> Iterator[str]:
        """Iterate over the keys that an owner is able to run, in claim order."""
        ...

    def sizes(self, now: int) -> dict[int, tuple[int, int]]:
        """Return by rank how many can be claimed, and the time of the oldest."""
        ...

    def held_by(self, owner: str) -> Set[str]:
        """Return the keys that are leased to an owner."""
        ...

    def held(self) -> list[str]:
        """Return the keys of all that is leased, in their order."""
        ...


class DueKeys(Protocol):
    """Those that a clock will find due, by their times."""

    def due(self, now: int, most: int) -> list[str]:
        """Return the keys of those that are due, longest overdue first."""
        ...


class WakeupSink(Protocol):
    """What is announced to those who wait."""

    @property
    def position(self) -> int:
        """How often something has become claimable."""
        ...

    def found_nothing(self, position: int) -> None:
        """Note that a claim which began at a position found nothing."""
        ...


class Table(Protocol):
    """The records of one kind of entity. Nothing here decides anything; every change is one call."""

    @property
    def rules(self) -> Rules: ...

    @property
    def opened(self) -> int:
        """The moment at which the table was opened."""
        ...

    @property
    def records(self) -> Records: ...

    @property
    def listing(self) -> Listing: ...

    @property
    def claims(self) -> Claims | None:
        """The claims, where the entity has a lease."""
        ...

    @property
    def dues(self) -> Mapping[int, DueKeys]:
        """By the number of each clock that goes by a time of the record."""
        ...

    @property
    def wakeups(self) -> WakeupSink: ...

    @property
    def paused(self) -> frozenset[int]:
        """The values of the field that orders claims which are not served."""
        ...

    @property
    def ceiling_count(self) -> int:
        """How many there are in the index that has a ceiling."""
        ...

    def pause(self, value: int) -> None: ...

    def resume(self, value: int) -> None: ...

    def deletable(self) -> Iterable[tuple[str, Any]]:
        """Iterate over the keys and records of those whose state lets them be deleted."""
        ...

    def add(self, key: str, record: Any, now: int) -> None:
        """Add a new entity."""
        ...

    def put(self, key: str, old: Any, new: Any, now: int) -> None:
        """Replace the record of an entity."""
        ...

    def drop(self, key: str) -> None:
        """Remove an entity, and all that is known of it."""
        ...

    def forget(self, now: int) -> None:
        """Drop those that have ended long enough ago."""
        ...

    def find_unique(self, record: Any, now: int) -> Any | None:
        """Return the entity that has one of a record's unique values."""
        ...

    def is_under_ceiling(self, record: Any | None) -> bool:
        """Whether a record is in the index that has a ceiling."""
        ...

    def write_history(self, key: str, edge: Transition | None, actor: str, now: int, *more: Any) -> None:
        """Add an entry: fence, owner, reason and trace may follow."""
        ...

    def read_history(self, key: str, creation: str) -> list[HistoryEntry]:
        """Return the entries of an entity; the creation has a name of its own."""
        ...
