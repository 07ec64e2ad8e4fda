"""A database in one file, which one process owns: a connection that writes, and one that reads.

Steps run on the event loop. Those that wait at the same moment share a transaction, and nobody is answered
before that is on the disk.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, NamedTuple, TypeVar

from runtime.stores.sqlite.migrations import FileMigration, migrate
from runtime.stores.store import StoreUnusable

Answer = TypeVar("Answer")
Work = Callable[[sqlite3.Connection], Answer]
"""A step of a transaction. It must not wait for anything, and may be run again after a rollback."""

_TOGETHER = 200
"""How many share a transaction; beyond that the first would wait too long for the last."""
_SHORT_S = 0.001
"""Commits that take less, on the average, may be made on the event loop."""
_AVERAGED = 16
"""How many commits the average is of, about."""
_PATIENCE_MS = 5000
"""How long a transaction waits for one of another process, such as that of a person at the shell."""
_SESSION = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    f"PRAGMA busy_timeout = {_PATIENCE_MS}",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -65536",
)


class FileUnavailable(Exception):
    """The file cannot be written or read now; nothing of what was asked has happened."""


def is_of_the_file(error: Exception) -> bool:
    """Whether something failed because of the file, and not because of what was asked of it."""
    # A file that is spoilt makes the plain class; what breaks a rule of the schema has classes of its own.
    return isinstance(error, (sqlite3.OperationalError, sqlite3.InternalError)) or (
        type(error) is sqlite3.DatabaseError
    )


class _Asked(NamedTuple):
    work: Work[Any]
    answer: asyncio.Future[Any]
    is_long: bool


class _Outcome(NamedTuple):
    answer: Any
    error: Exception | None = None


class SqliteDatabase:
    """One database file. Making one opens nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._waiting: deque[_Asked] = deque()
        self._working: asyncio.Task[None] | None = None
        """The task that works off what waits."""
        self._is_open = False
        self._thread: ThreadPoolExecutor | None = None
        """One thread, for whatever would keep the event loop waiting."""
        self._writer: sqlite3.Connection | None = None
        """The connection of the transaction under way; the thread has it while the task waits for it."""
        self._reader: sqlite3.Connection | None = None
        self._lock: BinaryIO | None = None
        self._commit_s = _SHORT_S
        """The moving average of how long a commit takes."""
        self.tables: dict[str, Any] = {}
        """By entity: the table that steps use. All of them can see each other."""
        self._readers: dict[str, Any] = {}
        self.transactions = 0
        """How many transactions there were, for whoever wants to know how many shared one."""

    def add(self, entity: str, writing: Any, reading: Any) -> None:
        """Give the table of an entity the connection that writes, and another one that which reads."""
        self.tables[entity] = writing
        self._readers[entity] = reading
        self._connect()

    def _connect(self) -> None:
        for table in self.tables.values():
            table.rows.connection = self._writer
        for table in self._readers.values():
            table.rows.connection = self._reader

    def open(self, system: str, steps: Sequence[FileMigration]) -> None:
        """Take the file for this process and bring it up to date; raises StoreUnusable where it cannot."""
        writer: sqlite3.Connection | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path.with_name(f"{self.path.name}.lock"))
            writer = _connected(self.path)
            migrate(writer, system, steps)
            # The event loop asks for the lock once, and lets the thread wait for it.
            writer.execute("PRAGMA busy_timeout = 0")
            self._reader = _connected(self.path)
            self._reader.execute("PRAGMA query_only = ON")
        except BaseException as error:
            if writer is not None:
                writer.close()
            self._unlock()
            if not isinstance(error, (sqlite3.Error, OSError)):
                raise
            raise StoreUnusable(f"{self.path} cannot be used as a database: {error}") from None
        self._writer = writer
        self._connect()
        self._thread = ThreadPoolExecutor(1, "sqlite")
        self._is_open = True

    async def close(self) -> None:
        """Finish what was asked, move the log into the file, and give the file back."""
        self._is_open = False
        if self._working is not None:
            await asyncio.wait([self._working])
        if self._thread is not None and self._writer is not None:
            await _in(self._thread, _close, self._writer)
            self._thread.shutdown()
            self._thread = None
        if self._reader is not None:
            self._reader.close()
            self._writer = self._reader = None
            self._connect()
        self._unlock()

    async def write(self, work: Work[Answer], *, is_long: bool = False) -> Answer:
        """Do something in a transaction; return when it is on the disk.

        The event loop does it, or the thread if it may take long.
        """
        if not self._is_open:
            raise FileUnavailable("the database is not open")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append(_Asked(work, answer, is_long))
        if self._working is None:
            # Others that ask in this turn of the loop are in the same transaction.
            self._working = loop.create_task(self._work_off())
        return await answer

    def read(self, statement: str, given: dict[str, Any]) -> list[Any]:
        """Read what is committed. It waits for nobody, and is short enough to be done where it is asked."""
        if self._reader is None:
            raise FileUnavailable("the database is not open")
        try:
            return self._reader.execute(statement, given).fetchall()
        except sqlite3.DatabaseError as error:
            if not is_of_the_file(error):
                raise
            raise FileUnavailable(str(error)) from None

    async def _work_off(self) -> None:
        assert self._writer is not None
        assert self._thread is not None
        while self._waiting:
            together = [self._waiting.popleft() for _ in range(min(len(self._waiting), _TOGETHER))]
            try:
                outcomes = await self._transact(self._writer, self._thread, together)
            except Exception as error:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                failed = FileUnavailable(str(error)) if isinstance(error, sqlite3.Error) else error
                outcomes = [_Outcome(None, failed)] * len(together)
            self.transactions += 1
            _set_answers(together, outcomes)
        self._working = None

    async def _transact(
        self, writer: sqlite3.Connection, thread: ThreadPoolExecutor, together: Sequence[_Asked]
    ) -> list[_Outcome]:
        """Do all of it in one transaction; one that fails by itself leaves the others alone."""
        is_alone = len(together) == 1 and not self._waiting
        if not _begin(writer):
            await _in(thread, _begin_patiently, writer)
        changes = writer.total_changes
        if any(each.is_long for each in together):
            outcomes = await _in(thread, _take_all, writer, together)
        else:
            outcomes = _take_all(writer, together)
        if changes == writer.total_changes:
            _commit(writer)
        else:
            # While several wait for the disk, the loop can do other things; one alone saves the way there
            # and back, where the disk is quick.
            is_short = is_alone and self._commit_s < _SHORT_S
            took_s = _commit(writer) if is_short else await _in(thread, _commit, writer)
            self._commit_s += (took_s - self._commit_s) / _AVERAGED
        return outcomes

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _in(thread: ThreadPoolExecutor, act: Callable[..., Answer], *arguments: Any) -> asyncio.Future[Answer]:
    return asyncio.get_running_loop().run_in_executor(thread, act, *arguments)


