"""`lifecycle.yaml`: entities, their states, transitions and actors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, PrivateAttr, Tag

from codegen.language.base import (
    Amount,
    Doc,
    LowerName,
    MethodRef,
    NumberSource,
    Part,
    TypeName,
    UpperName,
)
from codegen.language.leases import Index, Lease
from codegen.language.lifecycle_values import Ceiling, Default, Multiplier, Overrides, PublicStatus
from codegen.language.storage.layouts import (
    EntityLayout,
    KeptInMemory,
    KeptInPostgres,
    KeptInRedis,
    KeptInS3,
    KeptInSqlite,
    Words,
)

Actors = Annotated[tuple[LowerName, ...], Field(description="Principals that may do it.")]


class Due(Part):
    """A clock that drives a change: the engine sweeps all entities that are due, in bounded batches."""

    at: LowerName | None = Field(
        default=None,
        description="Record field, a time, after which the change is due; either this or `holder_in`.",
    )
    after: UpperName | None = Field(
        default=None, description="Variable with the seconds to add to `at`; none without it."
    )
    holder_in: UpperName | None = Field(
        default=None,
        description="State of the entity that holds the lease: the change is due while the holder is in "
        "it, or is gone.",
    )
    by: LowerName = Field(
        description="Component whose nodes sweep, any number of them; it is the actor of the change."
    )
    every: UpperName = Field(description="Variable with the seconds between two sweeps.")
    batch: UpperName | None = Field(
        default=None,
        description="Variable with the most entities of one step; by default the engine chooses.",
    )
    values: dict[LowerName, str] = Field(
        default={},
        description="Values for `from_request` and `reason` when the clock drives the change; `{name}` in a "
        "text is a field of the record.",
    )
    grace: UpperName | None = Field(
        default=None,
        description="Variable with the seconds after the store was opened in which nothing is due; none "
        "without it.",
    )
    on_access: bool = Field(
        default=False,
        description="Whether a read or a write of an entity that is due applies the change first, without "
        "waiting for the sweep.",
    )


def _find_form(value: Any) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


def _unwrap_single(value: Any) -> Any:
    """Unwrap a list of one, which means the same as the one."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


Dues = Annotated[
    Annotated[Due, Tag("one")] | Annotated[tuple[Due, ...], Field(min_length=1), Tag("several")],
    Discriminator(_find_form),
    AfterValidator(_unwrap_single),
]
"""A clock, or several of them, each of which drives the change by itself."""


def _list_dues(dues: Due | tuple[Due, ...] | None) -> tuple[Due, ...]:
    return dues if isinstance(dues, tuple) else (dues,) if dues else ()


Sources = Annotated[
    Annotated[UpperName, Tag("one")] | Annotated[tuple[UpperName, ...], Field(min_length=1), Tag("several")],
    Discriminator(_find_form),
    AfterValidator(_unwrap_single),
]
"""A state, or several of them."""


class Creation(Part):
    """The creation of an entity, in its initial state or in another one that its creator names."""

    by: Actors = Field(description="Principals that may create one.")
    via: MethodRef | None = Field(
        default=None,
        description="Method by which they create it; without one they have the store itself.",
    )
    trigger: Doc = Field(description="When it is created; for the reference page.")
    to: tuple[UpperName, ...] = Field(
        default=(),
        description="Further states in which it may begin: the one that the record of the creator has; "
        "without one it begins in `initial`.",
    )
    stamps: tuple[LowerName, ...] = Field(
        default=(),
        description="Record fields, times, that are set to now; the time before which an entity cannot be "
        "claimed stays if it lies ahead.",
    )
    copy_: dict[LowerName, LowerName] = Field(
        alias="copy",
        default={},
        description="Record fields, and the field that each has its first value from.",
    )
    defaults: dict[LowerName, Default] = Field(
        default={}, description="Optional record fields, and the default of each where it was not given."
    )
    ceiling: Ceiling | None = Field(
        default=None, description="The most that there may be; without it there is no limit."
    )


class Deletion(Part):
    """The deletion of an entity with its record."""

    by: Actors = Field(description="Principals that may delete one.")
    via: MethodRef | None = Field(
        default=None, description="Method by which they delete it; without one they have the store itself."
    )
    trigger: Doc = Field(description="When it is deleted; for the reference page.")
    from_: Annotated[tuple[UpperName, ...], Field(min_length=1)] = Field(
        alias="from", description="States in which it may be deleted."
    )
    due: Due | None = Field(default=None, description="Clock that deletes it; without one it stays.")
    unless_holding: LowerName | None = Field(
        default=None,
        description="Leased entity whose holder this one is: while it holds a lease, the deletion raises "
        "the condition of role `still_held`.",
    )


