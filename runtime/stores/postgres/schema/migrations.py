"""Migrations of a database: numbered SQL files, each applied once, under an advisory lock."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import asyncpg
from msgspec import Struct

from runtime.stores.postgres.database import Database, PostgresUnavailable
from runtime.stores.postgres.schema.series import find_folder
from runtime.stores.store import StoreUnusable

TABLE = "charter_migrations"
_LOCK = 0x43_48_41_52_54_45_52
"""Key of the advisory lock; the letters of `CHARTER`."""
_PATIENCE_S = 300.0

_CREATE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    system text NOT NULL,
    number integer NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (system, number)
)
"""
_APPLIED = f"SELECT number, digest FROM {TABLE} WHERE system = $1"
_REMEMBER = f"INSERT INTO {TABLE} (system, number, name, digest) VALUES ($1, $2, $3, $4)"
_EXISTS = "SELECT to_regclass($1) IS NOT NULL"


class MigrationError(StoreUnusable):
    """The database cannot be migrated; the message says why."""


class Migration(Struct, frozen=True):
    """One migration."""

    number: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def list_migrations(series: str) -> list[Migration]:
    """List the migrations of a series. One that was never accepted has its whole schema as the only one."""
    folder = find_folder(series)
    accepted = folder.joinpath("migrations")
    if not accepted.is_dir():
        return [Migration(0, "unaccepted", folder.joinpath("schema.sql").read_text(encoding="utf-8"))]
    return sorted(
        (
            Migration(int(each.name[:4]), each.name, each.read_text(encoding="utf-8"))
            for each in accepted.iterdir()
            if each.name.endswith(".sql")
        ),
        key=lambda each: each.number,
    )


async def find_missing(database: Database, series: str) -> list[Migration]:
    """Find the migrations that are not applied yet."""
    (exists,), *_ = await database.fetch(_EXISTS, TABLE)
    if not exists:
        return list_migrations(series)
    rows = await database.fetch(_APPLIED, series)
    return [*_check_missing(series, list_migrations(series), {row[0]: row[1] for row in rows})]


async def migrate(database: Database, series: str, service: str | None = None) -> list[str]:
    """Apply the missing migrations in one transaction; return their names. It may run concurrently.

    A database that is ahead of this release is left as it is: an older release works on a newer schema.
    `service` is another role that gets the privileges of the service, and no others. Where the role of the
    database may not change the schema, its owner has to: that is retried like an outage of the database.
    """
    if service is None and not await find_missing(database, series):
        return []
    connection = await database.dedicated()
    try:
        await connection.execute("SET enable_seqscan = on")
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK, timeout=_PATIENCE_S)
            await connection.execute(_CREATE)
            rows = await connection.fetch(_APPLIED, series)
            applied = {row[0]: row[1] for row in rows}
            remaining = [*_check_missing(series, list_migrations(series), applied)]
            for each in remaining:
                await _apply(connection, series, each)
            if service is not None:
                await _grant(connection, series, service)
            return [each.name for each in remaining]
    except asyncpg.InsufficientPrivilegeError:
        raise PostgresUnavailable(
            "the schema lacks migrations, and this role may not apply them: run 'python -m "
            f"runtime.stores.postgres migrate {series}' as the owner of the tables"
        ) from None
    except (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError) as error:
        raise PostgresUnavailable(type(error).__name__, unknown=True) from None
    finally:
        await connection.close()


async def _grant(connection: asyncpg.Connection[Any], series: str, service: str) -> None:
    """Grant a role the privileges of the service, on the objects of this release."""
    text = find_folder(series).joinpath("grants.sql").read_text(encoding="utf-8")
    quoted = await connection.fetchval("SELECT quote_ident($1)", service)
    schema = await connection.fetchval("SELECT quote_ident(current_schema())")
    await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {quoted}")
    await connection.execute(text.replace("{service}", quoted))


async def _apply(connection: asyncpg.Connection[Any], series: str, migration: Migration) -> None:
    try:
        await connection.execute(migration.text, timeout=_PATIENCE_S)
    except (asyncpg.PostgresSyntaxError, asyncpg.DuplicateTableError, asyncpg.UndefinedTableError) as error:
        raise MigrationError(f"{series}/{migration.name} does not fit this database: {error}") from error
    await connection.execute(_REMEMBER, series, migration.number, migration.name, migration.digest)


def _check_missing(series: str, known: list[Migration], applied: dict[int, str]) -> Iterator[Migration]:
    for each in known:
        if each.number not in applied:
            if each.number < max(applied, default=0):
                raise MigrationError(f"{series}/{each.name} is older than the last applied migration")
            yield each
        elif applied[each.number] != each.digest:
            raise MigrationError(
                f"{series}/{each.name} is not what was applied under its number; migrations are never edited"
            )
