"""`python -m runtime.stores.postgres migrate <system>`: brings the databases of a system up to date.

Where deployments keep entities in PostgreSQL which another engine keeps by default, these have a series of
migrations of their own: `migrate <system>/postgres`.

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
from runtime.stores.postgres.schema.series import list_databases

USAGE = "usage: python -m runtime.stores.postgres migrate <system>[/postgres]"


def main(arguments: list[str]) -> int:
    """0 when the databases are up to date, 1 when they cannot be brought there, 2 for wrong words."""
    if len(arguments) != 2 or arguments[0] != "migrate":
        print(USAGE, file=sys.stderr)
        return 2
    series = arguments[1]
    try:
        system = load_system(series.partition("/")[0])
    except ModuleNotFoundError:
        print(f"There is no system {series}.\n{USAGE}", file=sys.stderr)
        return 2
    variables = databases(system, series)
    if not variables and series != system.name:
        print(f"{system.name} has no {series} in PostgreSQL.\n{USAGE}", file=sys.stderr)
        return 2
    if unset := [name for name in variables if not os.environ.get(name)]:
        print(f"{', '.join(unset)}: is required and not set.", file=sys.stderr)
        return 2
    try:
        return asyncio.run(_migrate(series, variables))
    except (PostgresUnavailable, MigrationError) as error:
        print(f"{series} cannot be migrated: {error}.", file=sys.stderr)
        return 1


async def _migrate(series: str, variables: list[str]) -> int:
    for variable in variables:
        if owner := os.environ.get(f"{OWNER}{variable}"):
            applied = await prepare(owner, os.environ[variable], series)
        else:
            applied = await _migrate_alone(os.environ[variable], series)
        print(f"{variable}: {', '.join(applied) or 'nothing to do'}")
    return 0


async def _migrate_alone(url: str, series: str) -> list[str]:
    database = Database(url)
    try:
        return await migrate(database, series)
    finally:
        await database.close()


def databases(system: System, series: str) -> list[str]:
    """The variables that say where the databases of a series are."""
    listed = (list_databases(system, engine) for engine in (None, *system.storage))
    return sorted({variable for each in listed for variable, found in each.items() if found == series})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