class Take(Part):
    """A record field whose value comes from the request of the change."""

    from_: LowerName = Field(alias="from", description="Name of the value in the request.")
    default: str = Field(
        default="",
        description="Value where the request has none or an empty one, such as a reason of `errors.yaml`; "
        "without it the field is unset.",
    )
    keep_first: bool = Field(
        default=False, description="Whether a value that the record has already is kept."
    )


class Backoff(Part):
    """The wait before the next attempt. Each number is one of the spec, of a variable or of the record."""

    kind: Literal["exponential", "linear", "constant"] = Field(
        default="exponential",
        description="How it grows: `exponential` by a factor with each failure, `linear` by `base` with "
        "each failure, `constant` not at all.",
    )
    until: LowerName = Field(description="Record field that gets the time at which the wait ends.")
    count: LowerName | None = Field(
        default=None,
        description="Record field with the number of failures; a constant backoff has none.",
    )
    base: Amount = Field(
        description="Wait after the first failure: a number or `{env: NAME}` in seconds, or "
        "`{field: path}` of the record in milliseconds."
    )
    max: Amount | None = Field(
        default=None,
        description="Longest wait, in the same units; only a constant backoff needs none.",
    )
    times: Amount | None = Field(
        default=None,
        description="Factor of an exponential backoff, 2 by default: a number, `{env: NAME}`, or "
        "`{field: path}` of the record.",
    )
    jitter: Amount | None = Field(
        default=None,
        description="Fraction, 0 to 1, by which a wait is longer or shorter at random, up to `max`: a "
        "number, `{env: NAME}`, or `{field: path}` of the record; without it there is no jitter.",
    )


class DeadLetter(Part):
    """Max attempts: the dead-letter edge that is taken when an entity has failed too often, or for good.

    It starts at the target of the failing edge, and both are taken in one step; or at its source, and is
    taken in its place.
    """

    transition: LowerName = Field(description="The dead-letter edge, a transition of this entity.")
    count: LowerName = Field(description="Record field with the number of failures.")
    less: LowerName | None = Field(
        default=None,
        description="Record field with how many of those counted were no failures, which is subtracted.",
    )
    limit: NumberSource = Field(
        description="The most failures that are followed by another attempt: `{env: NAME}`, or "
        "`{field: name}` of the record."
    )


class Transition(Part):
    """One edge of the lifecycle. Everything that it writes is written in one step with the state."""

    from_: Sources = Field(alias="from", description="State that it leaves, or a list of several.")
    to: UpperName = Field(description="State that it leads to.")
    by: Actors = Field(description="Actors: principals that may take it.")
    trigger: Doc = Field(description="When it is taken; for the reference page.")
    via: MethodRef | None = Field(
        default=None, description="Method by which actors take it, where it is not `driven_by` of the entity."
    )
    when: tuple[LowerName, ...] = Field(
        default=(), description="Record fields of type bool that must be true; else the edge does not apply."
    )
    where: dict[LowerName, UpperName] = Field(
        default={},
        description="Record fields, enums, and the value that each must have; else the edge does not apply.",
    )
    by_name: bool = Field(
        default=False,
        description="Whether it has source and target of another edge; then it is taken by its name, or by "
        "actors that may not take the other one.",
    )
    after: tuple[MethodRef, ...] = Field(
        default=(),
        description="Methods that the actor calls first, in this order and within the same inbound call; "
        "the typed client of the actor enforces it.",
    )
    stamps: tuple[LowerName, ...] = Field(
        default=(), description="Record fields, times, that are set to now."
    )
    sets: dict[LowerName, bool | int | str] = Field(
        default={}, description="Record fields, and the fixed value that each gets."
    )
    from_request: dict[LowerName, Take] = Field(
        default={}, description="Record fields whose values come from the request."
    )
    copy_: dict[LowerName, LowerName] = Field(
        alias="copy", default={}, description="Record fields, and the field that each gets the old value of."
    )
    clear: tuple[LowerName, ...] = Field(default=(), description="Optional record fields that become unset.")
    multiply: dict[LowerName, Multiplier] = Field(
        default={}, description="Record fields, numbers, that grow by a factor."
    )
    increment: LowerName | None = Field(
        default=None,
        description="Record field, a number, that is incremented; `sets` elsewhere lets it begin anew.",
    )
    backoff: Backoff | None = Field(
        default=None, description="Backoff in the target state; without it the entity is free at once."
    )
    dead_letter: DeadLetter | None = Field(
        default=None, description="Max attempts; without it the edge can be taken any number of times."
    )
    due: Dues | None = Field(
        default=None,
        description="Clock that drives it, or a list of several; without one only actors take it.",
    )
    reason: LowerName | None = Field(
        default=None,
        description="Name of the value in the request that says why; history and metrics have it.",
    )

    @property
    def sources(self) -> tuple[str, ...]:
        """The states that it leaves."""
        return (self.from_,) if isinstance(self.from_, str) else self.from_

    @property
    def dues(self) -> tuple[Due, ...]:
        """The clocks that drive it."""
        return _list_dues(self.due)


