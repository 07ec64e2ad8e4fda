"""Where entities live. A state changes through `move` and in no other way, whatever the store is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Due, Shift, Transition

Record = TypeVar("Record", bound=Struct)
Claimed = TypeVar("Claimed")
"""What a worker is given of a claim: the record, or a message that stands for it."""
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

    `final` says that trying again is no use. `edge` names the way, where several lead there.
    """

    key: str
    held: Held
    target: int
    given: Mapping[str, str | None] = MappingProxyType({})
    final: bool = False
    edge: str = ""
    """The name of the edge, where several lead to the target and one is taken only when it is named."""


class Exchanged(NamedTuple, Generic[Claimed]):
    """What was taken, and for each that was to be settled the state it ended in, or why it did not."""

    taken: Sequence[Claimed]
    outcomes: Sequence[int | Exception]


class Change(NamedTuple):
    """One state change of an entity; the source is empty where it was created."""

    source: str
    target: str
    actor: str
    fence: int
    at: datetime
    sequence: int = 0
    owner: str = ""
    """Who held the lease, or held it until then."""
    reason: str = ""
    trace: str = ""
    edge: str = ""
    """The name of the edge, where its states do not tell it from another."""


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


class StoreAway(StoreUnusable):
    """It does not answer now. It may be starting, so whoever has the time asks again."""


class StoreNotSetUp(StoreUnusable):
    """It is there and has not been made ready for what is to be kept in it."""


class Store(Protocol[Record]):
    """The entities of one kind. Records are immutable; a change makes a new one."""

    async def create(self, record: Record, call: Call) -> Record:
        """Adds an entity in its initial state, stamped; the actor is the proven caller."""
        ...

    async def get(self, key: str) -> Record | None:
        """The record as it is now."""
        ...

    async def move(self, key: str, source: int, target: int, call: Call, /, **given: str) -> Moved:
        """Moves an entity if it is in `source`; of what is given, the transition takes what the spec says."""
        ...

    async def update(self, key: str, /, **changes: Any) -> Record:
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


