"""Names of entities in Redis: keys, channels, and the outbox for the history."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from codegen.language.base import LowerName, Part, UpperName

KeyPattern = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*(:([a-z][a-z0-9_]*|\{[a-z][a-z0-9_]*\}))*$"),
    Field(description="Name of a key in Redis; each `{name}` is a field of the record."),
]


class IndexKeys(Part):
    """The keys of an index."""

    key: KeyPattern | None = Field(
        default=None,
        description="Key of the sorted set, or of the plain set of an index without a score; with `{name}` "
        "for the field of `by`. `<entity>:index:<index>` by default, and `:{name}` behind it.",
    )
    parts: KeyPattern | None = Field(
        default=None,
        description="Key of a partition by capabilities; `{signature}` stands for the set of them, and "
        "`{name}` for the field of `by`. `<entity>:parts:<index>:{name}:{signature}` by default.",
    )
    known: KeyPattern | None = Field(
        default=None,
        description="Key of the hash of all sets of capabilities that occur, by signature; "
        "`<entity>:needs:<index>` by default.",
    )


class Outbox(Part):
    """A stream of all transitions, written in one step with each, and its history tables in PostgreSQL."""

    stream: KeyPattern | None = Field(
        default=None, description="Key of the stream in Redis; `<entity>:outbox` by default."
    )
    url: UpperName = Field(
        default="DATABASE_URL", description="Variable of type url with the address of the PostgreSQL server."
    )
    table: LowerName | None = Field(
        default=None, description="Table of all transitions: the audit trail; `<entity>_history` by default."
    )
    ended: LowerName | None = Field(
        default=None,
        description="Table with the last records of entities in a terminal state; `ended_<entity>s` by "
        "default.",
    )
    by: LowerName = Field(description="Component whose nodes write the stream to the tables.")
    expires: UpperName | None = Field(
        default=None,
        description="Variable with the seconds for which the tables keep entities that have ended; with 0, "
        "or without it, for ever.",
    )


class RedisKeys(Part):
    """The keys of an entity in Redis; what is not named has a default."""

    hash: KeyPattern | None = Field(
        default=None,
        description="Key of the hash of an entity; it has the key of the entity in it. "
        "`<entity>:record:{key}` by default.",
    )
    sequence: LowerName | None = Field(
        default=None,
        description="Record field, a number, that counts the changes; without one a field of the hash does "
        "that is not in the record.",
    )
    trace: LowerName | None = Field(
        default=None, description="Record field with the id of its trace, for log lines and history."
    )
    replicas: UpperName | None = Field(
        default=None,
        description="Variable with the number of replicas that must have a new entity before its creation "
        "is acknowledged; 0, or without it, none.",
    )
    unique: dict[LowerName, KeyPattern] = Field(
        default={},
        description="Fields of `unique` or `unique_for`, and the key with the entity of a value; `{name}` is "
        "the field. `<entity>:unique:<field>:{field}` by default.",
    )
    indexes: dict[LowerName, IndexKeys] = Field(
        default={},
        description="Indexes of the entity, and their keys; those that are not here have defaults.",
    )
    paused: KeyPattern | None = Field(
        default=None,
        description="Key of the set of priorities that are paused; `<entity>:paused` by default.",
    )
    wake_up: KeyPattern | None = Field(
        default=None,
        description="Channel for wake-ups: a hint that there may be something to claim; `<entity>:wake` by "
        "default.",
    )
    outbox: Outbox | None = Field(
        default=None, description="Outbox for the history in PostgreSQL; without it Redis keeps the history."
    )


class RedisStorage(Part):
    """Entities as hashes in Redis, each change one Lua script."""

    url: UpperName = Field(
        default="REDIS_URL", description="Variable of type url with the address of the server."
    )
    prefix: UpperName | None = Field(
        default=None,
        description="Variable with the prefix of every key; with a hash tag, as `{name}:`, all keys are in "
        "one slot of a cluster. REDIS_KEY_PREFIX by default, where there is such a variable.",
    )
    metrics: KeyPattern | None = Field(
        default=None,
        description="Key of the hash with the counters of `metrics.yaml`; without it nothing is counted.",
    )
    entities: dict[LowerName, RedisKeys] = Field(
        default={}, description="Entities whose keys have names of their own; others have defaults."
    )
