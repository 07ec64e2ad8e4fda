"""What the generator tells the engine of entities: states and edges, and where and how each kind is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from runtime.model.kept_in_s3 import KeptInS3


class Take(Struct, frozen=True):
    """A record field that keeps what the driving request says."""

    source: str
    default: str = ""
    keep_first: bool = False


class Backoff(Struct, frozen=True):
    """How long an entity waits; seconds are in variables, milliseconds in the record, by a path."""

    until: str
    count: str
    base: str
    max: str
    times: str | None = None
    """The path of what each wait is multiplied by for the next; 2 where there is none."""
    jitter: str | None = None
    """The path of the fraction by which a wait is shorter or longer."""


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
    paused: str | None = None
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


class Remembered(Struct, frozen=True):
    """A field of which no two entities share a value, for some time or for ever."""

    key: str = ""
    """Empty where its name goes unsaid."""
    seconds: str | None = None


class Outbox(Struct, frozen=True):
    """A stream of all changes, and the tables that they are written to."""

    stream: str
    url: str
    table: str
    ended: str
    by: str
    expires: str | None = None
    """The variable with the seconds for which the history of what has ended is kept."""


class KeptInRedis(Struct, frozen=True):
    """Entities as hashes, and the names of all other keys."""

    engine: ClassVar[str] = "redis"

    url: str
    prefix: str | None
    hash: str = ""
    """Empty where no names are said; then there are none but those of the engine."""
    sequence: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    """The type of each field of the record as the spec has it, `enum` where it is one."""
    optional: frozenset[str] = frozenset()
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """What the values of each enum field are in the hash."""
    trace: str | None = None
    expires: str | None = None
    replicas: str | None = None
    """The variable with how many replicas must have what was created before anybody is told so."""
    unique: Mapping[str, Remembered] = field(default_factory=dict)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    wake_up: str | None = None
    metrics: str | None = None
    outbox: Outbox | None = None

    @property
    def drivers(self) -> frozenset[str]:
        """The components that work for this engine by a clock of its own."""
        return frozenset((self.outbox.by,) if self.outbox is not None else ())


class KeptInSqlite(Struct, frozen=True):
    """The file that keeps the entities, by the variable that names it, and the table in it."""

    engine: ClassVar[str] = "sqlite"
    drivers: ClassVar[frozenset[str]] = frozenset()
    path: str
    table: str
    unique: tuple[str, ...]
    words: Mapping[int, str]
    """What each state is called there."""
    unique_for: Mapping[str, str] = field(default_factory=dict)
    """Fields that no two entities share for some time, and the variable with the seconds."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    expires: str | None = None


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


class Kept(Struct, frozen=True):
    """The server that keeps the entities, and what they are called there."""

    engine: ClassVar[str] = "postgres"
    drivers: ClassVar[frozenset[str]] = frozenset()

    store: str
    url: str
    table: str
    history: str
    unique: tuple[str, ...] = ()
    folder: str = "sql"
    """The folder of the generated SQL, which has its own series of migrations."""
    unique_for: Mapping[str, str] = field(default_factory=dict)
    """Fields that no two entities share for some time, and the variable with the seconds."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    expires: str | None = None


Storage = Kept | KeptInRedis | KeptInSqlite | KeptInS3
_PLACES = {"postgres": "kept", "redis": "in_redis", "sqlite": "in_sqlite", "s3": "in_s3"}


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
    kept: Kept | None = None
    in_redis: KeptInRedis | None = None
    in_sqlite: KeptInSqlite | None = None
    in_s3: KeptInS3 | None = None
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
    public_status: Mapping[int, int] = field(default_factory=dict)
    """What outsiders are told of each state."""

    @property
    def storage(self) -> Storage | None:
        """How the engine that keeps the entities names and lays them out; None for those in memory."""
        return self.kept or self.in_redis or self.in_sqlite or self.in_s3

    @property
    def engine(self) -> str:
        """The name of the engine that keeps the entities."""
        return self.storage.engine if self.storage is not None else "memory"

    def kept_by(self, storage: Storage) -> Lifecycle:
        """Return the same lifecycle in another storage."""
        places = dict.fromkeys(_PLACES.values())
        return replace(self, **{**places, _PLACES[storage.engine]: storage})

    def is_key(self, text: str) -> bool:
        """Whether a text can be the key of an entity at all. Nothing is looked up under any other."""
        return self.key_form is None or re.fullmatch(self.key_form, text) is not None

    def transition(self, name: str) -> Transition:
        """The edge of a name."""
        return next(each for each in (*self.edges.values(), *self.by_name) if each.name == name)
