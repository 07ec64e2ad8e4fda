"""Layouts: where and under which names an engine keeps an entity, with all defaults filled in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codegen.language.leases import Index
from codegen.language.storage import StorageFile
from codegen.language.storage.redis import IndexKeys, RedisKeys, RedisStorage
from codegen.language.storage.s3 import KeyIndex, Large, Polling, Repairing, Retiring, S3Storage
from codegen.language.storage.s3 import Schema as ObjectSchema
from codegen.language.storage.s3 import Shard as ObjectShard
from codegen.language.storage.tables import PostgresStorage, SqliteStorage, Tables

if TYPE_CHECKING:
    from codegen.language.lifecycle import Entity

ENGINES = ("s3", "redis", "postgres", "sqlite")
"""The durable engines; where storage.yaml has several, those before give an entity its layout by default."""


@dataclass(frozen=True)
class PlacedParts:
    """The partitions of an index by capabilities, and the keys of them."""

    by: str
    key: str
    known: str


@dataclass(frozen=True)
class PlacedIndex:
    """An index of an entity with its key. The key alone says by which field it has several sets."""

    key: str
    in_: tuple[str, ...]
    score: str | None
    only_if: str | None
    only_unless: str | None
    parts: PlacedParts | None


@dataclass(frozen=True)
class Words:
    """What an entity means beside its states: uniqueness, indexes and retention, the same on every engine."""

    unique: tuple[str, ...] = ()
    unique_for: Mapping[str, str] = field(default_factory=dict)
    indexes: Mapping[str, PlacedIndex] = field(default_factory=dict)
    expires: str | None = None


@dataclass(frozen=True)
class EntityLayout:
    """How an engine keeps an entity; there is a subclass for each engine."""

    words: Words
    is_named: bool
    """Whether storage.yaml has something about the entity."""
    store = "memory"

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that only this store needs."""
        return ()

    @property
    def servers(self) -> dict[str, str]:
        """The servers that it needs, and the variable with the address of each."""
        return {}

    @property
    def unique(self) -> tuple[str, ...]:
        return self.words.unique

    @property
    def unique_for(self) -> Mapping[str, str]:
        return self.words.unique_for

    @property
    def expires(self) -> str | None:
        return self.words.expires


@dataclass(frozen=True)
class KeptInMemory(EntityLayout):
    """Entities in the memory of a process."""

    @property
    def indexes(self) -> Mapping[str, PlacedIndex]:
        return self.words.indexes


@dataclass(frozen=True)
class KeptInPostgres(EntityLayout):
    """Entities as rows of a table in PostgreSQL."""

    url: str
    table: str
    history: str
    store = "postgres"

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.url,)

    @property
    def servers(self) -> dict[str, str]:
        return {"postgres": self.url}

    @property
    def indexes(self) -> Mapping[str, PlacedIndex]:
        return self.words.indexes


@dataclass(frozen=True)
class KeptInSqlite(EntityLayout):
    """Entities as rows of a SQLite file."""

    path: str
    table: str
    history: str
    store = "sqlite"

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.path,)

    @property
    def indexes(self) -> Mapping[str, PlacedIndex]:
        return self.words.indexes


@dataclass(frozen=True)
class PlacedOutbox:
    """The outbox of an entity in Redis."""

    stream: str
    url: str
    table: str
    ended: str
    by: str
    expires: str | None


@dataclass(frozen=True)
class KeptInRedis(EntityLayout):
    """Entities as hashes in Redis. Without a hash all names are those of the engine."""

    url: str
    prefix: str | None
    hash: str = ""
    sequence: str | None = None
    trace: str | None = None
    replicas: str | None = None
    unique_keys: Mapping[str, str] = field(default_factory=dict)
    paused: str | None = None
    wake_up: str | None = None
    metrics: str | None = None
    outbox: PlacedOutbox | None = None
    store = "redis"

    @property
    def variables(self) -> tuple[str, ...]:
        own = (self.url, self.prefix, self.replicas, self.outbox.url if self.outbox else None)
        return tuple(name for name in own if name)

    @property
    def servers(self) -> dict[str, str]:
        return {"redis": self.url} | ({"postgres": self.outbox.url} if self.outbox else {})

    @property
    def indexes(self) -> Mapping[str, PlacedIndex]:
        return self.words.indexes


@dataclass(frozen=True)
class KeptInS3(EntityLayout):
    """Entities as objects of a bucket. Without an object each has the layout of the engine."""

    endpoint: str
    bucket: str
    region: str
    prefix: str | None
    object: str = ""
    revision: str = ""
    shard: ObjectShard | None = None
    schema_: ObjectSchema | None = None
    keyed_by: str | None = None
    unversioned: str | None = None
    skew: str | None = None
    indexes: Mapping[str, KeyIndex] = field(default_factory=dict)
    polls: Polling | None = None
    repairs: Repairing | None = None
    large: Large | None = None
    retires: Retiring | None = None
    store = "s3"

    @property
    def variables(self) -> tuple[str, ...]:
        own = (self.endpoint, self.bucket, self.region, self.prefix, self.unversioned, self.skew)
        return tuple(name for name in own if name)

    @property
    def servers(self) -> dict[str, str]:
        return {"s3": self.endpoint}


