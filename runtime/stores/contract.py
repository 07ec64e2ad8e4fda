"""The one contract of all stores: what handlers and workers may ask, and what every engine promises.

What an entity means is said by its lifecycle; `runtime.stores.semantics` is that meaning as pure functions.
An engine keeps the records and makes each operation here one atomic step. Unless a method says otherwise:

- A caller that the lifecycle does not let do something gets the condition of role permission_denied.
- `NoSuchEntity` is raised for a key that nothing has, `GuardBreach` for a fault in the handler, `Unstorable`
  for a value that the engine cannot hold, and the condition of role store_unavailable when it is away.
- Nothing has changed when a method has raised, but for what was due: an edge that an access takes first
  (`on_access`) stands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from runtime.call.context import Call
from runtime.model.lifecycles import Transition

Record = TypeVar("Record", bound=Struct)
Claimed = TypeVar("Claimed")
"""What a worker gets of a claim: the record, or a message that stands for it."""
Compare = Callable[[Record, Record], None]
"""Takes a record as it was wanted and as it was found, and raises where the two cannot be one."""
Given = Mapping[str, Any]
"""What a transition takes from the request, by the names of the request's fields."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
DELETION = "delete"
"""The name of the deletion among the due changes of an entity, and in its log and metrics."""
CREATION = "create"


class LeaseProof(NamedTuple):
    """The proof of a lease: its owner, and the fence that its claim was given.

    An empty owner and a fence of 0 are not compared. So a handler that lets callers write without a proof
    says so in its own code.
    """

    owner: str
    fence: int


class Transitioned(NamedTuple):
    """Whether a transition applied, and the state that the entity is in now."""

    applied: bool
    state: int


class CreateResult(NamedTuple, Generic[Record]):
    """The entity that was created or found; `is_refused` says that a ceiling did not let it in."""

    record: Record
    is_new: bool
    is_refused: bool = False
    position: int | None = None
    """The place of a new one among those that can be claimed with its value, from 1; None where the engine
    would have to count."""


class LeaseSettlement(NamedTuple):
    """How the owner of a lease leaves it: by which edge, and with what; `is_final` rules out another try."""

    key: str
    lease: LeaseProof
    edge: str
    given: Given = NOTHING
    is_final: bool = False


class ExchangeResult(NamedTuple, Generic[Claimed]):
    """The records that were claimed, and for each settlement the state it ended in, or why it did not."""

    claimed: Sequence[Claimed]
    outcomes: Sequence[int | Exception]


class Backlog(NamedTuple):
    """How many entities can be claimed, and for how many seconds the oldest of them has waited."""

    entities: int
    oldest_s: float


class Cursor(NamedTuple):
    """The place of an entity in a listing: its time in microseconds since the epoch, and its key."""

    at: int
    key: str


class RecordPage(NamedTuple, Generic[Record]):
    """A part of a listing; `next` is where the next part begins, None at the end."""

    records: Sequence[Record]
    next: Cursor | None


class HistoryEntry(NamedTuple):
    """One state change of an entity; the source is None for its creation."""

    sequence: int
    edge: str
    source: int | None
    target: int
    actor: str
    at: datetime
    fence: int = 0
    owner: str = ""
    """The owner of the lease, or the one who had it until then."""
    reason: str = ""
    trace: str = ""


class LeaseStore(Protocol[Claimed]):
    """The part of `EntityStore` that a lease worker needs; a client of a service's API can have it, too."""

    async def exchange(
        self, owner: str, settlements: Sequence[LeaseSettlement], free: int, call: Call
    ) -> ExchangeResult[Claimed]:
        """Settle, then claim: one for each that was settled and `free` more.

        One that was not settled has an exception instead of a state. The method raises a failure of the
        store only where there was nothing to settle.
        """
        ...

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        """Settle each by itself: the state it ended in, or the exception that `settle` would raise.

        `Busy` is an outcome, too: another transaction has locked the entity, and its lease goes on.
        """
        ...

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        """Settle one, and wait for those who have locked the entity; return the state it ended in."""
        ...

    async def renew(self, held: Sequence[tuple[str, LeaseProof]]) -> Sequence[object]:
        """Renew leases: None for one that was lost, an exception for one that could not be renewed now."""
        ...

    async def wait(self, timeout_s: float) -> bool:
        """Wait until something may be there to claim."""
        ...