class Update(Part):
    """A change of fields that leaves the state as it is, in one step with the indexes."""

    in_: Annotated[tuple[UpperName, ...], Field(min_length=1)] = Field(
        alias="in", description="States in which it applies."
    )
    by: Actors = Field(description="Actors: principals that may make it.")
    trigger: Doc = Field(description="When it is made; for the reference page.")
    where: dict[LowerName, UpperName] = Field(
        default={},
        description="Record fields, enums, and the value that each must have; else the update does not "
        "apply.",
    )
    stamps: tuple[LowerName, ...] = Field(
        default=(), description="Record fields, times, that are set to now."
    )
    sets: dict[LowerName, bool | int | str] = Field(
        default={}, description="Record fields, and the fixed value that each gets."
    )
    from_request: dict[LowerName, Take] = Field(
        default={}, description="Record fields whose values come from the request."
    )
    clear: tuple[LowerName, ...] = Field(default=(), description="Optional record fields that become unset.")
    fenced: bool = Field(
        default=False, description="Whether it needs the lease: owner and fence are checked."
    )
    due: Dues | None = Field(
        default=None,
        description="Clock that drives it, or a list of several; without one only actors make it.",
    )

    @property
    def dues(self) -> tuple[Due, ...]:
        """The clocks that drive it."""
        return _list_dues(self.due)


