"""A database in one file, which one process owns: a thread that writes, and a connection that reads.

Whoever wants to write hands over what is to be done. What waits at the same moment is done in one
transaction, and nobody is answered before that is on the disk.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, NamedTuple, TypeVar

from runtime.stores.sqlite.migrations import FileMigration, migrate
from runtime.stores.store import StoreUnusable

Answer = TypeVar("Answer")
Work = Callable[[sqlite3.Connection], Answer]
"""What is done in a transaction. It runs in the writing thread and must not wait for anything."""

_TOGETHER = 500
"""How many share a transaction; beyond that the first would wait too long for the last."""
_SESSION = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA busy_timeout = 5000",
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


class SqliteDatabase:
    """One database file. Making one opens nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._writer: sqlite3.Connection | None = None
        """The connection of the writing thread, and of no other."""
        self._reader: sqlite3.Connection | None = None
        self._lock: BinaryIO | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.tables: dict[str, Any] = {}
        """By entity: the table that the writing thread uses. All of them can see each other."""
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
        """Takes the file for this process and brings it up to date; raises StoreUnusable where it cannot."""
        self._loop = asyncio.get_running_loop()
        writer: sqlite3.Connection | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path.with_name(f"{self.path.name}.lock"))
            writer = _connected(self.path)
            migrate(writer, system, steps)
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
        self._thread = threading.Thread(target=self._write, args=(writer,), name="sqlite", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Finishes what was asked, moves the log into the file, and gives the file back."""
        if self._thread is not None:
            self._asked.put(None)
            await asyncio.to_thread(self._thread.join)
            self._thread = None
        if self._reader is not None:
            self._reader.close()
            self._writer = self._reader = None
            self._connect()
        self._unlock()

    async def write(self, work: Work[Answer]) -> Answer:
        """Does something in a transaction; returns when it is on the disk."""
        if self._loop is None or self._thread is None:
            raise FileUnavailable("the database is not open")
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._asked.put(_Asked(work, answer))
        return await answer

    def read(self, statement: str, given: dict[str, Any]) -> list[Any]:
        """Reads what is committed. It waits for nobody, and is short enough to be done where it is asked."""
        if self._reader is None:
            raise FileUnavailable("the database is not open")
        try:
            return self._reader.execute(statement, given).fetchall()
        except sqlite3.DatabaseError as error:
            if not is_of_the_file(error):
                raise
            raise FileUnavailable(str(error)) from None

    def _write(self, connection: sqlite3.Connection) -> None:
        while (first := self._asked.get()) is not None:
            together = [first]
            ended = False
            with suppress(Empty):
                while len(together) < _TOGETHER:
                    following = self._asked.get_nowait()
                    if following is None:
                        ended = True
                        break
                    together.append(following)
            self._answer(_transaction(connection, together))
            self.transactions += 1
            if ended:
                break
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def _answer(self, answers: Sequence[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
        """Tells all of them at once: each crossing between threads has its price."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and with it whoever asked
                self._loop.call_soon_threadsafe(_set_answers, answers)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _transaction(
    connection: sqlite3.Connection, together: list[_Asked]
) -> list[tuple[asyncio.Future[Any], Any, BaseException | None]]:
    """Does all of it, or for each says why not; one that fails by itself leaves the others alone."""
    found: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
    try:
        connection.execute("BEGIN IMMEDIATE")
        for asked in together:
            found.append((asked.answer, *_alone(connection, asked.work)))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        unavailable = FileUnavailable(str(error))
        return [(asked.answer, None, unavailable) for asked in together]
    return found


def _alone(connection: sqlite3.Connection, work: Work[Any]) -> tuple[Any, BaseException | None]:
    connection.execute("SAVEPOINT one")
    try:
        answer = work(connection)
    except Exception as error:
        if is_of_the_file(error):
            raise  # It is full, spoilt or cannot be written: that is everybody's trouble.
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        return None, error
    connection.execute("RELEASE one")
    return answer, None


def _set_answers(answers: Sequence[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, answer, error in answers:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    connection.row_factory = sqlite3.Row
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
