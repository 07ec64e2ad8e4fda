"""The file itself: who shares a transaction, what fails alone, who owns it, how it is brought up to date."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from runtime.stores.sqlite import FileUnavailable, SqliteDatabase
from runtime.stores.sqlite.migrations import FileMigration, migrate, read_migrations
from runtime.stores.store import StoreUnusable
from tests.runtime.stores.sqlite.kit import Kit


@pytest_asyncio.fixture
async def file(laundry: Path, tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    """An open file of shirts and socks, with a table for the test."""
    made = SqliteDatabase(tmp_path / "some" / "where" / "book.db")
    open_file(made)
    await made.write(lambda connection: connection.execute("CREATE TABLE notes (text TEXT UNIQUE)"))
    yield made
    await made.close()


def open_file(file: SqliteDatabase) -> None:
    file.open("laundry", read_migrations("laundry"))


def note(text: str) -> Any:
    return lambda connection: connection.execute("INSERT INTO notes VALUES (?)", (text,)).rowcount


def notes(file: SqliteDatabase) -> list[str]:
    return [row[0] for row in file.read("SELECT text FROM notes ORDER BY rowid", {})]


async def test_those_who_come_together_share_a_transaction(file: SqliteDatabase) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait(300)

    first = asyncio.create_task(file.write(slow, is_long=True))
    await asyncio.to_thread(begun.wait, 300)
    before = file.transactions
    others = [asyncio.create_task(file.write(note(f"{number}"))) for number in range(200)]
    await asyncio.sleep(0)  # Each has begun, and waits for the transaction that is under way.
    go_on.set()
    await asyncio.gather(first, *others)
    assert notes(file) == [f"{number}" for number in range(200)]
    # That of the first one, if it was not counted yet, and one for all the others.
    assert file.transactions - before <= 2


async def test_nobody_is_answered_before_the_commit(file: SqliteDatabase) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait(300)

    first = asyncio.create_task(file.write(slow, is_long=True))
    await asyncio.to_thread(begun.wait, 300)
    second = asyncio.create_task(file.write(note("later")))
    # Others read meanwhile, in a thread of their own, and the loop has turned.
    assert await asyncio.to_thread(notes, file) == []
    assert not first.done()
    assert not second.done()
    go_on.set()
    await asyncio.gather(first, second)
    assert notes(file) == ["later"]


@pytest.mark.parametrize("number", [1, 2, 50])
async def test_what_is_answered_is_committed(file: SqliteDatabase, number: int) -> None:
    with closing(sqlite3.connect(file.path, isolation_level=None)) as person:

        async def write(text: str) -> None:
            await file.write(note(text))
            assert person.execute("SELECT text FROM notes WHERE text = ?", (text,)).fetchall() == [(text,)]

        for turn in range(5):
            await asyncio.gather(*(write(f"{turn}-{each}") for each in range(number)))


async def test_the_loop_goes_on_while_another_process_writes(file: SqliteDatabase) -> None:
    with closing(sqlite3.connect(file.path, isolation_level=None)) as person:
        person.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(file.write(note("waits")))
        for _ in range(20):
            await asyncio.sleep(0)
            assert notes(file) == []
        assert not waiting.done()
        person.execute("COMMIT")
        await waiting
    assert notes(file) == ["waits"]


async def test_one_that_fails_alone_leaves_nothing(file: SqliteDatabase) -> None:
    def partly(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO notes VALUES ('half')")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        await file.write(partly)
    assert notes(file) == []
    await file.write(note("after"))
    assert notes(file) == ["after"]


async def test_one_that_fails_leaves_the_others(file: SqliteDatabase) -> None:
    def partly(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO notes VALUES ('half')")
        raise ValueError("no more")

    works = [note("a"), partly, note("a"), note("b")]
    found = await asyncio.gather(*map(file.write, works), return_exceptions=True)
    assert [type(each) for each in found] == [int, ValueError, sqlite3.IntegrityError, int]
    assert notes(file) == ["a", "b"]


async def test_trouble_with_the_file_is_everybodys(file: SqliteDatabase) -> None:
    def full(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    begun, go_on = threading.Event(), threading.Event()

    def slow(_: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait(300)

    gate = asyncio.create_task(file.write(slow, is_long=True))
    await asyncio.to_thread(begun.wait, 300)
    together = [asyncio.create_task(file.write(work)) for work in (note("a"), full, note("b"))]
    await asyncio.sleep(0)  # Each has begun, and waits for the transaction that is under way.
    go_on.set()
    await gate
    found = await asyncio.gather(*together, return_exceptions=True)
    assert {type(each) for each in found} == {FileUnavailable}
    assert notes(file) == []
    await file.write(note("after"))
    assert notes(file) == ["after"]


async def test_who_gives_up_waiting_does_not_stop_the_others(file: SqliteDatabase) -> None:
    tasks = [asyncio.create_task(file.write(note(f"{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [each for each in found[1::2] if each != 1] == []
    await file.write(note("last"))
    assert {f"{number}" for number in range(1, 20, 2)} <= set(notes(file))


async def test_a_reader_cannot_write(file: SqliteDatabase) -> None:
    with pytest.raises(FileUnavailable, match="readonly"):
        file.read("INSERT INTO notes VALUES ('x')", {})


async def test_a_file_that_is_closed(file: SqliteDatabase) -> None:
    asked = [asyncio.create_task(file.write(note(f"{number}"))) for number in range(50)]
    await asyncio.sleep(0)
    await file.close()
    assert await asyncio.gather(*asked) == [1] * 50
    with pytest.raises(FileUnavailable):
        await file.write(note("x"))
    with pytest.raises(FileUnavailable):
        file.read("SELECT 1", {})
    assert not file.path.with_name("book.db-wal").exists()


async def test_one_process_owns_a_file(file: SqliteDatabase) -> None:
    with pytest.raises(StoreUnusable, match=r"book\.db is in use by process \d+"):
        open_file(SqliteDatabase(file.path))
    await file.close()
    again = SqliteDatabase(file.path)
    open_file(again)
    await again.close()


@pytest.mark.parametrize("content", [b"this is no database, but long enough to look like one" * 30])
async def test_what_is_no_database(laundry: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "book.db"
    path.write_bytes(content)
    with pytest.raises(StoreUnusable, match="cannot be used as a database"):
        open_file(SqliteDatabase(path))
    assert path.read_bytes() == content
    path.unlink()
    # Nobody is left who holds it.
    again = SqliteDatabase(path)
    open_file(again)
    await again.close()


async def test_a_folder_in_its_place(laundry: Path, tmp_path: Path) -> None:
    (tmp_path / "book.db").mkdir()
    with pytest.raises(StoreUnusable):
        open_file(SqliteDatabase(tmp_path / "book.db"))


async def test_a_spoilt_page_is_trouble_with_the_file(laundry: Path, tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    async with Kit(path) as kit:
        for _ in range(200):
            await kit.bring(fabric="x" * 500)
        pages = [row[0] for row in kit.sql("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'shirts'")]
        (size,) = kit.sql("PRAGMA page_size")[0]
    content = bytearray(path.read_bytes())
    for page in filter(None, pages):
        content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)
    async with Kit(path) as kit:
        with pytest.raises(Exception, match="the book cannot be written"):
            await kit.shirts.find()
        with pytest.raises(Exception, match="the book cannot be written"):
            await kit.bring()


class Steps:
    """Migrations that a test makes up."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def apply(self, *texts: str) -> None:
        steps = [
            FileMigration(number, f"{number:04}_x.sql", text) for number, text in enumerate(texts, 1) if text
        ]
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            migrate(connection, "made_up", steps)
        finally:
            connection.close()

    def tables(self) -> list[str]:
        connection = sqlite3.connect(self.path)
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 't%'")
        found = [row[0] for row in names.fetchall()]
        connection.close()
        return found


