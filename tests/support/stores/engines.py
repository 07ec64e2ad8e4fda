"""The engines that the contract suite runs on. A further one is one entry of `ENGINES`."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from generated.taskqueue.system import SYSTEM as ANY_SYSTEM
from runtime.call.conditions import Condition
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe.metrics import Metrics
from runtime.stores.contract import EntityStore
from runtime.stores.engine import EngineContext, make_engine
from runtime.stores.memory import MemoryStore
from runtime.stores.memory.table import MemoryTable
from runtime.stores.semantics.rules import Rules
from runtime.stores.sqlite import SqliteDatabase, SqliteStore
from runtime.stores.sqlite.migrations import split_script
from runtime.stores.sqlite.statements import Statements
from runtime.world import World
from tests.stores.toy import engine as toy
from tests.support.stores.postgres_engine import open_place
from tests.support.stores.redis_engine import open_redis
from tests.support.stores.spec_text import compile_lifecycle

_FOLDER = tempfile.TemporaryDirectory(prefix="charter-json-")
"""The files of all stores that a process of tests opens; it goes with the process."""

Open = Callable[[Lifecycle], EntityStore[Any]]
"""Opens the store of an entity; those that are opened by one function can see each other."""
Engine = Callable[[World, Metrics, Mapping[str, Any], int], Open]
"""Makes that function in a world, with variables, and with a bound of terminal entities (0 for none)."""

ROLES = (
    "permission_denied",
    "illegal_transition",
    "lease_lost",
    "lease_stale",
    "still_held",
    "store_full",
    "store_unavailable",
)


def make_condition(role: str) -> type[Condition]:
    """A condition that is called like its role."""

    def make(self: Condition, **fields: object) -> None:
        Condition.__init__(self, " ".join(map(str, (role, *fields.values()))), **fields)

    words = {"code": role, "grpc": "ABORTED", "http": 409, "retry": "never", "__init__": make}
    return type(role, (Condition,), words)


SYSTEM: System = replace(ANY_SYSTEM, roles={role: make_condition(role) for role in ROLES})


def open_memory(world: World, metrics: Metrics, values: Mapping[str, Any], max_terminal: int) -> Open:
    tables: dict[str, MemoryTable] = {}

    def open_store(lifecycle: Lifecycle) -> EntityStore[Any]:
        assert lifecycle.record is not None
        store: EntityStore[Any] = MemoryStore(
            SYSTEM,
            lifecycle,
            lifecycle.record,
            world,
            metrics,
            values,
            max_terminal=max_terminal,
            tables=tables,
        )
        return store

    return open_store


def open_s3(world: World, metrics: Metrics, values: Mapping[str, Any], max_terminal: int) -> Open:
    from tests.support.stores.s3_engine import open_s3_stores

    open_store: Open = open_s3_stores(SYSTEM, world, metrics, values, max_terminal)
    return open_store


def open_json(world: World, metrics: Metrics, values: Mapping[str, Any], max_terminal: int) -> Open:
    """Open stores in a folder of their own."""
    return open_json_at(make_folder(), world, metrics, values, max_terminal)


def make_folder() -> Path:
    """Make a folder for the files of some stores."""
    return Path(tempfile.mkdtemp(dir=_FOLDER.name))


def open_json_at(
    folder: Path, world: World, metrics: Metrics, values: Mapping[str, Any], max_terminal: int
) -> Open:
    """Open stores in a folder; the engine of JSON files is found by its name, as a node finds it."""
    values = {**values, toy.FOLDER: str(folder), "MAX_TERMINAL": max_terminal}
    engine = make_engine(toy.NAME, EngineContext(SYSTEM, world, metrics, values, "shop"))

    def open_store(lifecycle: Lifecycle) -> EntityStore[Any]:
        assert lifecycle.record is not None
        store: EntityStore[Any] = engine.store(
            replace(lifecycle, retained_by="MAX_TERMINAL"), lifecycle.record
        )
        return store

    return open_store


class SqlitePlace:
    """A file of its own, with the schema of each entity that is opened."""

    def __init__(self) -> None:
        self.path = make_folder() / "shop.db"
        self._file, self._applied = SqliteDatabase(self.path), set[str]()
        self._prepared: dict[str, tuple[Lifecycle, Lifecycle, Statements]] = {}
        """By entity: the lifecycle of the test, the one that is generated from it, and its statements."""

    def open_store(
        self,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
        max_terminal: int,
        lifecycle: Lifecycle,
    ) -> EntityStore[Any]:
        assert lifecycle.record is not None
        prepared = self._prepared.get(lifecycle.entity)
        if prepared is None or prepared[0] is not lifecycle:
            prepared = self._prepared[lifecycle.entity] = lifecycle, *self._prepare(lifecycle, values)
        _, made, statements = prepared
        store: EntityStore[Any] = SqliteStore(
            *(SYSTEM, made, lifecycle.record, self._file, world, metrics, values),
            max_terminal=max_terminal,
            statements=statements,
        )
        return store

    def _prepare(self, lifecycle: Lifecycle, values: Mapping[str, Any]) -> tuple[Lifecycle, Statements]:
        """Compile a lifecycle, and make its tables."""
        compiled = compile_lifecycle("sqlite", lifecycle, values)
        if not self._applied:
            self._file.open(SYSTEM.name, ())
            OPENED.append(self._file.close)
        _apply_schema(self.path, compiled.artefacts["generated/shop/sqlite/schema.sql"], self._applied)
        text = compiled.artefacts[f"generated/shop/sqlite/{lifecycle.entity}.sql"]
        return compiled.lifecycles[lifecycle.entity], _parse(text)


def open_sqlite(world: World, metrics: Metrics, values: Mapping[str, Any], max_terminal: int) -> Open:
    return partial(SqlitePlace().open_store, world, metrics, values, max_terminal)


def _apply_schema(path: Path, schema: str, applied: set[str]) -> None:
    """Run the statements of a schema that the file has not seen."""
    code = "\n".join(line for line in schema.splitlines() if line and not line.startswith("--"))
    missing = [each for each in split_script(code) if each not in applied]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for statement in missing:
            connection.execute(statement)
        connection.execute("COMMIT")
    applied.update(missing)


@cache
def _parse(text: str) -> Statements:
    return Statements(text)


OPENED: list[Callable[[], Awaitable[None]]] = []
"""How to close what was opened and holds something outside of memory."""


async def close_opened() -> None:
    """Close it."""
    while OPENED:
        await OPENED.pop()()


ENGINES: dict[str, Engine] = {
    "memory": open_memory,
    "json": open_json,
    "postgres": partial(open_place, SYSTEM, OPENED),
    "redis": partial(open_redis, SYSTEM, OPENED),
    "s3": open_s3,
    "sqlite": open_sqlite,
}
BY_CREATION = frozenset({"memory", "sqlite"})
"""Engines that claim those of equal age in the order of their creation, and not by key."""


def claims_by_creation(engine: str, lifecycle: Lifecycle, variables: Mapping[str, Any]) -> bool:
    """Whether an engine claims those of equal age in the order of their creation.

    Redis does where ages are in milliseconds, which leave room for it; other ages never are equal there.
    """
    if engine != "redis" or lifecycle.lease is None or lifecycle.record is None:
        return engine in BY_CREATION
    rules = Rules(lifecycle, lifecycle.record, variables)
    is_coarse = lifecycle.lease.oldest_by in {*lifecycle.creation_stamps} - rules.instants
    return is_coarse and not rules.not_before
