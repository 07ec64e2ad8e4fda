"""`storage.yaml`: names and layouts of entities in each engine. All of it has defaults."""

from __future__ import annotations

from pydantic import Field

from codegen.language.base import Part
from codegen.language.storage.redis import RedisStorage
from codegen.language.storage.s3 import S3Storage
from codegen.language.storage.tables import PostgresStorage, SqliteStorage


class StorageFile(Part):
    """Names and layouts of entities by engine, each with a default. A deployment names its engine."""

    postgres: PostgresStorage | None = Field(
        default=None, description="Names in PostgreSQL; without it all are defaults."
    )
    sqlite: SqliteStorage | None = Field(
        default=None, description="Names in a SQLite file; without it all are defaults."
    )
    redis: RedisStorage | None = Field(
        default=None, description="Names in Redis; without it the engine chooses them."
    )
    s3: S3Storage | None = Field(
        default=None, description="Layout in a bucket; without it each entity is one object."
    )
