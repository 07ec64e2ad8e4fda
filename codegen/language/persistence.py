"""Persistence of entities: stores, indexes, outbox and leases."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from codegen.language.base import LowerName, Part, UpperName
from codegen.language.s3_persistence import KeptInS3

KeyPattern = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*(:([a-z][a-z0-9_]*|\{[a-z][a-z0-9_]*\}))*$"),
    Field(
        description="Name of a key in Redis; each {name} is a field of the record.",
        examples=["tasks:{task_id}", "queue:{effective_priority}"],
    ),
]


class Kept(Part):
    """Where entities are kept, and what of it outlives every process."""

    store: Literal["postgres"]
    url: UpperName = Field(description="The variable that says where the server is.")
    table: LowerName
    history: LowerName = Field(description="The append-only table of all transitions.")
    unique: tuple[LowerName, ...] = Field(default=(), description="Record fields that no two entities share.")


class Parts(Part):
    """An index that is also kept apart for each set of texts that occurs, so that one never hides another."""

    by: LowerName = Field(description="Record field, a list of texts.")
    key: KeyPattern = Field(description="Each {name} is a field; {signature} stands for the set of texts.")
    known: KeyPattern = Field(description="The hash of all sets that occur, by signature.")


class Index(Part):
    """A set of the keys of entities, kept in step with them by every script."""

    key: KeyPattern
    in_: Annotated[tuple[UpperName, ...], Field(alias="in", min_length=1)]
    score: LowerName | None = Field(
        default=None, description="Record time that orders it; without one it is a plain set."
    )
    only_if: LowerName | None = Field(default=None, description="Optional record field that must be set.")
    only_unless: LowerName | None = Field(
        default=None, description="Optional record field that must be unset."
    )
    parts: Parts | None = None


class Remembered(Part):
    """A field of which no two entities share a value for some time."""

    key: KeyPattern
    seconds: UpperName = Field(description="The variable with the seconds for which it is remembered.")


class Outbox(Part):
    """A stream of all changes, and the tables of another store that they are written to."""

    stream: KeyPattern
    url: UpperName = Field(description="The variable that says where the PostgreSQL server is.")
    table: LowerName = Field(description="The table of all changes.")
    ended: LowerName = Field(description="The table of the records of entities that ended.")
    by: LowerName = Field(description="The component whose node writes them.")
    expires: UpperName | None = Field(
        default=None,
        description="The variable with the seconds for which the history of what has ended is kept; 0, and "
        "none, is for ever.",
    )


class KeptInRedis(Part):
    """Entities as hashes, each change one script, with the indexes that are found below."""

    store: Literal["redis"]
    url: UpperName = Field(description="The variable that says where the server is.")
    prefix: UpperName | None = Field(
        default=None, description="The variable with what every key begins with."
    )
    hash: KeyPattern
    sequence: LowerName = Field(description="Record field that counts the changes.")
    trace: LowerName | None = Field(
        default=None, description="Record field with the trace that it belongs to."
    )
    expires: UpperName | None = Field(
        default=None, description="The variable with the seconds for which ended entities are kept."
    )
    replicas: UpperName | None = Field(
        default=None,
        description="The variable with how many replicas must have a new entity before anybody is told of "
        "it; 0 is none.",
    )
    unique: dict[LowerName, Remembered] = {}
    indexes: dict[LowerName, Index] = {}
    wakes: KeyPattern | None = Field(
        default=None, description="The channel that is told when there is something to be leased again."
    )
    metrics: KeyPattern | None = Field(default=None, description="The hash in which scripts count.")
    outbox: Outbox | None = None


class KeptInSqlite(Part):
    """Entities in a file that one process owns, for a system that has no server to lean on."""

    store: Literal["sqlite"]
    path: UpperName = Field(description="The variable that says where the file is.")
    table: LowerName
    history: LowerName | None = Field(
        default=None, description="The table of all transitions, if one is kept."
    )
    unique: tuple[LowerName, ...] = Field(default=(), description="Record fields that no two entities share.")


_STORES = ("postgres", "redis", "sqlite", "s3")


def _find_store(value: Any) -> str:
    store = value.get("store") if isinstance(value, dict) else getattr(value, "store", None)
    return store if store in _STORES else "postgres"


Keeping = Annotated[
    Annotated[Kept, Tag("postgres")]
    | Annotated[KeptInRedis, Tag("redis")]
    | Annotated[KeptInSqlite, Tag("sqlite")]
    | Annotated[KeptInS3, Tag("s3")],
    Discriminator(_find_store),
]


class Holder(Part):
    """The entity that a lease is booked on."""

    entity: LowerName
    in_: Annotated[tuple[UpperName, ...], Field(alias="in", min_length=1)] = Field(
        description="The states in which it is given more."
    )
    capacity: LowerName = Field(description="Field of its record with the most leases it holds at a time.")
    offers: LowerName = Field(description="Field of its record, a list of texts, with what it is able to do.")
    needs: LowerName = Field(
        description="Field of the leased entity, a list of texts, all of which it must offer."
    )
    booked: LowerName = Field(description="The index, a plain set, with what it holds.")
    taken: KeyPattern | None = Field(
        default=None,
        description="The set of what was taken from it until it asks; each {name} is a field of its record.",
    )
    idle: KeyPattern | None = Field(
        default=None,
        description="The hash of those that wait for one; what is created is handed to one of them at once.",
    )


class Lease(Part):
    """Time-limited ownership. Who enters the state takes the lease; only its holder writes until it ends."""

    state: UpperName
    owner: LowerName = Field(description="Record field with the holder's name.")
    expires: LowerName = Field(default="", description="Record time at which it ends.")
    renewed: LowerName | None = Field(
        default=None,
        description="Record time that the holder moves on instead; the lease ends so many seconds after it.",
    )
    fence: LowerName = Field(description="Record field that counts how often it was taken.")
    seconds: UpperName | LowerName = Field(description="The variable, or the record field, with its length.")
    oldest_by: LowerName = Field(description="Record time by which the next entity is chosen.")
    first: tuple[UpperName, ...] = Field(
        default=(), description="Values of the enum in the key of the index, in the order they are served."
    )
    index: LowerName | None = Field(default=None, description="The index whose entities are free.")
    paused: KeyPattern | None = Field(
        default=None, description="The set of those values that are not served at present."
    )
    holder: Holder | None = None
    keeps_owner: bool = Field(
        default=False, description="Whether entities that are not free again still name their last holder."
    )
    token: LowerName | None = Field(
        default=None, description="Record field that has a fresh UUID at each taking, and nothing otherwise."
    )
    only: LowerName | None = Field(
        default=None, description="Record text by which a taker tells whether it is able to take an entity."
    )