def _begin(connection: sqlite3.Connection) -> bool:
    """Begin a transaction, unless another process has one under way."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _begin_patiently(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
    try:
        connection.execute("BEGIN IMMEDIATE")
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


def _commit(connection: sqlite3.Connection) -> float:
    """Commit; return how many seconds it took."""
    begun = perf_counter()
    connection.execute("COMMIT")
    return perf_counter() - begun


def _take_all(connection: sqlite3.Connection, together: Sequence[_Asked]) -> list[_Outcome]:
    """Take all steps; if any of them fails, begin anew, with each behind a savepoint of its own."""
    try:
        return [_Outcome(asked.work(connection)) for asked in together]
    except Exception as error:
        if is_of_the_file(error):
            raise  # It is full, spoilt or cannot be written: that is everybody's trouble.
    connection.execute("ROLLBACK")
    if not _begin(connection):
        _begin_patiently(connection)
    return [_take_alone(connection, asked.work) for asked in together]


def _take_alone(connection: sqlite3.Connection, work: Work[Any]) -> _Outcome:
    connection.execute("SAVEPOINT one")
    try:
        outcome = _Outcome(work(connection))
    except Exception as error:
        if is_of_the_file(error):
            raise
        connection.execute("ROLLBACK TO one")
        outcome = _Outcome(None, error)
    connection.execute("RELEASE one")
    return outcome


def _set_answers(together: Sequence[_Asked], outcomes: Sequence[_Outcome]) -> None:
    for asked, outcome in zip(together, outcomes, strict=True):
        if asked.answer.done():
            continue
        if outcome.error is not None:
            asked.answer.set_exception(outcome.error)
        else:
            asked.answer.set_result(outcome.answer)


def _close(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    for each in _SESSION:
        connection.execute(each)
    return connection


def _locked(path: Path) -> BinaryIO:
    """Holds a lock file as long as it is open; the system gives it back even if the process is killed."""
    lock = path.open("a+b")
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read(32).decode("ascii", "replace").strip()
        lock.close()
        by = f" by process {holder}" if holder else ""
        raise StoreUnusable(
            f"{path.with_suffix('')} is in use{by}: one process owns a database file. "
            "Stop that one, or name another file."
        ) from None
    lock.seek(0)
    lock.truncate()
    lock.write(f"{os.getpid()}\n".encode())
    lock.flush()
    return lock
