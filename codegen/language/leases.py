"""Indexes, leases and holders of entities."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from codegen.language.base import LowerName, NumberSource, Part, UpperName


class Index(Part):
    """A set of entities in some states, in the order of a time. How it is kept is up to the engine."""

    in_: Annotated[tuple[UpperName, ...], Field(min_length=1)] = Field(
        alias="in", description="States whose entities are in it."
    )
    by: LowerName | None = Field(
        default=None,
        description="Record field, an enum or the owner of the lease: there is a set for each of its values. "
        "Without it there is one.",
    )
    score: LowerName | None = Field(
        default=None, description="Record field, a time, that orders it; without one it is a plain set."
    )
    only_if: LowerName | None = Field(
        default=None, description="Optional record field: only entities in which it is set are in the index."
    )
    only_unless: LowerName | None = Field(
        default=None,
        description="Optional record field: only entities in which it is unset are in the index.",
    )
    needs: LowerName | None = Field(
        default=None,
        description="Record field, a list of texts, with the capabilities that an entity needs: the index is "
        "partitioned by them, so that a claim reads only what it can run. Without it there are none.",
    )


class Holder(Part):
    """The entity that holds leases: a worker with a capacity and capabilities."""

    entity: LowerName = Field(description="The entity; its key is the owner of the leases.")
    in_: Annotated[tuple[UpperName, ...], Field(min_length=1)] = Field(
        alias="in", description="States in which it may claim."
    )
    capacity: LowerName = Field(
        description="Field of its record with the most leases that it may hold at a time."
    )
    offers: LowerName = Field(description="Field of its record, a list of texts, with its capabilities.")
    needs: LowerName = Field(
        description="Field of the leased entity, a list of texts, with the capabilities that a holder needs."
    )
    booked: LowerName = Field(
        default="",
        description="Index of the leased entity, a plain set by owner, with its leases; Redis needs one.",
    )


class Lease(Part):
    """Time-limited ownership in one state. A claim takes it; name and fence prove it until it ends."""

    state: UpperName = Field(description="The leased state; the edge into it is the claim.")
    owner: LowerName = Field(description="Record field with the name of the owner.")
    expires: LowerName = Field(
        default="", description="Record field, a time, at which the lease ends; either this or `renewed`."
    )
    renewed: LowerName | None = Field(
        default=None,
        description="Record field, a time, of the last renewal; the lease ends `seconds` after it, by an "
        "edge that is due then.",
    )
    fence: LowerName = Field(
        description="Record field, a number, that is incremented by every claim, so that an owner whose "
        "lease has ended is refused."
    )
    seconds: NumberSource = Field(
        description="Length of the lease in seconds: `{env: NAME}`, or `{field: name}` of the record."
    )
    oldest_by: LowerName = Field(
        description="Record field, a time, by which the oldest entity is claimed first; where an edge "
        "waits until it, none is claimed before it."
    )
    claim_order: tuple[UpperName, ...] = Field(
        default=(),
        description="Priorities: values of the enum that `index` goes `by`, in the order in which they are "
        "claimed. Any other value is never claimed.",
    )
    index: LowerName | None = Field(
        default=None,
        description="Index of the entities that can be claimed; without it all in the state before the "
        "claim can be.",
    )
    holder: Holder | None = Field(
        default=None, description="The entity that is the owner; without it any name can be one."
    )
    keeps_owner: bool = Field(
        default=False,
        description="Whether the record keeps the last owner after the lease, unless the entity can be "
        "claimed again.",
    )
    token: LowerName | None = Field(
        default=None,
        description="Optional record field that has a new UUID while the entity is leased, a different one "
        "for each claim.",
    )
    only: LowerName | None = Field(
        default=None,
        description="Record field, a text, with the capability that a claim needs; without it every claim "
        "fits.",
    )
