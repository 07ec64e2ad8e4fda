"""`lifecycle.yaml`: entities, their states, transitions and actors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from codegen.language.base import Doc, LowerName, MethodRef, Part, TypeName, UpperName
from codegen.language.persistence import Keeping, Kept, KeptInRedis, KeptInSqlite, Lease
from codegen.language.s3_persistence import KeptInS3

RecordPath = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$"),
    Field(description="A field of the record, or of a message in it.", examples=["policy.first_ms"]),
]
Actors = Annotated[tuple[LowerName, ...], Field(description="Principals that may do it.")]


class Due(Part):
    """An edge that the engine drives by the clock of the store, all due entities in bounded batches."""

    at: LowerName | None = Field(default=None, description="Record time at which it is due.")
    after: UpperName | None = Field(default=None, description="The variable with the seconds to wait on top.")
    holder_in: UpperName | None = Field(
        default=None, description="It is due as soon as the holder of the lease is in this state."
    )
    by: LowerName = Field(description="The component whose node drives it; it acts as this principal.")
    every: UpperName = Field(description="The variable with the seconds between two looks.")
    batch: UpperName | None = Field(default=None, description="The variable with the most of one step.")
    gives: dict[LowerName, str] = Field(default={}, description="What the edge takes when it is driven so.")
    grace: UpperName | None = Field(
        default=None, description="The variable with the seconds after a start in which nothing is due."
    )
    on_access: bool = Field(
        default=False, description="Whether whoever touches an entity for which it is due takes it first."
    )


class Growth(Part):
    """A number that grows each time, rounded up."""

    times: Annotated[float, Field(gt=1.0)]
    most: UpperName = Field(description="The variable with the most it may become.")


class Fill(Part):
    """A value that depends on another field of the record: one variable for each value of an enum."""

    by: LowerName = Field(description="Record field, an enum.")
    of: dict[UpperName, UpperName] = Field(description="Its values, and the variable of each.")


class Ceiling(Part):
    """How many entities an index may hold before no more are created; the condition has role store_full."""

    index: LowerName
    most: UpperName = Field(description="The variable with the number; 0 is no limit.")


class Creation(Part):
    """How an entity comes to be, in its initial state."""

    by: Actors
    via: MethodRef | None = None
    trigger: Doc
    stamps: tuple[LowerName, ...] = Field(
        default=(), description="Record times set with it; in S3 the age of a lease stays if it lies ahead."
    )
    copies: dict[LowerName, LowerName] = Field(
        default={}, description="Record fields that begin as another field of the record does."
    )
    fills: dict[LowerName, Fill] = Field(
        default={}, description="What stands in for a record field that was not given."
    )
    refuses: Ceiling | None = None


class Deletion(Part):
    """How an entity is taken back."""

    by: Actors
    via: MethodRef | None = None
    trigger: Doc
    from_: Annotated[tuple[UpperName, ...], Field(alias="from", min_length=1)]
    due: Due | None = None
    unless_holding: LowerName | None = Field(
        default=None,
        description="An entity of which none may be leased to it; the condition has role still_held.",
    )


class Take(Part):
    """A record field that keeps what the driving request says."""

    from_: LowerName = Field(alias="from", description="The request field.")
    default: str = Field(default="", description="Stands in for an empty one.")
    keep_first: bool = Field(default=False, description="What the record has already is not replaced.")


class Backoff(Part):
    """How long an entity waits: `base` after the first failure, then twice as long each time."""

    until: LowerName = Field(description="Record time that says when the wait is over.")
    count: LowerName = Field(description="Record field that counts the failures.")
    base: UpperName | RecordPath = Field(
        description="The variable with the seconds after the first failure, or where the record has "
        "milliseconds."
    )
    max: UpperName | RecordPath = Field(
        description="The variable with the most seconds, or where the record has milliseconds."
    )
    times: RecordPath | None = Field(
        default=None, description="Where the record has by what a wait is multiplied for the next."
    )
    jitter: RecordPath | None = Field(
        default=None,
        description="Where the record has the fraction by which a wait is longer or shorter at random, "
        "never over the most.",
    )


class GiveUp(Part):
    """The edge that is taken when an entity has failed too often, or for good.

    It leaves the state that the edge leads to, and both are taken in one step; or it leaves the same state as
    the edge, and is taken in its place.
    """

    with_: LowerName = Field(alias="with", description="The transition that ends it.")
    count: LowerName = Field(description="Record field that counts the failures.")
    less: LowerName | None = Field(
        default=None,
        description="Record field with how many of those counted were no failures; it is subtracted.",
    )
    limit: UpperName | LowerName = Field(
        description="The variable, or the record field, with the most failures that are not the last."
    )


class Transition(Part):
    """One edge of the lifecycle."""

    from_: UpperName = Field(alias="from")
    to: UpperName
    by: Actors
    trigger: Doc
    via: MethodRef | None = Field(default=None, description="Where it differs from the entity's driven_by.")
    when: tuple[LowerName, ...] = Field(default=(), description="Flags of the record that must be set.")
    where: dict[LowerName, UpperName] = Field(default={}, description="Enum fields that must be so.")
    by_name: bool = Field(
        default=False,
        description="Whether it leads where another leads; it is taken where a handler names it, and by "
        "those who may not take the other.",
    )
    after: tuple[MethodRef, ...] = Field(
        default=(),
        description="Calls that the actor completes first, in order and within the same call; kept by the "
        "engine of the actor, as the holder of the entity cannot know of them.",
    )
    stamps: tuple[LowerName, ...] = Field(default=(), description="Record times set when it applies.")
    sets: dict[LowerName, bool | int | str] = Field(default={}, description="Record fields set with it.")
    takes: dict[LowerName, Take] = Field(default={}, description="Record fields taken from the request.")
    copies: dict[LowerName, LowerName] = Field(
        default={}, description="Record fields that become what another field of the record is."
    )
    clears: tuple[LowerName, ...] = Field(default=(), description="Optional record fields that become unset.")
    grows: dict[LowerName, Growth] = Field(default={}, description="Numbers of the record that grow.")
    counts: LowerName | None = Field(default=None, description="Record field that it adds 1 to.")
    waits: Backoff | None = None
    gives_up: GiveUp | None = None
    due: Due | None = None
    also_due: Due | None = Field(default=None, description="A second clock that drives it.")
    reason: LowerName | None = Field(
        default=None, description="What it is given that says why; history and metrics have it."
    )


class Shift(Part):
    """A change that leaves the state as it is, in one step with the indexes that it touches."""

    in_: Annotated[tuple[UpperName, ...], Field(alias="in", min_length=1)]
    by: Actors
    trigger: Doc
    where: dict[LowerName, UpperName] = Field(default={}, description="Enum fields that must be so.")
    stamps: tuple[LowerName, ...] = ()
    sets: dict[LowerName, bool | int | str] = {}
    takes: dict[LowerName, Take] = {}
    clears: tuple[LowerName, ...] = ()
    fenced: bool = Field(default=False, description="Only the holder of the lease may do it.")
    due: Due | None = None


class Overrides(Part):
    """Values that stand in for those of variables for some entities, told apart by a text of the record."""

    by: LowerName = Field(description="Record field that is compared.")
    for_: dict[str, dict[UpperName, int | float]] = Field(
        alias="for", description="Texts, and for each the variables of its waits and limits that differ."
    )


class Shown(Part):
    """What outsiders are told of a state."""

    enum: TypeName
    as_: dict[UpperName, UpperName] = Field(alias="as", description="States and the value each is shown as.")


class Entity(Part):
    """Something with a life: a key, a record, states and transitions."""

    doc: Doc
    key: LowerName
    record: TypeName = Field(description="The message that holds its fields.")
    status: LowerName = Field(description="The enum field of the record that holds its state.")
    held_by: LowerName = Field(description="The component that applies its transitions.")
    shared_with: tuple[LowerName, ...] = Field(
        default=(), description="Further components that apply them, where a server keeps the entities."
    )
    kept_in: Keeping | None = Field(default=None, description="Where it is kept; in memory unless said.")
    shown: Shown | None = None
    lease: Lease | None = None
    overrides: Overrides | None = None
    listed_by: LowerName | None = Field(
        default=None, description="Record time that orders listings; ties are broken by the key."
    )
    retention: LowerName | None = Field(default=None, description="The policy that bounds terminal records.")
    driven_by: MethodRef | None = Field(
        default=None, description="The method through which actors move it; without one they have the store."
    )
    initial: UpperName
    terminal: tuple[UpperName, ...]
    failed: tuple[UpperName, ...] = Field(
        default=(),
        description="States in which it has not come to what was wanted. Where a transition that gives up "
        "leads to is such a state without being named. `charter … --watch` ends there with exit code 4.",
    )
    terminal_race: Literal["first_wins"] = Field(
        default="first_wins", description="Which of two racing terminal writes stands."
    )
    create: Creation
    delete: Deletion | None = None
    transitions: dict[LowerName, Transition]
    shifts: dict[LowerName, Shift] = Field(
        default={}, description="Changes that leave the state as it is; Redis and S3 have them."
    )

    @property
    def paired_edges(self) -> set[str]:
        """Edges that share source and target with an edge by name, including the latter."""
        shared = {self._get_ends(name) for name, edge in self.transitions.items() if edge.by_name}
        return {name for name in self.transitions if self._get_ends(name) in shared}

    @property
    def named_edges(self) -> list[str]:
        """Edges that share source and target with another one, and are selected by name only."""
        ends = {edge.gives_up.with_ for edge in self.transitions.values() if edge.gives_up}
        named = {name for name, edge in self.transitions.items() if edge.by_name}
        pairs = [self._get_ends(name) for name in self.transitions if name not in ends | named]
        return [
            name
            for name in self.transitions
            if name in named or (name in ends and self._get_ends(name) in pairs)
        ]

    @property
    def failed_states(self) -> list[str]:
        """The failed states: those named in the spec, and the targets of dead-letter edges."""
        ends = [edge.gives_up.with_ for edge in self.transitions.values() if edge.gives_up]
        given_up = (self.transitions[name].to for name in ends if name in self.transitions)
        return list(dict.fromkeys((*self.failed, *given_up)))

    def _get_ends(self, name: str) -> tuple[str, str]:
        return self.transitions[name].from_, self.transitions[name].to

    @property
    def in_postgres(self) -> Kept | None:
        """Its persistence in PostgreSQL, if it is kept there."""
        return self.kept_in if isinstance(self.kept_in, Kept) else None

    @property
    def in_sqlite(self) -> KeptInSqlite | None:
        """Its persistence in SQLite, if it is kept there."""
        return self.kept_in if isinstance(self.kept_in, KeptInSqlite) else None

    @property
    def in_redis(self) -> KeptInRedis | None:
        """Its persistence in Redis, if it is kept there."""
        return self.kept_in if isinstance(self.kept_in, KeptInRedis) else None

    @property
    def in_s3(self) -> KeptInS3 | None:
        """Its persistence in a bucket, if it is kept there."""
        return self.kept_in if isinstance(self.kept_in, KeptInS3) else None


class LifecycleFile(Part):
    """Every entity of the system."""

    entities: dict[LowerName, Entity]
