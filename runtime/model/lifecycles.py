"""What the generator tells the engine of entities: states and edges, and where and how each kind is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

Amount = str | float
"""A number, or the name of what has it: a variable, which is in upper case, or a path of the record."""


class Take(Struct, frozen=True):
    """A record field that keeps what the driving request says."""

    source: str
    default: str = ""
    keep_first: bool = False


class Backoff(Struct, frozen=True):
    """How long an entity waits: numbers and variables have seconds, paths of the record milliseconds."""

    until: str
    base: Amount
    max: Amount | None = None
    """The longest wait; none where there is none."""
    count: str | None = None
    times: Amount | None = None
    """What each wait is multiplied by for the next; 2 where there is nothing."""
    jitter: Amount | None = None
    """The fraction by which a wait is shorter or longer."""
    kind: str = "exponential"
    """How it grows: `exponential`, `linear` or `constant`."""


class DeadLetter(Struct, frozen=True):
    """A further edge taken in the same step when an entity has failed too often, or for good."""

    transition: str
    count: str
    limit: str
    less: str | None = None
    """The field with how many of those counted were no failures."""


class Due(Struct, frozen=True):
    """A change that the engine drives by the clock of the store; numbers are in variables."""

    at: str | None
    by: str
    every: str
    after: str | None = None
    holder_in: int | None = None
    """The state of the holder of the lease in which it is due at once."""
    batch: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    grace: str | None = None
    on_access: bool = False
    """Whether whoever touches an entity for which it is due takes it first."""


class Multiplier(Struct, frozen=True):
    """A number that grows each time, rounded up, to what a variable says at most."""

    times: float
    max: str


class Transition(Struct, frozen=True):
    """One edge of a lifecycle."""

    name: str
    source: int
    target: int
    actors: frozenset[str]
    via: str | None
    """The method through which it is driven, and no other; None where its actors have the store itself."""
    when: tuple[str, ...] = ()
    where: Mapping[str, int] = field(default_factory=dict)
    by_name: bool = False
    """Whether it leads where another leads, and is taken only by its name."""
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
    """A change that leaves the state as it is."""

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
    """The entity that a lease is booked on, and what the two must have in common."""

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
    """Empty where the lease goes by `renewed`."""
    fence: str
    seconds: str
    """A variable, or a field of the record where it is in lower case."""
    oldest_by: str
    index: str | None = None
    claim_order: tuple[int, ...] = ()
    holder: Holder | None = None
    keeps_owner: bool = False
    renewed: str | None = None
    """The time that its holder moves on, where there is none at which it ends."""
    token: str | None = None
    """A fresh UUID at each taking."""
    only: str | None = None
    """The text of an entity that says whether somebody is able to take it."""


class Parts(Struct, frozen=True):
    """An index that is also kept apart for each set of texts that occurs."""

    by: str
    key: str
    known: str


class Index(Struct, frozen=True):
    """A set of the keys of entities, kept in step with them by every script."""

    key: str
    states: frozenset[int]
    score: str | None = None
    only_if: str | None = None
    only_unless: str | None = None
    parts: Parts | None = None


class Default(Struct, frozen=True):
    """What stands in for a field that was not given: a variable for each value of an enum field."""

    by: str
    of: Mapping[int, str]


class Overrides(Struct, frozen=True):
    """Values of variables for some entities, told apart by a text of the record."""

    by: str
    values: Mapping[str, Mapping[str, float]]
    """By that text: the variables that differ, and their values."""


class Ceiling(Struct, frozen=True):
    """How many an index may hold before no more are created."""

    index: str
    max: str


class Placed(Struct, frozen=True):
    """Words of meaning that stand beside the physical names of an engine."""

    unique: Mapping[str, str | None] = field(default_factory=dict)
    """Fields that no two entities share, and the variable with the seconds for which that holds."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    retained_s: str | None = None
    """The variable with the seconds for which an entity is kept that has ended."""
    trace: str | None = None


class Storage(Struct, frozen=True):
    """How an engine names and lays out entities; each engine has a subclass in `runtime/stores/layouts`."""

    engine: ClassVar[str] = ""

    @property
    def drivers(self) -> frozenset[str]:
        """The components that work for this engine by a clock of its own."""
        return frozenset()

    @property
    def placed(self) -> Placed:
        """What it says of the meaning of entities."""
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
    """Edges that lead where another leads; they are taken by their names only."""
    failed: frozenset[int] = frozenset()
    """States in which it has not come to what was wanted."""
    holders: frozenset[str] = frozenset()
    """Every component that applies its transitions."""
    key_form: str | None = None
    """What every key matches, where keys become parts of other names; None where any text can be one."""
    record: type[Any] | None = None
    """What an entity is in Python, where a server keeps it."""
    storage: Storage | None = None
    """How the engine that keeps the entities names and lays them out; None for those in memory."""
    revision: str | None = None
    """The field that counts the writes of a record."""
    copy: Mapping[str, str] = field(default_factory=dict)
    """Fields that begin as another field does."""
    defaults: Mapping[str, Default] = field(default_factory=dict)
    ceiling: Ceiling | None = None
    deletion_due: Due | None = None
    unless_holding: str | None = None
    logged: bool = True
    """Whether each change has a line in the log."""
    updates: Mapping[str, Update] = field(default_factory=dict)
    lease: Lease | None = None
    overrides: Overrides | None = None
    begins: frozenset[int] = frozenset()
    """Further states in which an entity begins where the record of its creator has one of them."""
    resting: frozenset[int] = frozenset()
    """States in which it stays until somebody acts."""
    public_status: Mapping[int, int] = field(default_factory=dict)
    """What outsiders are told of each state."""

    @property
    def engine(self) -> str:
        """The name of the engine that keeps the entities."""
        return self.storage.engine if self.storage is not None else "memory"

    def kept_by(self, storage: Storage) -> Lifecycle:
        """Return the same lifecycle in another storage."""
        return replace(self, storage=storage)

    def stored_as(self, kind: type[StorageKind]) -> StorageKind | None:
        """Return the storage if it is of a kind, which an engine asks for its own."""
        return self.storage if isinstance(self.storage, kind) else None

    def require_storage(self, kind: type[StorageKind]) -> StorageKind:
        """Return the storage, which is of a kind wherever this is asked."""
        if (found := self.stored_as(kind)) is None:
            raise LookupError(f"{self.entity} is not stored as {kind.__name__}")
        return found

    def is_key(self, text: str) -> bool:
        """Whether a text can be the key of an entity at all. Nothing is looked up under any other."""
        return self.key_form is None or re.fullmatch(self.key_form, text) is not None

    @property
    def transitions(self) -> Mapping[str, Transition]:
        """All edges by name; those that are taken by their names come last."""
        usual = (each for each in self.edges.values() if each not in self.by_name)
        return {each.name: each for each in (*usual, *self.by_name)}

    def transition(self, name: str) -> Transition:
        """The edge of a name."""
        return self.transitions[name]
