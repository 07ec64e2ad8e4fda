"""Persistence of entities: stores, indexes, outbox and leases."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from codegen.language.base import LowerName, NumberSource, Part, UpperName
from codegen.language.s3_persistence import KeptInS3

KeyPattern = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*(:([a-z][a-z0-9_]*|\{[a-z][a-z0-9_]*\}))*$"),
    Field(description="Name of a key in Redis; each `{name}` is a field of the record."),
]


class Parts(Part):
    """Partitions of an index by a set of capabilities, so that a claim reads only those that it can run."""

    by: LowerName = Field(description="Record field, a list of texts: the capabilities that an entity needs.")
    key: KeyPattern = Field(
        description="Key of a partition; `{signature}` stands for the set of texts, each other `{name}` is "
        "a field of the record."
    )
    known: KeyPattern = Field(description="Key of the hash of all sets that occur, by signature.")


class Index(Part):
    """A sorted set of the keys of entities, updated in one step with every change of them."""

    key: KeyPattern = Field(
        description="Key of the set; a `{name}`, an enum or the owner of the lease, makes a set for each "
        "value."
    )
    in_: Annotated[tuple[UpperName, ...], Field(min_length=1)] = Field(
        alias="in", description="States whose entities are in it."
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
    parts: Parts | None = Field(
        default=None, description="Partitions by capabilities; without them the index is one set."
    )


class Remembered(Part):
    """A unique field whose values are remembered for some time."""

    key: KeyPattern = Field(description="Key with the entity of a value; `{name}` is the field.")
    seconds: UpperName = Field(
        description="Variable with the seconds for which a creation with the same value finds the first "
        "entity."
    )


class Outbox(Part):
    """A stream of all transitions, written in one step with each, and its history tables in PostgreSQL."""

    stream: KeyPattern = Field(description="Key of the stream in Redis.")
    url: UpperName = Field(description="Variable of type url with the address of the PostgreSQL server.")
    table: LowerName = Field(description="Table of all transitions: the audit trail.")
    ended: LowerName = Field(description="Table with the last records of entities in a terminal state.")
    by: LowerName = Field(description="Component whose nodes write the stream to the tables.")
    expires: UpperName | None = Field(
        default=None,
        description="Variable with the seconds for which the tables keep entities that have ended; with 0, "
        "or without it, for ever.",
    )


class KeptInRedis(Part):
    """Entities as hashes in Redis, each change one Lua script."""

    store: Literal["redis"] = Field(description="The engine.")
    url: UpperName = Field(description="Variable of type url with the address of the server.")
    prefix: UpperName | None = Field(
        default=None,
        description="Variable with the prefix of every key; with a hash tag, as `{name}:`, all keys are in "
        "one slot of a cluster.",
    )
    hash: KeyPattern = Field(description="Key of the hash of an entity; it has the key of the entity in it.")
    sequence: LowerName = Field(description="Record field, a number, that counts the changes.")
    trace: LowerName | None = Field(
        default=None, description="Record field with the id of its trace, for log lines and history."
    )
    expires: UpperName | None = Field(
        default=None,
        description="Variable with the seconds for which entities in a terminal state are kept; without "
        "it, for ever.",
    )
    replicas: UpperName | None = Field(
        default=None,
        description="Variable with the number of replicas that must have a new entity before its creation "
        "is acknowledged; 0, or without it, none.",
    )
    unique: dict[LowerName, Remembered] = Field(
        default={}, description="Record fields of which no two entities share a value for some time."
    )
    indexes: dict[LowerName, Index] = Field(
        default={}, description="Indexes by name, for claims, clocks, lists and gauges."
    )
    wake_up: KeyPattern | None = Field(
        default=None,
        description="Channel for wake-ups: a hint that there may be something to claim. Without it workers "
        "poll.",
    )
    metrics: KeyPattern | None = Field(
        default=None, description="Key of the hash with the counters of `metrics.yaml`."
    )
    outbox: Outbox | None = Field(
        default=None, description="Outbox for the history in PostgreSQL; without it there is no history."
    )

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that only this store needs."""
        own = (self.url, self.prefix, self.replicas, self.outbox.url if self.outbox else None)
        return tuple(name for name in own if name)

    @property
    def servers(self) -> dict[str, str]:
        """The servers that it needs, and the variable with the address of each."""
        return {"redis": self.url} | ({"postgres": self.outbox.url} if self.outbox else {})

    @property
    def words(self) -> dict[str, Any]:
        """What it says about the meaning of entities, for any store."""
        remembered = {name: row.seconds for name, row in self.unique.items()}
        return {"unique_for": remembered, "indexes": self.indexes, "expires": self.expires}


