"""PostgreSQL for the contract suite: a schema for each place of a test, and the clock of its world.

The server has a clock of its own, and nothing in the engine knows another. Here alone each
`clock_timestamp()` of the generated SQL is replaced by a function that returns the moment of a test's world.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any, ClassVar

import asyncpg
from msgspec.structs import replace

from codegen.emit.postgres import postgres_files
from codegen.emit.postgres.postgres_entity import KeptEntity
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import EntityStore
from runtime.stores.postgres import Database, PostgresStore
from runtime.stores.postgres.statements import Statement, parse_statements
from runtime.world import World
from tests.support.stores.spec_text import compile_lifecycle

_CLOCK = "virtual.clock()"
_PREPARED = f"""
CREATE SCHEMA IF NOT EXISTS virtual;
CREATE OR REPLACE FUNCTION {_CLOCK} RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT timestamptz 'epoch' + current_setting('virtual.now')::bigint * interval '1 millisecond' $$;
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = $1"
_numbers = count()


class Server:
    """The server of the session, and the connections of the test that runs now."""

    url = ""
    listening: ClassVar[list[PostgresStore[Any]]] = []
    """Stores that listen for wake-ups."""
    _shared: tuple[asyncio.AbstractEventLoop, Database] | None = None
    _states: ClassVar[dict[int, tuple[str, int]]] = {}
    _preparing: ClassVar[asyncio.Lock] = asyncio.Lock()

    @classmethod
    def database(cls) -> Database:
        """Return the connections of this event loop."""
        loop = asyncio.get_running_loop()
        if cls._shared is None or cls._shared[0] is not loop:
            cls._shared, cls._states = (loop, Database(cls.url, name="suite", most=3)), {}
            cls._preparing = asyncio.Lock()
        return cls._shared[1]

    @classmethod
    async def enter(cls, connection: asyncpg.Connection[Any], schema: str, now_ms: int) -> None:
        """Let a connection see a schema at a moment."""
        if id(connection) not in cls._states:
            async with cls._preparing:
                await connection.execute(_PREPARED)
        if cls._states.get(id(connection)) != (schema, now_ms):
            path = "SELECT set_config('search_path', $1, false), set_config('virtual.now', $2, false)"
            await connection.fetch(path, schema, str(now_ms))
            cls._states[id(connection)] = (schema, now_ms)

    @classmethod
    async def close(cls) -> None:
        """Close the connections of a test, and end what its stores have started."""
        while cls.listening:
            await cls.listening.pop().close()
        if cls._shared is not None:
            await cls._shared[1].close()
            cls._shared = None


class PlaceDatabase(Database):
    """A schema of the server, made when it is first used, at the time of a world."""

    def __init__(self, world: World) -> None:
        super().__init__("")
        self.schema = f"place_{next(_numbers)}"
        self.world = world
        self._wanted: dict[str, str] = {}
        self._made: set[str] = set()
        self._tables: Sequence[Any] | None = None

    def want(self, tables: Mapping[str, str]) -> None:
        """Have tables by the time of the next statement, unless they are there."""
        self._wanted |= {name: text for name, text in tables.items() if name not in self._made}

    async def dedicated(self) -> asyncpg.Connection[Any]:
        return await Server.database().dedicated()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        async with Server.database().connection() as connection:
            if not self._made:
                await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            await Server.enter(connection, self.schema, self.world.now_ms())
            for name, text in self._wanted.items():
                await connection.execute(text)
                self._made.add(name)
            self._wanted.clear()
            yield connection

    async def empty(self) -> None:
        """Delete all rows, whatever the guards say."""
        async with self.connection() as connection:
            rows = await connection.fetch(_TABLES, self.schema) if self._tables is None else self._tables
            self._tables = rows
            deletions = ";".join(f"DELETE FROM {row[0]}" for row in rows)
            role = "SET session_replication_role"
            await connection.execute(f"{role} = replica; {deletions}; {role} = origin")

    async def drop(self) -> None:
        """Remove the schema."""
        async with self.connection() as connection:
            await connection.execute(f"DROP SCHEMA {self.schema} CASCADE")


class PlaceStore(PostgresStore[Any]):
    """A store whose schema has no migrations, and for which time stands still; both are proven elsewhere."""

    _apart_us = 0

    async def health(self) -> str | None:
        await self.count()
        return None

    async def open(self, log: Log) -> None:
        """Listen for wake-ups; the schema is made with the place."""
        del log
        Server.listening.append(self)
        self._maintenance.start_listening()
        await self._maintenance.wait(60.0)  # A wake-up says that it has begun to listen.


class PostgresPlace:
    """A schema of its own, with the tables of each entity that is opened."""

    def __init__(self, world: World, opened: list[Callable[[], Awaitable[None]]]) -> None:
        self.database = PlaceDatabase(world)
        self._prepared: dict[str, tuple[Lifecycle, Lifecycle, Mapping[str, Statement]]] = {}
        """By entity: the lifecycle of the test, the one that is generated from it, and its statements."""
        if Server.close not in opened:
            opened.append(Server.close)

    def open_store(
        self,
        system: System,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
        max_terminal: int,
        lifecycle: Lifecycle,
    ) -> EntityStore[Any]:
        """Open the store of an entity."""
        prepared = self._prepared.get(lifecycle.entity)
        if prepared is None or prepared[0] is not lifecycle:
            prepared = self._prepared[lifecycle.entity] = lifecycle, *self._prepare(lifecycle, values)
        _, made, statements = prepared
        assert made.record is not None
        store: EntityStore[Any] = PlaceStore(
            *(system, made, made.record, self.database, world, metrics, values),
            max_terminal=max_terminal,
            texts=statements,
        )
        return store

    def _prepare(
        self, lifecycle: Lifecycle, values: Mapping[str, Any]
    ) -> tuple[Lifecycle, Mapping[str, Statement]]:
        """Compile a lifecycle: as it is generated, and its statements; the tables come with the next one."""
        compiled = compile_lifecycle("postgres", lifecycle, values)
        spec = compiled.spec
        entities = {name: KeptEntity(spec, name, row) for name, row in spec.lifecycle.entities.items()}
        tables = {name: postgres_files.entity_schema(spec, name, each) for name, each in entities.items()}
        self.database.want({name: _virtual(text) for name, text in tables.items()})
        text = "\n".join(postgres_files.statements(spec, entities[lifecycle.entity]))
        statements = {
            name: replace(each, text=f"/* {self.database.schema} */ {each.text}")
            for name, each in parse_statements(_virtual(text)).items()
        }
        made = replace(compiled.lifecycles[lifecycle.entity], key_form=lifecycle.key_form)
        return made, statements


def open_place(
    system: System,
    opened: list[Callable[[], Awaitable[None]]],
    world: World,
    metrics: Metrics,
    values: Mapping[str, Any],
    max_terminal: int,
) -> Callable[[Lifecycle], EntityStore[Any]]:
    """Return the function that opens stores in a schema of their own."""
    place = PostgresPlace(world, opened)
    return partial(place.open_store, system, world, metrics, values, max_terminal)


def _virtual(text: str) -> str:
    return text.replace("clock_timestamp()", _CLOCK)
