"""The two roles of a database: one owns the tables and migrates them, the other is the service's."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import asyncpg

from runtime.stores.postgres.database import Database, PostgresUnavailable
from runtime.stores.postgres.schema.migrations import MigrationError, migrate

OWNER = "OWNER_"
"""A variable whose name begins so, and goes on as that of a database, says how the owner reaches it."""
_KNOWN = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)"
_MAKE = "SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)"


async def prepare(owner_url: str, service_url: str, series: str) -> list[str]:
    """Migrates as the owner, makes the role of the service if it is not there, and lets it do its work.

    Both URLs name the same database. The names of the migrations that were applied.
    """
    service = urlsplit(service_url)
    role, password = unquote(service.username or ""), unquote(service.password or "")
    if not role:
        raise MigrationError("the URL of the service names no role")
    database = Database(owner_url)
    try:
        if role == unquote(urlsplit(owner_url).username or ""):
            return await migrate(database, series)
        await _make_role(database, role, password)
        return await migrate(database, series, role)
    finally:
        await database.close()


async def _make_role(database: Database, role: str, password: str) -> None:
    ((is_known,),) = await database.fetch(_KNOWN, role)
    if is_known:
        return
    ((text,),) = await database.fetch(_MAKE, role, password)
    try:
        await database.fetch(text)
    except asyncpg.DuplicateObjectError:
        return  # Another one has just made it.
    except asyncpg.InsufficientPrivilegeError:
        raise MigrationError(
            f"there is no role {role}, and the owner of the tables may not make one"
        ) from None
    except asyncpg.UniqueViolationError as error:
        raise PostgresUnavailable(type(error).__name__) from None
