"""`lifecycle.yaml`: entities, their states and who moves them from one to the next."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from codegen.language.base import Doc, LowerName, MethodRef, Part, TypeName, UpperName

Actors = Annotated[tuple[LowerName, ...], Field(description="Principals that may do it.")]


class Creation(Part):
    """How an entity comes to be, in its initial state."""

    by: Actors
    via: MethodRef | None = None
    trigger: Doc
    stamps: tuple[LowerName, ...] = ()


class Deletion(Part):
    """How an entity is taken back."""

    by: Actors
    via: MethodRef
    trigger: Doc
    from_: Annotated[tuple[UpperName, ...], Field(alias="from", min_length=1)]


class Take(Part):
    """A record field that keeps what the driving request says."""

    from_: LowerName = Field(alias="from", description="The request field.")
    default: str = Field(default="", description="Stands in for an empty one.")
    keep_first: bool = Field(default=False, description="What the record has already is not replaced.")


class Backoff(Part):
    """How long an entity waits: `base` seconds after the first failure, then twice as long each time."""

    until: LowerName = Field(description="Record time that says when the wait is over.")
    count: LowerName = Field(description="Record field that counts the failures.")
    base: UpperName = Field(description="The variable with the seconds after the first failure.")
    max: UpperName = Field(description="The variable with the most seconds.")


class GiveUp(Part):
    """A further edge that is taken in the same step when an entity has failed too often, or for good."""

    with_: LowerName = Field(alias="with", description="The transition that ends it.")
    count: LowerName = Field(description="Record field that counts the failures.")
    limit: UpperName = Field(description="The variable with the most failures that are not the last.")


class Due(Part):
    """An edge that the engine drives by the clock of the store, all due entities in bounded batches."""

    at: LowerName = Field(description="Record time at which it is due.")
    after: UpperName | None = Field(default=None, description="The variable with the seconds to wait on top.")
    by: LowerName = Field(description="The component whose node drives it; it acts as this principal.")
    every: UpperName = Field(description="The variable with the seconds between two looks.")


class Transition(Part):
    """One edge of the lifecycle."""

    from_: UpperName = Field(alias="from")
    to: UpperName
    by: Actors
    trigger: Doc
    via: MethodRef | None = Field(default=None, description="Where it differs from the entity's driven_by.")
    when: tuple[LowerName, ...] = Field(default=(), description="Flags of the record that must be set.")
    after: tuple[MethodRef, ...] = Field(default=(), description="Calls the actor completes first, in order.")
    stamps: tuple[LowerName, ...] = Field(default=(), description="Record times set when it applies.")
    sets: dict[LowerName, bool | int | str] = Field(default={}, description="Record fields set with it.")
    takes: dict[LowerName, Take] = Field(default={}, description="Record fields taken from the request.")
    counts: LowerName | None = Field(default=None, description="Record field that it adds 1 to.")
    waits: Backoff | None = None
    gives_up: GiveUp | None = None
    due: Due | None = None


class Lease(Part):
    """Time-limited ownership. Who enters the state takes the lease; only its holder writes until it ends."""

    state: UpperName
    owner: LowerName = Field(description="Record field with the holder's name.")
    expires: LowerName = Field(description="Record time at which it ends.")
    fence: LowerName = Field(description="Record field that counts how often it was taken.")
    seconds: UpperName = Field(description="The variable with its length.")
    oldest_by: LowerName = Field(description="Record time by which the next entity is chosen.")


class Kept(Part):
    """Where entities are kept, and what of it outlives every process."""

    store: Literal["postgres"]
    url: UpperName = Field(description="The variable that says where the server is.")
    table: LowerName
    history: LowerName = Field(description="The append-only table of all transitions.")
    unique: tuple[LowerName, ...] = Field(default=(), description="Record fields that no two entities share.")


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
    kept_in: Kept | None = Field(default=None, description="Where it is kept; in memory unless said.")
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
    terminal_race: Literal["first_wins"] = Field(
        default="first_wins", description="Which of two racing terminal writes stands."
    )
    create: Creation
    delete: Deletion | None = None
    transitions: dict[LowerName, Transition]


class LifecycleFile(Part):
    """Every entity of the system."""

    entities: dict[LowerName, Entity]
