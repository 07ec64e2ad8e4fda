"""How parts of a step are removed from an open store: history, triggers that guard edges, and the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from runtime.stores.redis.connection.client import compute_digest

Remove = Callable[[Any], Awaitable[None]]


async def _of_table(store: Any) -> None:
    """Engines that run steps on a table write a line by a call of it."""
    store._table.write_history = lambda *_: None


async def _of_postgres(store: Any) -> None:
    await _disable(store, "%record%")


async def _of_redis(store: Any) -> None:
    store._scripts = _WithoutHistory(store._scripts)


class _WithoutHistory(dict[str, tuple[str, str]]):
    """Scripts in which the function that notes a line of history returns at once."""

    def __init__(self, scripts: Mapping[str, tuple[str, str]]) -> None:
        super().__init__()
        self._scripts = scripts

    def __missing__(self, operation: str) -> tuple[str, str]:
        begin = "function M.note_history(entity, edge, actor, given, owner)"
        text = self._scripts[operation][0].replace(begin, f"{begin} do return end")
        found = self[operation] = text, compute_digest(text)
        return found


async def _of_s3(store: Any) -> None:
    """An object without the member that has the history."""
    store._layout = replace(store._layout, journal=None)


async def _triggers_of_sqlite(store: Any) -> None:
    with closing(sqlite3.connect(store._file.path, isolation_level=None)) as connection:
        rows = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%RAISE%'"
        )
        for (name,) in rows.fetchall():
            connection.execute(f"DROP TRIGGER {name}")


async def _triggers_of_postgres(store: Any) -> None:
    for name in ("%keep", "%move", "%complete"):
        await _disable(store, name)


async def _disable(store: Any, pattern: str) -> None:
    names = (
        "SELECT tgname, tgrelid::regclass AS place FROM pg_trigger WHERE NOT tgisinternal AND tgname LIKE $1"
    )
    async with store._database.connection() as connection:
        schema = await connection.fetchval("SELECT current_schema()")
        for name, place in await connection.fetch(
            f"{names} AND tgrelid::regclass::text NOT LIKE '%.%'", pattern
        ):
            await connection.execute(f"ALTER TABLE {schema}.{place} DISABLE TRIGGER {name}")


HISTORY: Mapping[str, Remove] = {
    "memory": _of_table,
    "postgres": _of_postgres,
    "redis": _of_redis,
    "s3": _of_s3,
    "sqlite": _of_table,
}
TRIGGERS: Mapping[str, Remove] = {"postgres": _triggers_of_postgres, "sqlite": _triggers_of_sqlite}
"""Engines in which guards stand behind the step, too, for statements that bypass it."""


async def skip_disk(engine: str, store: Any) -> None:
    """Let a store in a file write without waiting for the disk."""
    if engine == "sqlite":
        await store._file.write(_skip_after)


def _skip_after(connection: sqlite3.Connection) -> None:
    """It counts from the next transaction on."""
    connection.execute("COMMIT")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN IMMEDIATE")
