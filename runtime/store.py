"""Where entities live. A state changes through `move` and in no other way, whatever the store is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from runtime.call import Call
from runtime.tables import Transition

Record = TypeVar("Record")
Compare = Callable[[Record, Record], None]
"""Takes a record as it was wanted and as it was found, and raises where the two cannot be one."""


class Moved(NamedTuple):
    """How a transition ended: whether it applied, and the state that holds now."""

    applied: bool
    state: int


class Held(NamedTuple):
    """The proof of a lease: who took it, and the number that its taking was given."""

    owner: str
    fence: int


class Settling(NamedTuple):
    """An entity that leaves the leased state: by which lease, where to, and what it takes along.

    `final` says that trying again is no use.
    """

    key: str
    held: Held
    target: int
    given: Mapping[str, str | None] = MappingProxyType({})
    final: bool = False


class Exchanged(NamedTuple, Generic[Record]):
    """What was taken, and for each that was to be settled the state it ended in, or why it did not."""

    taken: Sequence[Record]
    outcomes: Sequence[int | Exception]


class Change(NamedTuple):
    """One state change of an entity; the source is empty where it was created."""

    source: str
    target: str
    actor: str
    fence: int
    at: datetime


class NoSuchEntity(Exception):
    """Nothing has this key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class GuardBreach(Exception):
    """A handler tried to change what only a transition may change. This is a fault in the handler."""


class Unstorable(ValueError):
    """A value that the store cannot hold, such as text with a NUL in it."""


class Busy(Exception):
    """Somebody else has the entity for a moment, which takes its lease from nobody."""


class StoreUnusable(Exception):
    """The store cannot be used until somebody does something about it; the message says what is wrong."""


class Store(Protocol[Record]):
    """The entities of one kind. Records are immutable; a change makes a new one."""

    async def create(self, record: Record, call: Call) -> Record:
        """Adds an entity in its initial state, stamped; the actor is the proven caller."""
        ...

    async def get(self, key: str) -> Record | None:
        """The record as it is now."""
        ...

    async def move(self, key: str, source: int, target: int, call: Call, **given: str) -> Moved:
        """Moves an entity if it is in `source`; of what is given, the transition takes what the spec says."""
        ...

    async def update(self, key: str, **changes: Any) -> Record:
        """Changes what is neither key nor state nor a stamp."""
        ...

    async def delete(self, key: str, expected: int, call: Call) -> Moved:
        """Takes an entity back if it is in the expected state."""
        ...

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        """A part of the listing, and whether there is more after it; no states means all of them."""
        ...


class LeaseStore(Protocol[Record]):
    """What a worker needs of a store that leases entities out, whatever the store is made of."""

    async def exchange(
        self, owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[Record]:
        """Settles, then takes the leases of the oldest that are free: one for each settled and `free` more.

        All of it takes one step where the store can. An entity that was not settled has an exception instead
        of a state: `Busy`, `Unstorable`, the condition of role lease_lost, or a failure of the store. Raises
        such a failure itself only where nothing was to be settled.
        """
        ...

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        """Settles and takes nothing."""
        ...

    async def settle(
        self, key: str, target: int, held: Held, call: Call, *, final: bool = False, **given: str | None
    ) -> int:
        """Leaves the leased state and gives the lease back; the state it ended in.

        Waits for whoever else has the entity. Raises the condition of role lease_lost when the lease has
        ended or is another's.
        """
        ...

    async def renew_all(self, held: Sequence[tuple[str, Held]]) -> Sequence[bool | Exception]:
        """Makes leases longer; False for one that has ended or is another's. That is no transition."""
        ...

    async def awaited(self, timeout_s: float) -> bool:
        """Waits; True as soon as something may be there to be acquired."""
        ...


class KeptStore(Store[Record], LeaseStore[Record], Protocol[Record]):
    """The entities of one kind where a server keeps them for many processes, any of which may die."""

    async def create_or_find(self, record: Record, call: Call) -> tuple[Record, bool]:
        """Adds an entity, or finds the one that has the same unique fields; whether it is new."""
        ...

    async def create_or_find_all(
        self, records: Sequence[Record], call: Call, *, compare: Compare[Record] | None = None
    ) -> list[tuple[Record, bool]]:
        """The same for many in one step, all or none. Of those that are alike the later find the first.

        `compare` is shown each that is not new, as it was wanted and as it was found. What it raises undoes
        the whole step.
        """
        ...

    async def move_all(self, keys: Sequence[str], source: int, target: int, call: Call) -> int:
        """Moves those that are in `source`; how many they were."""
        ...

    async def acquire(self, owner: str, call: Call) -> Record | None:
        """Takes the lease of the oldest entity that is free; None when there is none."""
        ...

    async def renew(self, key: str, held: Held) -> bool:
        """Makes a lease longer; False when it has ended or is another's."""
        ...

    async def sweep(self, transition: Transition, call: Call) -> int:
        """Moves some of the entities for which an edge is due; how many."""
        ...

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = MappingProxyType({}),
        since: datetime | None = None,
        until: datetime | None = None,
        after: tuple[datetime, str] | None = None,
        size: int = 50,
    ) -> list[Record]:
        """A page of the listing, newest first, that begins behind an entity; no states means all of them."""
        ...

    async def history(self, key: str) -> list[Change]:
        """Every state change of an entity, oldest first."""
        ...

    async def purge(self, older_than_s: float, call: Call) -> int:
        """Deletes what may be deleted and has not changed for so long; how many."""
        ...

    async def problem(self) -> str | None:
        """Why the store cannot be used now; None when it can."""
        ...
