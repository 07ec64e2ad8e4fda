"""`lifecycle.yaml`: entities, their states and who moves them from one to the next."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from codegen.language.base import Doc, LowerName, MethodRef, Part, TypeName, UpperName

KeyPattern = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*(:([a-z][a-z0-9_]*|\{[a-z][a-z0-9_]*\}))*$"),
    Field(
        description="Name of a key in Redis; each {name} is a field of the record.",
        examples=["tasks:{task_id}", "queue:{effective_priority}"],
    ),
]

Actors = Annotated[tuple[LowerName, ...], Field(description="Principals that may do it.")]


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
    stamps: tuple[LowerName, ...] = ()
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
    """How long an entity waits: `base` seconds after the first failure, then twice as long each time."""

    until: LowerName = Field(description="Record time that says when the wait is over.")
    count: LowerName = Field(description="Record field that counts the failures.")
    base: UpperName = Field(description="The variable with the seconds after the first failure.")
    max: UpperName = Field(description="The variable with the most seconds.")


class GiveUp(Part):
    """The edge that is taken when an entity has failed too often, or for good.

    It leaves the state that the edge leads to, and both are taken in one step; or it leaves the same state as
    the edge, and is taken in its place.
    """

    with_: LowerName = Field(alias="with", description="The transition that ends it.")
    count: LowerName = Field(description="Record field that counts the failures.")
    limit: UpperName | LowerName = Field(
        description="The variable, or the record field, with the most failures that are not the last."
    )


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


class Growth(Part):
    """A number that grows each time, rounded up."""

    times: Annotated[float, Field(gt=1.0)]
    most: UpperName = Field(description="The variable with the most it may become.")


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


class Lease(Part):
    """Time-limited ownership. Who enters the state takes the lease; only its holder writes until it ends."""

    state: UpperName
    owner: LowerName = Field(description="Record field with the holder's name.")
    expires: LowerName = Field(description="Record time at which it ends.")
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
        default=False, description="Whether ended entities still name their last holder."
    )


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


class Parts(Part):
    """An index that is also kept apart for each set of texts that occurs, so that one never hides another."""

    by: LowerName = Field(description="Record field, a list of texts.")
    key: KeyPattern = Field(description="Each {name} is a field; {signature} stands for the set of texts.")
    known: KeyPattern = Field(description="The hash of all sets that occur, by signature.")


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
    unique: dict[LowerName, Remembered] = {}
    indexes: dict[LowerName, Index] = {}
    wakes: KeyPattern | None = Field(
        default=None, description="The channel that is told when there is something to be leased again."
    )
    metrics: KeyPattern | None = Field(default=None, description="The hash in which scripts count.")
    outbox: Outbox | None = None


class Kept(Part):
    """Where entities are kept, and what of it outlives every process."""

    store: Literal["postgres"]
    url: UpperName = Field(description="The variable that says where the server is.")
    table: LowerName
    history: LowerName = Field(description="The append-only table of all transitions.")
    unique: tuple[LowerName, ...] = Field(default=(), description="Record fields that no two entities share.")


def _which_store(value: Any) -> str:
    said = value.get("store") if isinstance(value, dict) else getattr(value, "store", None)
    return said if said in ("postgres", "redis") else "postgres"


Keeping = Annotated[
    Annotated[Kept, Tag("postgres")] | Annotated[KeptInRedis, Tag("redis")], Discriminator(_which_store)
]


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
    terminal_race: Literal["first_wins"] = Field(
        default="first_wins", description="Which of two racing terminal writes stands."
    )
    create: Creation
    delete: Deletion | None = None
    transitions: dict[LowerName, Transition]
    shifts: dict[LowerName, Shift] = {}


class LifecycleFile(Part):
    """Every entity of the system."""

    entities: dict[LowerName, Entity]
