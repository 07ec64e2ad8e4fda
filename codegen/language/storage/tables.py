"""Names of entities in databases: tables in PostgreSQL and in a SQLite file."""

from __future__ import annotations

from pydantic import Field

from codegen.language.base import LowerName, Part, UpperName


class Tables(Part):
    """The tables of an entity in a database."""

    table: LowerName | None = Field(
        default=None,
        description="Table of the entities, a column for each field of the record; `<entity>s` by default.",
    )
    history: LowerName | None = Field(
        default=None,
        description="Append-only table of all transitions: the audit trail; `<entity>_history` by default.",
    )


class PostgresStorage(Part):
    """Entities as rows of tables in PostgreSQL."""

    url: UpperName = Field(
        default="DATABASE_URL", description="Variable of type url with the address of the server."
    )
    entities: dict[LowerName, Tables] = Field(
        default={}, description="Entities, and the names that differ from the defaults."
    )


class SqliteStorage(Part):
    """Entities as rows of a SQLite file, which one process owns."""

    path: UpperName = Field(default="DATABASE_PATH", description="Variable of type data_path with the file.")
    entities: dict[LowerName, Tables] = Field(
        default={}, description="Entities, and the names that differ from the defaults."
    )
