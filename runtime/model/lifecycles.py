"""Tables of lifecycles: states, edges, leases and storage of entities, as the generator writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

Amount = str | float
"""A number, or the name of what has it: a variable, which is in upper case, or a path of the record."""


class Take(Struct, frozen=True):
    """A record field that is set from a field of the driving request."""

    source: str
    default: str = ""
    keep_first: bool = False


class Backoff(Struct, frozen=True):
    """Backoff of an entity: numbers and variables are seconds, paths of the record milliseconds."""

    until: str
    base: Amount
    max: Amount | None = None
    """The longest backoff; unbounded without it."""
    count: str | None = None
    times: Amount | None = None
    """The multiplier of each backoff; 2 where there is none."""
    jitter: Amount | None = None
    """The jitter, as a fraction of the backoff."""
    kind: str = "exponential"
    """Its growth: `exponential`, `linear` or `constant`."""


class DeadLetter(Struct, frozen=True):
    """A further edge in the same step after the maximum of attempts, or a permanent failure."""

    transition: str
    count: str
    limit: str
    less: str | None = None
    """The field with the number of counted attempts that were no failures."""


class Due(Struct, frozen=True):
    """A due change, which the clock of the store drives; numbers are in variables."""

    at: str | None
    by: str
    every: str
    after: str | None = None
    holder_in: int | None = None
    """The state of the lease's holder in which it is due at once."""
    batch: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    grace: str | None = None
    on_access: bool = False
    """Whether every access of an entity applies it first, if it is due."""


class Multiplier(Struct, frozen=True):
    """A number that is multiplied each time and rounded up, with a maximum in a variable."""

    times: float
    max: str


class Transition(Struct, frozen=True):
    """One edge of a lifecycle."""

    name: str
    source: int
    target: int
    actors: frozenset[str]
    via: str | None
    """The only method that drives it; None where its actors use the store itself."""
    when: tuple[str, ...] = ()
    where: Mapping[str, int] = field(default_factory=dict)
    by_name: bool = False
    """Whether another edge has the same states, so that it is only applied by its name."""
    after: tuple[str, ...] = ()
    """Methods that the actor completes first, in order; see `runtime.call.step_order`."""
    stamps: tuple[str, ...] = ()
    sets: Mapping[str, object] = field(default_factory=dict)
    from_request: Mapping[str, Take] = field(default_factory=dict)
    copy: Mapping[str, str] = field(default_factory=dict)
    clear: tuple[str, ...] = ()
    multiply: Mapping[str, Multiplier] = field(default_factory=dict)
    increment: str | None = None
    backoff: Backoff | None = None
    dead_letter: DeadLetter | None = None
    dues: tuple[Due, ...] = ()
    reason: str | None = None
    others: frozenset[int] = frozenset()
    """Further states that it leaves. Of an edge that is taken the source is the state that it has left."""

    @property
    def sources(self) -> frozenset[int]:
        """All states that it leaves."""
        return self.others | {self.source}

    def taken_from(self, state: int) -> Transition:
        """Return the same edge as it is taken out of one of its states."""
        if state == self.source:
            return self
        return replace(self, source=state, others=self.sources - {state})


class Update(Struct, frozen=True):
    """A change of a record that keeps its state."""

    name: str
    states: frozenset[int]
    actors: frozenset[str]
    where: Mapping[str, int] = field(default_factory=dict)
    stamps: tuple[str, ...] = ()
    sets: Mapping[str, object] = field(default_factory=dict)
    from_request: Mapping[str, Take] = field(default_factory=dict)
    clear: tuple[str, ...] = ()
    fenced: bool = False
    dues: tuple[Due, ...] = ()


class Holder(Struct, frozen=True):
    """The entity of lease holders, with its capacity, and the capabilities that claims match."""

    entity: str
    states: frozenset[int]
    capacity: str
    offers: str
    needs: str
    booked: str


class Lease(Struct, frozen=True):
    """Time-limited ownership of an entity while it is in one state."""

    state: int
    owner: str
    expires: str
    """Empty where `renewed` determines the expiry."""
    fence: str
    seconds: str
    """A variable, or in lower case a field of the record."""
    oldest_by: str
    index: str | None = None
    claim_order: tuple[int, ...] = ()
    holder: Holder | None = None
    keeps_owner: bool = False
    renewed: str | None = None
    """The time of the last renewal, where there is no time of expiry."""
    token: str | None = None
    """The field with a new UUID for each claim."""
    only: str | None = None
    """The field with the capability that an owner needs."""


class Parts(Struct, frozen=True):
    """The partitions of an index, one for each set of texts that occurs."""

    by: str
    key: str
    known: str