class LeaseStore(Protocol[Claimed]):
    """What a worker needs of a store that leases entities out, whatever the store is made of."""

    async def exchange(
        self, owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[Claimed]:
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
        self,
        key: str,
        target: int,
        held: Held,
        call: Call,
        final: bool = False,
        edge: str = "",
        /,
        **given: str | None,
    ) -> int:
        """Leaves the leased state and gives the lease back; the state it ended in.

        What is given has the names of fields, any of which a spec may choose; so all else is told by place.
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


class Created(Generic[Record]):
    """What came of a wish to create: whether it is new, its state, and its place in the index it entered.

    `full` says that it was refused for lack of room.
    """

    __slots__ = ("_make", "_record", "full", "is_new", "position", "state")

    def __init__(
        self,
        make: Callable[[], Record],
        is_new: bool,
        state: int,
        position: int | None = None,
        *,
        full: bool = False,
    ) -> None:
        self._make: Callable[[], Record] | None = make
        self.is_new, self.state, self.position, self.full = is_new, state, position, full

    @property
    def record(self) -> Record:
        """The entity, or the one that was found where it is not new. It is made for whoever asks first."""
        if self._make is not None:
            self._record, self._make = self._make(), None
        return self._record


class Settlement(NamedTuple):
    """How the holder of a lease wants to leave it."""

    key: str
    target: int
    held: Held
    given: Mapping[str, str | None] = MappingProxyType({})
    final: bool = False
    edge: str = ""
    """The name of the edge, where several lead to the target and one is taken only when it is named."""


class Size(NamedTuple):
    """How many are in an index, and for how long the oldest has been."""

    entities: int
    oldest_s: float


class IndexedStore(Store[Record], Protocol[Record]):
    """Entities with the indexes that the spec declares, each change one step with all of them."""

    async def create_or_find_all(self, records: Sequence[Record], call: Call) -> list[Created[Record]]:
        """Adds each, or finds the one that has the same unique fields; every one of them by itself."""
        ...

    async def move_to(self, key: str, target: int, call: Call, /, **given: str) -> Moved:
        """Moves an entity from whatever state it is in, if an edge leads from there to the target."""
        ...

    async def shift(
        self, key: str, shift: Shift, call: Call, held: Held | None = None, /, **given: str
    ) -> bool:
        """Makes a change that leaves the state as it is; False where it does not apply."""
        ...

    async def claim(
        self,
        holder: str,
        most: int,
        call: Call,
        *,
        offers: Collection[str] | None = None,
        wait_s: float = 0.0,
    ) -> list[Record]:
        """Leases the next entities that the holder is able to take, in the order of the spec.

        `offers` narrows what the holder is able to do; it never widens it. Where there is nothing, it waits
        for so many seconds that there is. A holder that is unknown, is given no more, or has no room gets
        nothing at once.
        """
        ...

    async def settle_all(self, asked: Sequence[Settlement], call: Call) -> list[int | Failure]:
        """Leaves leases; for each the state it ended in, or why not (role lease_lost if it was another's)."""
        ...

    async def exchange(
        self,
        asked: Sequence[Settlement],
        holder: str,
        most: int,
        call: Call,
        *,
        offers: Collection[str] | None = None,
    ) -> tuple[list[int | Failure], list[Record]]:
        """Leaves leases and takes new ones, in as few exchanges with the server as there can be.

        What was settled is known at once where nothing can be had; nobody waits with that.
        """
        ...

    async def renew(self, key: str, held: Held, seconds: float) -> datetime | None:
        """Lets a lease end so many seconds from now; None when it has ended or is another's."""
        ...

    async def held_by(self, holder: str) -> set[str]:
        """What is leased to a holder now."""
        ...

    async def disown(
        self, holder: str, keys: Collection[str], before: datetime, target: int, call: Call, /, **given: str
    ) -> set[str]:
        """Leaves leases of which a holder knows nothing, each that it was given before a moment; which ones.

        The holder is the caller, and every lease is left by its own fence: of one that has ended meanwhile,
        or was taken anew, nothing is changed.
        """
        ...

    async def taken_from(self, holder: str) -> set[str]:
        """What somebody else took from a holder since it last asked."""
        ...

    async def sweep(self, change: Transition | Shift | None, due: Due, call: Call) -> int:
        """Makes a change to some entities for which it is due; no change means that they are deleted."""
        ...

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = MappingProxyType({}),
        after: tuple[datetime, str] | None = None,
        size: int = 50,
    ) -> tuple[list[Record], tuple[datetime, str] | None]:
        """A page of the listing, newest first, and where the next one begins; a page may be short."""
        ...

    async def history(self, key: str) -> list[Change]:
        """Every state change of an entity that has been written to the history, oldest first."""
        ...

    async def ended(self, key: str) -> Record | None:
        """An entity that the store does not keep any more, as it was when it ended, from the history."""
        ...

    async def sizes(self, index: str) -> dict[int, Size]:
        """The sizes of an index, by the value of the enum in its key."""
        ...

    async def census(self, states: Collection[int] = ()) -> tuple[dict[int, int], list[Record]]:
        """How many are in each state, and all of some states; nobody is counted twice, or left out."""
        ...

    async def recent(self, metric: str) -> dict[tuple[str, ...], int]:
        """What was counted within the window of a metric, by the values of its labels."""
        ...

    async def pause(self, value: int, *, paused: bool) -> None:
        """Stops serving the entities of one value of the leased index, or goes on with it."""
        ...

    async def paused(self) -> set[int]:
        """The values that are not served at present."""
        ...

    async def awaited(self, timeout_s: float) -> bool:
        """Waits; True as soon as something may be there to be leased."""
        ...

    async def problem(self) -> str | None:
        """Why the store cannot be used now; None when it can."""
        ...