class EntityStore(Protocol[Record]):
    """The entities of one kind. Records are immutable: a change replaces the record."""

    # Creating and reading.

    async def create(self, record: Record, call: Call, *, then: Sequence[str] = ()) -> CreateResult[Record]:
        """Add an entity in its initial state, or find the one that has one of its unique values.

        The store writes state, stamps, copies, fills and the fields of the lease, whatever the record brings
        along; but it may bring the state in which it begins, where `to` of the creation has that. `then` are
        edges that the creator takes in the same step, if the entity is new; none of them needs arguments.
        Raises the condition of role store_full where a ceiling is reached, and `GuardBreach` where another
        entity has the key, or an edge of `then` does not apply.
        """
        ...

    async def create_many(
        self,
        records: Sequence[Record],
        call: Call,
        *,
        compare: Compare[Record] | None = None,
        then: Sequence[str] = (),
    ) -> list[CreateResult[Record]]:
        """Add or find many in one step, in their order, so that the later of two alike finds the first.

        One that a ceiling refuses has `is_refused`; the others are not affected. `compare` sees each that
        was found instead of created; where it raises, nothing of the call is created.
        """
        ...

    async def get(self, key: str) -> Record | None:
        """Return the record as it is now; None where there is none."""
        ...

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = NOTHING,
        since: datetime | int | None = None,
        until: datetime | int | None = None,
        after: Cursor | None = None,
        offset: int = 0,
        size: int = 50,
        newest_first: bool = True,
    ) -> RecordPage[Record]:
        """Return a page of the listing, which is ordered by `listed_by`; ties by ascending key.

        No states means all. `equal` compares fields. `since` (inclusive) and `until` (exclusive) are times of
        the field that orders the listing. `after` begins behind an entity, whether or not it is still there;
        `offset` skips so many more. A page may be short, even empty, before the end; only `next` tells.
        Raises `GuardBreach` for a field that the record does not have.
        """
        ...

    async def history(self, key: str) -> list[HistoryEntry]:
        """Return the state changes of an entity, oldest first, as far as they are retained."""
        ...

    async def count(
        self, states: Collection[int] = (), *, since: datetime | int | None = None
    ) -> dict[int, int]:
        """Count the entities in each of some states, or in every state.

        `since` (inclusive) is a time of the field that orders the listing; older ones do not count.
        """
        ...

    # Changing.

    def edge_between(self, source: int, target: int, call: Call) -> Transition:
        """Return the edge between two states that the caller may take, for a request that names states.

        Raises the condition of role illegal_transition where there is no edge.
        """
        ...

    async def transition(
        self,
        key: str,
        edge: str | Sequence[str],
        call: Call,
        *,
        lease: LeaseProof | None = None,
        owner: str = "",
        given: Given = NOTHING,
        noted: Mapping[str, str] = NOTHING,
        is_final: bool = False,
    ) -> Transitioned:
        """Take an edge by its name if the entity is in its source and as `when` and `where` want it.

        Several edges are one step: all of them, or none. Where the edge gives up, the one that ends the
        entity is taken with it or in its place, and the state is where that leads. `owner` has the lease when
        the edge enters the leased state; the caller unless given. `noted` goes to the log line alone. An
        update is taken like an edge; the state stays.

        Not applied is no error: the answer has the state that stood in the way. An edge out of the leased
        state needs a proof from those who claim; the condition of role lease_lost is raised where the lease
        is another's or has expired, lease_stale (where the system has it) where only the fence differs, and
        `GuardBreach` where no proof is given, where an edge of the clock is taken by hand, for an edge that
        there is not, and for `is_final` on an edge that never gives up.
        """
        ...

    async def update(self, key: str, /, **changes: Any) -> Record:
        """Replace fields that neither creation, nor an edge's stamps, nor a lease, nor an index own.

        Raises `GuardBreach` for any other.
        """
        ...

    async def delete(self, key: str, expected: int, call: Call) -> Transitioned:
        """Delete an entity if it is in the expected state and may be deleted there.

        Raises the condition of role still_held where the entity has leases and `unless_holding` forbids it.
        """
        ...

    async def purge(self, older_than_s: float, call: Call) -> int:
        """Delete all that may be deleted and have not changed for longer than this; return how many."""
        ...

    # Leases.

    async def claim(
        self,
        owner: str,
        count: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> list[Record]:
        """Lease the next entities to an owner, in claim order, and at most so many.

        First come the values of `claim_order` in that order, then the oldest by `oldest_by`; those of equal
        time by ascending key, or by the order of their creation where an engine knows it. Values
        that are paused are left out, and so is what `where` does not equal.
        `capabilities` narrows what the owner offers, or, with `only`, are the texts that it can run; None
        narrows nothing. An owner that is unknown to the entity of holders, in another state or without
        capacity gets nothing. Each claim raises the fence by one. Raises `GuardBreach` without a lease.
        """
        ...

    async def renew(
        self, held: Sequence[tuple[str, LeaseProof]], *, seconds: float | None = None
    ) -> list[Record | None]:
        """Let leases begin anew, for their own length or for so many seconds; None for one that was lost.

        This is no transition: neither history nor stamps have it.
        """
        ...

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        """Leave the leased state by an edge and release the lease; return the state it ended in.

        Raises the condition of role lease_lost (or lease_stale) unless this very lease goes on, and as
        `transition` does.
        """
        ...

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        """Settle each by itself: the state it ended in, or the exception that `settle` would raise."""
        ...

    async def exchange(
        self,
        owner: str,
        settlements: Sequence[LeaseSettlement],
        free: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> ExchangeResult[Record]:
        """Settle, then claim: one for each that was settled and `free` more, in one step."""
        ...

    async def wait(self, timeout_s: float, *, key: str | None = None) -> bool:
        """Wait until something may be there to claim, or, with a key, until that entity changes.

        True is a hint and never the truth: another owner may have been faster.
        """
        ...

    async def pause(self, value: int) -> None:
        """Stop claims of one value of the field that orders claims. What is leased goes on."""
        ...

    async def resume(self, value: int) -> None:
        """Let claims of a value go on."""
        ...

    async def paused(self) -> frozenset[int]:
        """Return the values that are paused."""
        ...

    async def backlog(self) -> dict[int, Backlog]:
        """Count what can be claimed now, by each value of `claim_order`; all of it under 0 without one.

        Values that are paused count too: what they hold waits. The age is that of `oldest_by`. Raises
        `GuardBreach` without a lease.
        """
        ...

    # Due changes and health.

    async def run_due(self, change: str, call: Call) -> int:
        """Make a change that is due to one bounded batch, longest overdue first; return to how many.

        The change is a transition, an update, or `DELETION`, and the caller the principal of its clock.
        Raises `GuardBreach` for a change without a clock.
        """
        ...

    async def health(self) -> str | None:
        """Return why the store cannot be used now; None when it can."""
        ...
