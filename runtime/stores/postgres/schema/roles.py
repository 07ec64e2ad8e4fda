"""The two roles of a database: the owner of the tables, who migrates them, and that of the service."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import asyncpg

from runtime.stores.postgres.database import Database, PostgresUnavailable
from runtime.stores.postgres.schema.migrations import MigrationError, migrate

OWNER = "OWNER_"
"""Prefix of the variable with the owner's URL, before the name of the database's variable."""
_KNOWN = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)"
_MAKE = "SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)"


async def prepare(owner_url: str, service_url: str, series: str) -> list[str]:
    """Create the role of the service if it is missing, migrate as the owner, and grant the privileges.

    Both URLs name the same database. Returns the names of the applied migrations.
    """
    service = urlsplit(service_url)
    role, password = unquote(service.username or ""), unquote(service.password or "")
    if not role:
        raise MigrationError("the URL of the service names no role")
    database = Database(owner_url)
    try:
        if role == unquote(urlsplit(owner_url).username or ""):
            return await migrate(database, series)
        await _create_role(database, role, password)
        return await migrate(database, series, role)
    finally:
        await database.close()


async def _create_role(database: Database, role: str, password: str) -> None:
    ((is_known,),) = await database.fetch(_KNOWN, role)
    if is_known:
        return
    ((text,),) = await database.fetch(_MAKE, role, password)
    try:
        await database.fetch(text)
    except asyncpg.DuplicateObjectError:
        return  # A concurrent process has just created it.
    except asyncpg.InsufficientPrivilegeError:
        raise MigrationError(
            f"the role {role} does not exist, and the owner of the tables may not create it"
        ) from None
    except asyncpg.UniqueViolationError as error:
        raise PostgresUnavailable(type(error).__name__) from None