def find_home(storage: StorageFile, entity: str) -> str:
    """Find the engine whose names an entity has by default: one that storage.yaml has names of it for."""
    named = [each for each in ENGINES if entity in getattr(getattr(storage, each), "entities", ())]
    present = [each for each in ENGINES if getattr(storage, each) is not None]
    return [*named, *present, "memory"][0]


def lay_out(
    engine: str, name: str, entity: Entity, storage: StorageFile, variables: Collection[str]
) -> EntityLayout:
    """Lay out an entity in an engine. Keys in Redis have a prefix where there is a variable for it."""
    match engine:
        case "postgres":
            return _in_postgres(name, entity, storage.postgres or PostgresStorage())
        case "sqlite":
            return _in_sqlite(name, entity, storage.sqlite or SqliteStorage())
        case "redis":
            return _in_redis(name, entity, storage.redis or RedisStorage(), variables)
        case "s3":
            return _in_s3(name, entity, storage.s3 or S3Storage())
        case _:
            return KeptInMemory(_make_words(entity), False)


def _in_postgres(name: str, entity: Entity, section: PostgresStorage) -> KeptInPostgres:
    tables = section.entities.get(name)
    return KeptInPostgres(_make_words(entity), tables is not None, section.url, *_name_tables(name, tables))


def _in_sqlite(name: str, entity: Entity, section: SqliteStorage) -> KeptInSqlite:
    tables = section.entities.get(name)
    return KeptInSqlite(_make_words(entity), tables is not None, section.path, *_name_tables(name, tables))


def _name_tables(name: str, tables: Tables | None) -> tuple[str, str]:
    tables = tables or Tables()
    return tables.table or f"{name}s", tables.history or f"{name}_history"


def _in_redis(name: str, entity: Entity, section: RedisStorage, variables: Collection[str]) -> KeptInRedis:
    prefix = section.prefix or ("REDIS_KEY_PREFIX" if "REDIS_KEY_PREFIX" in variables else None)
    keys = section.entities.get(name)
    if keys is None:
        return KeptInRedis(_make_words(entity), False, section.url, prefix)
    unique = {each: f"{name}:unique:{each}:{{{each}}}" for each in (*entity.unique, *entity.unique_for)}
    return KeptInRedis(
        words=_make_words(entity, keys.indexes, f"{name}:"),
        is_named=True,
        url=section.url,
        prefix=prefix,
        hash=keys.hash or f"{name}:record:{{{entity.key}}}",
        sequence=keys.sequence,
        trace=keys.trace,
        replicas=keys.replicas,
        unique_keys=unique | keys.unique,
        paused=keys.paused,
        wake_up=keys.wake_up,
        metrics=section.metrics,
        outbox=_make_outbox(name, keys),
    )


def _make_outbox(name: str, keys: RedisKeys) -> PlacedOutbox | None:
    if (box := keys.outbox) is None:
        return None
    return PlacedOutbox(
        stream=box.stream or f"{name}:outbox",
        url=box.url,
        table=box.table or f"{name}_history",
        ended=box.ended or f"ended_{name}s",
        by=box.by,
        expires=box.expires,
    )


def _in_s3(name: str, entity: Entity, section: S3Storage) -> KeptInS3:
    layout = section.entities.get(name)
    if layout is None:
        place = (section.endpoint, section.bucket, section.region, section.prefix)
        return KeptInS3(_make_words(entity), False, *place)
    return KeptInS3(
        words=_make_words(entity),
        is_named=True,
        endpoint=section.endpoint,
        bucket=section.bucket,
        region=section.region,
        prefix=section.prefix,
        object=layout.object or f"{name}/{{{entity.key}}}.json",
        revision=layout.revision or entity.revision or "",
        shard=layout.shard,
        schema_=layout.schema_,
        keyed_by=layout.keyed_by,
        unversioned=layout.unversioned,
        skew=layout.skew,
        indexes=layout.indexes,
        polls=layout.polls,
        repairs=layout.repairs,
        large=layout.large,
        retires=layout.retires,
    )


def _make_words(entity: Entity, keys: Mapping[str, IndexKeys] | None = None, prefix: str = "") -> Words:
    """Make the words of an entity; its indexes have the keys that are given, and defaults."""
    named = keys or {}
    indexes = {
        title: _place_index(row, named.get(title) or IndexKeys(), prefix, title)
        for title, row in entity.indexes.items()
    }
    return Words(entity.unique, entity.unique_for, indexes, entity.expires)


def _place_index(row: Index, keys: IndexKeys, prefix: str, title: str) -> PlacedIndex:
    each = f":{{{row.by}}}" if row.by else ""
    parts = None
    if row.needs:
        parts = PlacedParts(
            by=row.needs,
            key=keys.parts or f"{prefix}parts:{title}{each}:{{signature}}",
            known=keys.known or f"{prefix}needs:{title}",
        )
    key = keys.key or f"{prefix}index:{title}{each}"
    return PlacedIndex(key, row.in_, row.score, row.only_if, row.only_unless, parts)
