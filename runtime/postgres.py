"""`python -m runtime.postgres migrate <system>`: brings the databases of a system up to date.

The variable that says where a database is, such as DATABASE_URL, has the role of the service. With OWNER_
before its name, as in OWNER_DATABASE_URL, it has the role that owns the tables: that one migrates, and the
role of the service is made where it is missing and granted what the service does. Without it one does both.
"""

from __future__ import annotations

import asyncio
import os
import sys

from runtime.model.system import System
from runtime.node.systems import load_system
from runtime.stores.postgres.database import Database, PostgresUnavailable
from runtime.stores.postgres.schema.migrations import MigrationError, migrate
from runtime.stores.postgres.schema.roles import OWNER, prepare

USAGE = "usage: python -m runtime.postgres migrate <system>"


def main(arguments: list[str]) -> int:
    """0 when the databases are up to date, 1 when they cannot be brought there, 2 for wrong words."""
    if len(arguments) != 2 or arguments[0] != "migrate":
        print(USAGE, file=sys.stderr)
        return 2
    try:
        system = load_system(arguments[1])
    except ModuleNotFoundError:
        print(f"There is no system {arguments[1]}.\n{USAGE}", file=sys.stderr)
        return 2
    variables = databases(system)
    if unset := [name for name in variables if not os.environ.get(name)]:
        print(f"{', '.join(unset)}: is required and not set.", file=sys.stderr)
        return 2
    try:
        return asyncio.run(_migrate(system, variables))
    except (PostgresUnavailable, MigrationError) as error:
        print(f"{system.name} cannot be migrated: {error}.", file=sys.stderr)
        return 1


async def _migrate(system: System, variables: list[str]) -> int:
    for variable in variables:
        if owner := os.environ.get(f"{OWNER}{variable}"):
            applied = await prepare(owner, os.environ[variable], system.name)
        else:
            applied = await _migrate_alone(os.environ[variable], system.name)
        print(f"{variable}: {', '.join(applied) or 'nothing to do'}")
    return 0


async def _migrate_alone(url: str, system: str) -> list[str]:
    database = Database(url)
    try:
        return await migrate(database, system)
    finally:
        await database.close()


def databases(system: System) -> list[str]:
    """The variables that say where the databases of a system are."""
    found = {each.kept.url for each in system.lifecycles.values() if each.kept is not None}
    kept = [each.in_redis for each in system.lifecycles.values() if each.in_redis is not None]
    return sorted(found | {each.outbox.url for each in kept if each.outbox is not None})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