@pytest.fixture
def steps(tmp_path: Path) -> Steps:
    return Steps(tmp_path / "steps.db")


def test_each_step_is_made_once(steps: Steps) -> None:
    steps.apply("CREATE TABLE t1 (a);")
    steps.apply("CREATE TABLE t1 (a);", "CREATE TABLE t2 (a);\nINSERT INTO t2 VALUES (1);")
    steps.apply("CREATE TABLE t1 (a);", "CREATE TABLE t2 (a);\nINSERT INTO t2 VALUES (1);")
    assert steps.tables() == ["t1", "t2"]


def test_a_step_is_made_as_a_whole_or_not_at_all(steps: Steps) -> None:
    with pytest.raises(StoreUnusable, match="does not fit this file"):
        steps.apply("CREATE TABLE t1 (a);", "CREATE TABLE t2 (a);\nINSERT INTO nowhere VALUES (1);")
    assert steps.tables() == ["t1"]


def test_a_step_that_was_edited_or_came_late_is_refused(steps: Steps) -> None:
    steps.apply("CREATE TABLE t1 (a);", "", "CREATE TABLE t3 (a);")
    with pytest.raises(StoreUnusable, match="never edited"):
        steps.apply("CREATE TABLE t1 (b);", "", "CREATE TABLE t3 (a);")
    with pytest.raises(StoreUnusable, match="older than"):
        steps.apply("CREATE TABLE t1 (a);", "CREATE TABLE t2 (a);", "CREATE TABLE t3 (a);")


def test_a_file_that_is_ahead_is_left_as_it_is(steps: Steps) -> None:
    steps.apply("CREATE TABLE t1 (a);", "CREATE TABLE t2 (a);")
    steps.apply("CREATE TABLE t1 (a);")
    assert steps.tables() == ["t1", "t2"]


def test_a_system_that_was_never_accepted_has_its_schema(laundry: Path) -> None:
    (only,) = read_migrations("laundry")
    assert only.text == (laundry / "sqlite/schema.sql").read_text()