class StoredWords(Part):
    """Uniqueness, indexes and retention of entities, beside the physical names of a store."""

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
        default={}, description="Indexes by name, for the order of claims and for limits."
    )
    expires: UpperName | None = Field(
        default=None,
        description="Variable with the seconds for which entities in a terminal state are kept; without "
        "it, for ever.",
    )

    @property
    def words(self) -> dict[str, Any]:
        """What it says about the meaning of entities, for any store."""
        return {name: getattr(self, name) for name in StoredWords.model_fields}


class Kept(StoredWords):
    """Entities as rows of a table in PostgreSQL."""

    store: Literal["postgres"] = Field(description="The engine.")
    url: UpperName = Field(
        default="DATABASE_URL", description="Variable of type url with the address of the server."
    )
    table: LowerName = Field(
        default="",
        description="Table of the entities, a column for each field of the record; `<entity>s` by default.",
    )
    history: LowerName = Field(
        default="",
        description="Append-only table of all transitions: the audit trail; `<entity>_history` by default.",
    )

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that only this store needs."""
        return (self.url,)

    @property
    def servers(self) -> dict[str, str]:
        """The server that it needs, and the variable with its address."""
        return {"postgres": self.url}


class KeptInSqlite(StoredWords):
    """Entities as rows of a SQLite file, which one process owns."""

    store: Literal["sqlite"] = Field(description="The engine.")
    path: UpperName = Field(default="DATABASE_PATH", description="Variable of type data_path with the file.")
    table: LowerName = Field(default="", description="Table of the entities; `<entity>s` by default.")
    history: LowerName | None = Field(
        default=None,
        description="Table of all transitions: the audit trail. By default `<entity>_history` where "
        "`table` is not named either, and else none.",
    )

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that only this store needs."""
        return (self.path,)

    @property
    def servers(self) -> dict[str, str]:
        """The servers that it needs: none."""
        return {}


class KeptInRedisByDefault(KeptInRedis):
    """Entities in Redis under names that the engine chooses, where a deployment says so."""

    url: UpperName = "REDIS_URL"
    prefix: UpperName | None = "REDIS_KEY_PREFIX"
    hash: str = ""
    sequence: str = ""
    stored: StoredWords = StoredWords()

    @property
    def words(self) -> dict[str, Any]:
        """What it says about the meaning of entities, for any store."""
        return self.stored.words


_STORES = ("postgres", "redis", "sqlite", "s3")
_TABLES = {"table": "{entity}s", "history": "{entity}_history"}
DEFAULTS: dict[str, dict[str, str]] = {"postgres": _TABLES, "sqlite": _TABLES}
"""Names in each store where a spec leaves it to us to choose them, which it does by naming no table."""
NAMED = ("postgres", "redis", "sqlite")
"""Engines that keep entities of any spec under default names, where a deployment says so."""


def fill_names(entity: str, keeping: Keeping) -> Keeping:
    """Return what a spec says about the store of an entity with the names that it leaves out."""
    if "table" in keeping.model_fields_set or keeping.store not in DEFAULTS:
        return keeping
    names = _name_defaults(entity, keeping.store)
    unsaid = {word: name for word, name in names.items() if word not in keeping.model_fields_set}
    return keeping.model_copy(update=unsaid)


def keep_in(
    engine: str, entity: str, keeping: Keeping | None, variables: Collection[str] = ()
) -> Keeping | None:
    """Return how an engine keeps an entity of which a spec says how another does: with the same words.

    An engine without names of its own, such as memory, keeps it as it is. Keys in Redis have a prefix where
    there is a variable for it.
    """
    if keeping is not None and keeping.store == engine:
        return keeping
    words = keeping.words if keeping is not None else {}
    match engine:
        case "postgres":
            return Kept(store="postgres", **_name_defaults(entity, engine), **words)
        case "sqlite":
            return KeptInSqlite(store="sqlite", **_name_defaults(entity, engine), **words)
        case "redis":
            found = KeptInRedisByDefault(store="redis", stored=StoredWords(**words))
            return found if found.prefix in variables else found.model_copy(update={"prefix": None})
        case _:
            return None


def _name_defaults(entity: str, store: str) -> dict[str, Any]:
    return {word: name.format(entity=entity) for word, name in DEFAULTS[store].items()}


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
        description="Priorities: values of the enum in the key of `index`, in the order in which they are "
        "claimed. Any other value is never claimed.",
    )
    index: LowerName | None = Field(
        default=None,
        description="Index of the entities that can be claimed; without it all in the state before the "
        "claim can be.",
    )
    paused: KeyPattern | None = Field(
        default=None,
        description="Key of the set of priorities that are paused; without it none can be paused.",
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
