"""The connection pool of one database: small, kept open, with backoff where it cannot connect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg

MOST = 8
"""Pool size of one process. Statements are batched, so more connections would only wait for each other."""
WAIT_S = 1.0
"""Timeout of acquiring a connection from the pool, and of connecting."""
STATEMENT_S = 5.0
"""Timeout of a statement; all but a few of them are short, so a slower one is stuck."""
LONG_S = 60.0
"""Timeout of statements that scan much of a table."""
PAUSE_S = (0.05, 1.0)
"""Least and greatest backoff between two attempts to connect."""

SESSION = {
    "TimeZone": "UTC",
    # Every statement uses an index. A generic plan that was cached while the table was small must not be a
    # sequential scan.
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
    """The database is unavailable. `unknown` means that the last statement may have been committed."""

    def __init__(self, why: str, *, unknown: bool = False) -> None:
        super().__init__(why)
        self.unknown = unknown


class Locked(PostgresUnavailable):
    """Another transaction has a lock that the statement needs and does not wait for."""


LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""Exceptions of asyncpg for a lost connection."""
_REFUSING_CLASSES = ("08", "25", "53", "55", "57", "58", "XX")
"""Classes of SQLSTATE of temporary failures of the server, independent of the statement."""
_LACKING = ("42P01", "42703", "42883", "3F000", "3D000")
"""SQLSTATEs of a missing schema, or one that is not migrated yet."""
_LOCKED = "55P03"
_TRY_AGAIN = ("40001", "40P01")


class Database:
    """The connection pool of one process to one database."""

    def __init__(self, url: str, *, name: str = "charter", most: int = MOST) -> None:
        self._url = url
        self._name = name
        self._idle: list[asyncpg.Connection[Any]] = []
        self._open = 0
        self._room = asyncio.Semaphore(most)
        self._pause = 0.0
        self._closed_until = 0.0
        self._closing = False

    async def fetch(self, text: str, *arguments: Any, timeout: float = STATEMENT_S) -> Sequence[Any]:
        """Run one statement in a transaction of its own."""
        async with self.connection() as connection:
            return await run(connection, text, *arguments, timeout=timeout)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """Acquire a connection. One that is lost, or still in a transaction, is closed at release."""
        if self._room.locked():
            try:
                async with asyncio.timeout(WAIT_S):
                    await self._room.acquire()
            except TimeoutError:
                raise PostgresUnavailable("all connections are in use") from None
        else:
            await self._room.acquire()  # Without a wait, so no timer is necessary.
        try:
            connection = self._pop_idle() or await self._connect()
            try:
                yield connection
            except BaseException as error:
                # After an error between two statements it is usable; after a cancellation it is not.
                if not isinstance(error, Exception):
                    connection.terminate()
                raise
            finally:
                if self._closing or connection.is_closed() or connection.is_in_transaction():
                    connection.terminate()
                else:
                    self._idle.append(connection)
        finally:
            self._room.release()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """Acquire a connection with a transaction: commit at the end, roll back on an error."""
        async with self.connection() as connection:
            try:
                begun = connection.transaction()
                await begun.start()
            except LOST as error:
                raise PostgresUnavailable(type(error).__name__) from None
            except asyncpg.PostgresError as error:
                raise translate_error(error) from None
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
                raise translate_error(error) from None

    async def dedicated(self) -> asyncpg.Connection[Any]:
        """Open a connection outside the pool, which the caller closes."""
        return await self._connect()

    async def close(self) -> None:
        """Close all idle connections now, and the others when they are released."""
        self._closing = True
        while self._idle:
            connection = self._idle.pop()
            try:
                await connection.close(timeout=WAIT_S)
            except (*LOST, asyncpg.PostgresError):
                connection.terminate()

    def _pop_idle(self) -> asyncpg.Connection[Any] | None:
        """Return an idle connection; those that a restart of the server has closed are dropped."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    async def _connect(self) -> asyncpg.Connection[Any]:
        """Connect with backoff, so that a returning database is not stormed by reconnects."""
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
    """Run a statement; a temporary failure becomes PostgresUnavailable."""
    try:
        return await connection.fetch(text, *arguments, timeout=timeout)
    except LOST as error:
        if isinstance(error, asyncpg.DataError):  # the library refuses a value before it is sent
            raise
        connection.terminate()
        raise PostgresUnavailable(type(error).__name__, unknown=True) from None
    except asyncpg.PostgresError as error:
        raise translate_error(error) from None


def translate_error(error: asyncpg.PostgresError) -> Exception:
    """Convert an error of the server to PostgresUnavailable if it is temporary; else return it."""
    code = error.sqlstate or ""
    if code in _LACKING:
        return PostgresUnavailable("the schema is missing or not migrated")
    if code == _LOCKED:
        return Locked("another transaction holds it")
    if code in _TRY_AGAIN:
        return PostgresUnavailable(f"SQLSTATE {code}")
    if code[:2] in _REFUSING_CLASSES:
        # A lost response to COMMIT leaves the outcome unknown; other statements were rolled back.
        return PostgresUnavailable(f"SQLSTATE {code}", unknown=code[:2] in ("08", "57"))
    return error
