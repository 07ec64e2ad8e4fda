"""`lifecycle.yaml`: entities, their states and who moves them from one to the next."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from codegen.language.base import Doc, LowerName, MethodRef, Part, TypeName, UpperName

Actors = Annotated[tuple[LowerName, ...], Field(description="Principals that may do it.")]


class Creation(Part):
    """How an entity comes to be, in its initial state."""

    by: Actors
    via: MethodRef
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


class Entity(Part):
    """Something with a life: a key, a record, states and transitions."""

    doc: Doc
    key: LowerName
    record: TypeName = Field(description="The message that holds its fields.")
    status: LowerName = Field(description="The enum field of the record that holds its state.")
    held_by: LowerName = Field(description="The component that applies its transitions.")
    listed_by: LowerName | None = Field(
        default=None, description="Record time that orders listings; ties are broken by the key."
    )
    retention: LowerName | None = Field(default=None, description="The policy that bounds terminal records.")
    driven_by: MethodRef = Field(description="The method through which actors move it.")
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
