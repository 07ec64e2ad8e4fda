"""`python -m runtime.postgres migrate <system>`: brings the databases of a system up to date."""

from __future__ import annotations

import asyncio
import os
import sys

from runtime.postgres.database import Database, Unavailable
from runtime.postgres.migrations import MigrationError, migrate
from runtime.systems import load_system
from runtime.tables import System

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
    variables = sorted({each.kept.url for each in system.lifecycles.values() if each.kept is not None})
    if unset := [name for name in variables if not os.environ.get(name)]:
        print(f"{', '.join(unset)}: is required and not set.", file=sys.stderr)
        return 2
    try:
        return asyncio.run(_migrate(system, variables))
    except (Unavailable, MigrationError) as error:
        print(f"{system.name} cannot be migrated: {error}.", file=sys.stderr)
        return 1


async def _migrate(system: System, variables: list[str]) -> int:
    for variable in variables:
        database = Database(os.environ[variable])
        try:
            applied = await migrate(database, system.name)
        finally:
            await database.close()
        print(f"{variable}: {', '.join(applied) or 'nothing to do'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
