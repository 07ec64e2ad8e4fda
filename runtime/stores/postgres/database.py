"""Connections to one database: few, kept, opened without haste when they cannot be had."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg

MOST = 8
"""Connections of one process. Statements are shared, so more of them would only wait for each other."""
WAIT_S = 1.0
"""How long a caller waits for a connection to become free, or to be made."""
STATEMENT_S = 5.0
"""How long a statement may take; all but a few of them are short, so it is stuck then."""
LONG_S = 60.0
"""The same for those that go through much of the table."""
PAUSE_S = (0.05, 1.0)
"""The least and the greatest pause between two attempts to connect."""

SESSION = {
    "TimeZone": "UTC",
    # Every statement finds its rows through an index. A plan that was made while the table was small, and is
    # used ever after, must not read all of it.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_sort": "off",
    "jit": "off",
    "idle_in_transaction_session_timeout": "10s",
}


class PostgresUnavailable(Exception):
    """The database does not answer. `unknown` says that the last statement may have been carried out."""

    def __init__(self, why: str, *, unknown: bool = False) -> None:
        super().__init__(why)
        self.unknown = unknown


class Locked(PostgresUnavailable):
    """Another transaction holds what the statement needs, and the statement does not wait for it."""


LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""What asyncpg raises where a connection is of no use any more."""
_REFUSING_CLASSES = ("08", "25", "53", "55", "57", "58", "XX")
"""Classes of SQLSTATE that say that the server cannot do it now: nothing is wrong with the statement."""
_LACKING = ("42P01", "42703", "42883", "3F000", "3D000")
"""The schema is not there (yet)."""
_LOCKED = "55P03"
_TRY_AGAIN = ("40001", "40P01")


class Database:
    """The connections of one process to one database."""

    def __init__(self, url: str, *, name: str = "charter", most: int = MOST) -> None:
        self._url = url
        self._name = name
        self._free: list[asyncpg.Connection[Any]] = []
        self._open = 0
        self._room = asyncio.Semaphore(most)
        self._pause = 0.0
        self._closed_until = 0.0
        self._closing = False

    async def fetch(self, text: str, *arguments: Any, timeout: float = STATEMENT_S) -> Sequence[Any]:
        """Runs one statement in a transaction of its own."""
        async with self.connection() as connection:
            return await run(connection, text, *arguments, timeout=timeout)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """A connection for a moment. One that was lost, or left in the middle of something, is closed."""
        if self._room.locked():
            try:
                async with asyncio.timeout(WAIT_S):
                    await self._room.acquire()
            except TimeoutError:
                raise PostgresUnavailable("all connections are in use") from None
        else:
            await self._room.acquire()  # At once, so no clock has to be set.
        try:
            connection = self._unused() or await self._connect()
            try:
                yield connection
            except BaseException as error:
                # An error between two statements leaves it as it should be; a cancelled call does not.
                if not isinstance(error, Exception):
                    connection.terminate()
                raise
            finally:
                if self._closing or connection.is_closed() or connection.is_in_transaction():
                    connection.terminate()
                else:
                    self._free.append(connection)
        finally:
            self._room.release()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """A connection with a transaction around everything that is done with it."""
        async with self.connection() as connection:
            try:
                begun = connection.transaction()
                await begun.start()
            except LOST as error:
                raise PostgresUnavailable(type(error).__name__) from None
            except asyncpg.PostgresError as error:
                raise translated(error) from None
            try:
                yield connection
            except BaseException:
                with suppress(Exception):
                    await begun.rollback()
                raise
            try:
                await begun.commit()
            except LOST as error:
                raise PostgresUnavailable(type(error).__name__, unknown=True) from None
            except asyncpg.PostgresError as error:
                raise translated(error) from None

    async def dedicated(self) -> asyncpg.Connection[Any]:
        """A connection that is the caller's to close."""
        return await self._connect()

    async def close(self) -> None:
        """Closes what is free now, and what becomes free later."""
        self._closing = True
        while self._free:
            connection = self._free.pop()
            try:
                await connection.close(timeout=WAIT_S)
            except (*LOST, asyncpg.PostgresError):
                connection.terminate()

    def _unused(self) -> asyncpg.Connection[Any] | None:
        """One that is open as far as we know; those that a restart of the server has closed are forgotten."""
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
        return None

    async def _connect(self) -> asyncpg.Connection[Any]:
        """Connects, unless the last attempt has just failed: a database that comes back is not stormed."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._closed_until:
            raise PostgresUnavailable("the last attempt to connect has just failed")
        try:
            connection: asyncpg.Connection[Any] = await asyncpg.connect(
                self._url,
                timeout=WAIT_S,
                server_settings={**SESSION, "application_name": self._name},
                max_cached_statement_lifetime=0,
            )
        except (*LOST, asyncpg.PostgresError, ValueError) as error:
            self._pause = min(max(self._pause * 2, PAUSE_S[0]), PAUSE_S[1])
            self._closed_until = loop.time() + self._pause
            raise PostgresUnavailable(type(error).__name__) from None
        self._pause = 0.0
        return connection


async def run(
    connection: asyncpg.Connection[Any], text: str, *arguments: Any, timeout: float = STATEMENT_S
) -> Sequence[Any]:
    """Run a statement; an error that says it cannot be done now becomes PostgresUnavailable."""
    try:
        return await connection.fetch(text, *arguments, timeout=timeout)
    except LOST as error:
        if isinstance(error, asyncpg.DataError):  # the library refuses a value before it is sent
            raise
        connection.terminate()
        raise PostgresUnavailable(type(error).__name__, unknown=True) from None
    except asyncpg.PostgresError as error:
        raise translated(error) from None


def translated(error: asyncpg.PostgresError) -> Exception:
    """An error of the server as PostgresUnavailable, if that is what it means; otherwise the error itself."""
    code = error.sqlstate or ""
    if code in _LACKING:
        return PostgresUnavailable("the schema is not there")
    if code == _LOCKED:
        return Locked("another transaction holds it")
    if code in _TRY_AGAIN:
        return PostgresUnavailable(f"SQLSTATE {code}")
    if code[:2] in _REFUSING_CLASSES:
        # Without an answer to COMMIT nobody knows; other statements were rolled back by the server.
        return PostgresUnavailable(f"SQLSTATE {code}", unknown=code[:2] in ("08", "57"))
    return error


Notified = Callable[[], None]