class Index(Struct, frozen=True):
    """An index of the keys of entities, which every write updates atomically."""

    key: str
    states: frozenset[int]
    score: str | None = None
    only_if: str | None = None
    only_unless: str | None = None
    parts: Parts | None = None


class Default(Struct, frozen=True):
    """The default of a field: a variable for each value of an enum field."""

    by: str
    of: Mapping[int, str]


class Overrides(Struct, frozen=True):
    """Overrides of variables for some entities, by a text field of the record."""

    by: str
    values: Mapping[str, Mapping[str, float]]
    """By the value of that field: the overridden variables, and their values."""


class Ceiling(Struct, frozen=True):
    """The maximum size of an index, beyond which no entities are created."""

    index: str
    max: str


class Placed(Struct, frozen=True):
    """The parts of an engine's layout that affect the semantics of entities."""

    unique: Mapping[str, str | None] = field(default_factory=dict)
    """Unique fields, each with the variable with the seconds for which it is unique."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    retained_s: str | None = None
    """The variable with the retention of ended entities in seconds."""
    trace: str | None = None


class Storage(Struct, frozen=True):
    """The layout of entities in an engine; each engine has a subclass in `runtime/stores/layouts`."""

    engine: ClassVar[str] = ""

    @property
    def drivers(self) -> frozenset[str]:
        """The components that this engine needs for its own periodic work."""
        return frozenset()

    @property
    def placed(self) -> Placed:
        """The parts that affect the semantics of entities."""
        return Placed()


StorageKind = TypeVar("StorageKind", bound=Storage)


class Lifecycle(Struct, frozen=True):
    """The states of an entity and the edges between them."""

    entity: str
    holder: str
    key: str
    status: str
    states: Mapping[int, str]
    initial: int
    terminal: frozenset[int]
    creators: frozenset[str]
    creation_stamps: tuple[str, ...]
    listed_by: str | None
    retained_by: str | None
    deletable: frozenset[int]
    deleters: frozenset[str]
    edges: Mapping[tuple[int, int], Transition]
    """By its two states: the edge that is meant where no name is said."""
    by_name: tuple[Transition, ...] = ()
    """Edges with the states of another edge; they are only applied by their names."""
    failed: frozenset[int] = frozenset()
    """States of failure."""
    holders: frozenset[str] = frozenset()
    """Every component that applies its transitions."""
    key_form: str | None = None
    """The regular expression of keys, where they become parts of other names; None for any text."""
    record: type[Any] | None = None
    """The record class, for entities in a store."""
    storage: Storage | None = None
    """The layout of the engine that stores the entities; None for those in memory."""
    revision: str | None = None
    """The field that counts the writes of a record."""
    copy: Mapping[str, str] = field(default_factory=dict)
    """Fields that are initialized from another field."""
    defaults: Mapping[str, Default] = field(default_factory=dict)
    ceiling: Ceiling | None = None
    deletion_due: Due | None = None
    unless_holding: str | None = None
    logged: bool = True
    """Whether each change is logged."""
    updates: Mapping[str, Update] = field(default_factory=dict)
    lease: Lease | None = None
    overrides: Overrides | None = None
    begins: frozenset[int] = frozenset()
    """Further states in which an entity begins where the record of its creator has one of them."""
    resting: frozenset[int] = frozenset()
    """States in which it stays until a request moves it."""
    public_status: Mapping[int, int] = field(default_factory=dict)
    """The public value of each state."""

    @property
    def engine(self) -> str:
        """The name of the engine that stores the entities."""
        return self.storage.engine if self.storage is not None else "memory"

    def kept_by(self, storage: Storage) -> Lifecycle:
        """Return the lifecycle with another storage."""
        return replace(self, storage=storage)

    def stored_as(self, kind: type[StorageKind]) -> StorageKind | None:
        """Return the storage if it is of a kind, else None."""
        return self.storage if isinstance(self.storage, kind) else None

    def require_storage(self, kind: type[StorageKind]) -> StorageKind:
        """Return the storage of a kind; raises LookupError for any other."""
        if (found := self.stored_as(kind)) is None:
            raise LookupError(f"{self.entity} is not stored as {kind.__name__}")
        return found

    def is_key(self, text: str) -> bool:
        """Whether a text is a valid key of an entity."""
        return self.key_form is None or re.fullmatch(self.key_form, text) is not None

    @property
    def transitions(self) -> Mapping[str, Transition]:
        """All edges by name; those that are taken by their names come last."""
        usual = (each for each in self.edges.values() if each not in self.by_name)
        return {each.name: each for each in (*usual, *self.by_name)}

    def transition(self, name: str) -> Transition:
        """Return the edge with a name."""
        return self.transitions[name]