class Entity(Part):
    """A thing with a lifecycle: a key, a record, states and transitions."""

    _layout: EntityLayout = PrivateAttr(default=KeptInMemory(Words(), False))
    doc: Doc = Field(description="What it is; for the reference page.")
    key: LowerName = Field(description="Record field, a string, that identifies it and never changes.")
    record: TypeName = Field(description="Message of `types.yaml` with its fields.")
    status: LowerName = Field(description="Record field, an enum, that has its state.")
    held_by: LowerName = Field(description="Component whose handler gets its store and applies transitions.")
    shared_with: tuple[LowerName, ...] = Field(
        default=(),
        description="Further components that have its store, where a server keeps the entities.",
    )
    unique: tuple[LowerName, ...] = Field(
        default=(),
        description="Record fields of which no two entities share a value, each by itself; a creation with "
        "a known value finds the first entity.",
    )
    unique_for: dict[LowerName, UpperName] = Field(
        default={},
        description="Record fields of which no two entities share a value for some time, and the variable "
        "with the seconds.",
    )
    indexes: dict[LowerName, Index] = Field(
        default={},
        description="Indexes by name, for the order of claims, limits, gauges and lists; an engine has those "
        "that it needs by itself beside them.",
    )
    expires: UpperName | None = Field(
        default=None,
        description="Variable with the seconds for which entities in a terminal state are kept; without "
        "it, for ever.",
    )
    public_status: PublicStatus | None = Field(
        default=None, description="Public status; without it clients see the states themselves."
    )
    lease: Lease | None = Field(
        default=None, description="Time-limited ownership in one state; without it nothing is claimed."
    )
    overrides: Overrides | None = Field(
        default=None, description="Other backoffs and limits for some entities, by a text of the record."
    )
    listed_by: LowerName | None = Field(
        default=None,
        description="Record field, a time, that orders lists, then the key; without it the key alone.",
    )
    revision: LowerName | None = Field(
        default=None,
        description="Record field, a number, that counts the writes of an entity.",
    )
    logged: bool = Field(
        default=True,
        description="Whether each creation, transition and deletion has a line in the log of the node.",
    )
    retention: LowerName | None = Field(
        default=None,
        description="Policy of `policies.retention` that bounds terminal entities in memory; without it "
        "all are kept.",
    )
    driven_by: MethodRef | None = Field(
        default=None,
        description="Method by which actors take its transitions; without one they have the store itself.",
    )
    initial: UpperName = Field(
        description="State of a new entity, unless `to` of `create` has the one that its creator names."
    )
    terminal: tuple[UpperName, ...] = Field(
        description="States that no transition leaves; an empty list where there is none."
    )
    resting: tuple[UpperName, ...] = Field(
        default=(),
        description="States that are not terminal and that an entity leaves only by a request: no clock "
        "drives a transition out of them, and no lease is taken there. `charter … --watch` ends in them.",
    )
    failed: tuple[UpperName, ...] = Field(
        default=(),
        description="States that count as failures, in which `charter … --watch` ends with exit code 4; "
        "the targets of dead-letter edges are such states anyway.",
    )
    terminal_race: Literal["first_wins"] = Field(
        default="first_wins",
        description="Which of two concurrent transitions to a terminal state applies: the first.",
    )
    create: Creation = Field(description="Its creation.")
    delete: Deletion | None = Field(
        default=None, description="Its deletion; without it nothing deletes an entity but its retention."
    )
    transitions: dict[LowerName, Transition] = Field(description="Edges by name.")
    updates: dict[LowerName, Update] = Field(
        default={}, description="Changes that leave the state as it is, by name; no edge has the same name."
    )

    @property
    def beginnings(self) -> tuple[str, ...]:
        """The states in which an entity may begin, the usual one first."""
        return (self.initial, *self.create.to)

    @property
    def paired_edges(self) -> set[str]:
        """Edges that share source and target with an edge by name, including the latter."""
        shared = {
            ends for name, edge in self.transitions.items() if edge.by_name for ends in self._ends(name)
        }
        return {name for name in self.transitions if shared & {*self._ends(name)}}

    @property
    def named_edges(self) -> list[str]:
        """Edges that share source and target with another one, and are selected by name only."""
        ends = {edge.dead_letter.transition for edge in self.transitions.values() if edge.dead_letter}
        named = {name for name, edge in self.transitions.items() if edge.by_name}
        pairs = {pair for name in self.transitions if name not in ends | named for pair in self._ends(name)}
        return [
            name
            for name in self.transitions
            if name in named or (name in ends and pairs & {*self._ends(name)})
        ]

    @property
    def edges_by_ends(self) -> dict[tuple[str, str], str]:
        """By source and target: the edge that is meant where no name is said."""
        named = self.named_edges
        found: dict[tuple[str, str], str] = {}
        for name in (*(each for each in self.transitions if each not in named), *named):
            for ends in self._ends(name):
                found.setdefault(ends, name)
        return found

    @property
    def failed_states(self) -> list[str]:
        """The failed states: those named in the spec, and the targets of dead-letter edges."""
        ends = [edge.dead_letter.transition for edge in self.transitions.values() if edge.dead_letter]
        given_up = (self.transitions[name].to for name in ends if name in self.transitions)
        return list(dict.fromkeys((*self.failed, *given_up)))

    def _ends(self, name: str) -> list[tuple[str, str]]:
        edge = self.transitions[name]
        return [(source, edge.to) for source in edge.sources]

    @property
    def kept_in(self) -> EntityLayout:
        """How an engine keeps it: that of a deployment, or the one that storage.yaml names it for."""
        return self._layout

    def laid_out(self, layout: EntityLayout) -> Entity:
        """Return the same entity as an engine keeps it."""
        found = self.model_copy()
        found._layout = layout
        return found

    @property
    def in_sql(self) -> KeptInPostgres | KeptInSqlite | None:
        """How a database keeps it, whichever that is."""
        return self.in_postgres or self.in_sqlite

    @property
    def in_postgres(self) -> KeptInPostgres | None:
        """Its layout in PostgreSQL, if it is kept there."""
        return self._layout if isinstance(self._layout, KeptInPostgres) else None

    @property
    def in_sqlite(self) -> KeptInSqlite | None:
        """Its layout in SQLite, if it is kept there."""
        return self._layout if isinstance(self._layout, KeptInSqlite) else None

    @property
    def in_redis(self) -> KeptInRedis | None:
        """Its layout in Redis, if it is kept there."""
        return self._layout if isinstance(self._layout, KeptInRedis) else None

    @property
    def in_s3(self) -> KeptInS3 | None:
        """Its layout in a bucket, if storage.yaml has one; without it the engine has its own."""
        layout = self._layout
        return layout if isinstance(layout, KeptInS3) and layout.is_named else None

    @property
    def in_memory(self) -> KeptInMemory | None:
        """Its layout in memory, if it is kept there."""
        return self._layout if isinstance(self._layout, KeptInMemory) else None


class LifecycleFile(Part):
    """Entities: their states, transitions and actors, leases and clocks."""

    entities: dict[LowerName, Entity] = Field(description="Entities by name.")
