"""No name of a field stands in the way of what a store does: each word that a store uses is tried as one."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from codegen.emit.sql.names import RESERVED
from handlers.priority.manager_lease_store import ManagerLeaseStore
from runtime.call.conditions import Condition
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.stores.contract import EntityStore, LeaseProof, LeaseSettlement
from runtime.stores.memory import MemoryStore
from runtime.stores.postgres import PostgresStore
from runtime.stores.redis import RedisStore
from runtime.stores.s3.store import S3Store
from runtime.stores.sqlite import SqliteStore
from tests.support.specs.harbour import FIELDS, WORLD, Quay, harbour, new_database, quays
from tests.support.specs.reserved_words import SQLITE_KEYWORDS, fields_of, texts_below, words_of

IN_ONE_ROW = 350
"""So many further fields at a time: a row of PostgreSQL has to fit into a page."""
IN_ONE_CALL = 75
"""The same where a function that creates entities takes each of them: PostgreSQL allows it 100."""

BUILTINS = ("self", "cls", "str", "int", "bool", "float", "bytes")
TAKE_FIELDS = (
    EntityStore,
    *(MemoryStore, PostgresStore, RedisStore, SqliteStore, S3Store, ManagerLeaseStore),
)
"""What is given fields by their names, which a spec chooses."""
MANY = 20
"""Of more fields than this, one is enough to show that a listing goes by each."""


async def words(root: Path, server: EmbeddedPostgres, *, at_once: bool = False) -> list[str]:
    """What the stores of the harbour say, what its Python says, and the keywords of both databases."""
    with harbour(root, "harbour_words", at_once=at_once):
        found = words_of(texts_below(root / "generated/harbour_words", ".sql"))
    connection: asyncpg.Connection[Any] = await asyncpg.connect(server.url)
    try:
        rows = await connection.fetch("SELECT word FROM pg_get_keywords()")
    finally:
        await connection.close()
    assert {"size", "states", "since", "until", "now", "number", "after", "entities", "ctid"} <= found
    return sorted({*found, *fields_of(row[0] for row in rows), *fields_of(SQLITE_KEYWORDS), *BUILTINS})


async def test_every_word_in_both_databases(tmp_path: Path, shared_postgres: EmbeddedPostgres) -> None:
    found = await words(tmp_path / "words", shared_postgres)
    for start in range(0, len(found), IN_ONE_ROW):
        more, name = found[start : start + IN_ONE_ROW], f"harbour_more_{start}"
        with harbour(tmp_path / name, name, more=more):
            async with (
                new_database(shared_postgres) as url,
                quays(name, tmp_path / f"{name}.db", url) as stores,
            ):
                for quay in (stores["crate"], stores["barge"]):
                    await live(quay, [each for each in more if each not in quay.usual])


async def test_every_word_where_entities_are_created_by_a_function(
    tmp_path: Path, shared_postgres: EmbeddedPostgres
) -> None:
    """In a function of PostgreSQL a variable can be mistaken for a column."""
    found = await words(tmp_path / "words", shared_postgres, at_once=True)
    for start in range(0, len(found), IN_ONE_CALL):
        more = found[start : start + IN_ONE_CALL]
        name = f"harbour_at_once_{start}"
        with harbour(tmp_path / name, name, more=more, at_once=True):
            async with (
                new_database(shared_postgres) as url,
                quays(name, tmp_path / f"{name}.db", url) as stores,
            ):
                barge = stores["barge"]
                given = {each: f"the {each}" for each in more if each not in barge.usual}
                asked = [barge.make(**given), barge.make(**given)]
                store = barge.store
                takes = store._statements["create_look"].takes
                values = {
                    each: [getattr(one, each.removeprefix("record_")) for one in asked]
                    for each in takes
                    if each != "actor"
                }
                assert (await store._run("create_look", actor="quay", **values))[0][0] is None
                known = (await store._run("create_look", actor="quay", **values))[0][0]
                assert [str(each) for each in known] == [each.crate_id for each in asked]
                (lifted,) = await store.claim("c1", 1, barge.call)
                assert {each: getattr(lifted, each) for each in given} == given


async def test_every_word_of_the_stores_in_a_part_of_its_own(
    tmp_path: Path, shared_postgres: EmbeddedPostgres
) -> None:
    """As a key, a state, an owner, a fence, a time, a count: whatever a field is there for."""
    with harbour(tmp_path / "words", "harbour_words"):
        texts = texts_below(tmp_path / "words/generated/harbour_words", ".sql")
    usual = sorted(FIELDS)
    found = sorted(words_of(texts) - RESERVED - {*usual})
    for start in range(0, len(found), len(usual)):
        part = found[start : start + len(usual)]
        # The last ones are too few for all parts; the first have to do once more, in other parts.
        part += found[: len(usual) - len(part)]
        names, name = dict(zip(usual, part, strict=True)), f"harbour_parts_{start}"
        with harbour(tmp_path / name, name, names):
            async with (
                new_database(shared_postgres) as url,
                quays(name, tmp_path / f"{name}.db", url, names) as stores,
            ):
                for quay in (stores["crate"], stores["barge"]):
                    await live(quay, [])


@pytest.mark.parametrize("word", ["final", "edge"])
async def test_what_is_given_to_an_edge_may_have_the_name_of_anything_else_that_it_is_told(
    tmp_path: Path, shared_postgres: EmbeddedPostgres, word: str
) -> None:
    names, name = {"remark": word}, f"harbour_{word}"
    with harbour(tmp_path / name, name, names):
        async with (
            new_database(shared_postgres) as url,
            quays(name, tmp_path / f"{name}.db", url, names) as stores,
        ):
            for quay in (stores["crate"], stores["barge"]):
                await live(quay, [])


@pytest.mark.parametrize("kind", TAKE_FIELDS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_beside_fields_by_name_all_else_is_told_by_its_place(kind: type) -> None:
    """Whatever a spec calls a field, no parameter of a method has that name for its caller."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        kinds = {each.name: each.kind for each in inspect.signature(method).parameters.values()}
        if inspect.Parameter.VAR_KEYWORD in kinds.values() and not name.startswith("_"):
            by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_KEYWORD)
            assert [each for each, kind_of in kinds.items() if kind_of not in by_place] == [], name


def test_a_condition_may_have_a_field_of_any_name() -> None:
    fields = {"message": "a", "self": "b"}
    assert Condition("words", **fields).fields == fields


async def live(quay: Quay, more: list[str]) -> None:
    """Create, find, move, claim, settle and delete; every field has its own value all the time."""
    store, words, remark = quay.store, quay.words, quay.name("remark")
    given = {
        **{quay.name(each): f"the {each}" for each in ("kind", "queue", "note")},
        **{each: f"the {each}" for each in more},
    }

    def check(record: Any) -> None:
        assert {each: getattr(record, each) for each in given} == given

    def lease(record: Any) -> LeaseProof:
        return LeaseProof(quay.get(record, "crane"), quay.get(record, "lifts"))

    made = (await store.create(quay.record(**{**fields_with(quay), **given}), quay.call)).record
    other = (await store.create(quay.make(), quay.call)).record
    key, label = quay.get(made, "crate_id"), quay.get(made, "label")
    check(made)
    check((await store.create(quay.make(label=label), quay.call)).record)
    check(await store.get(key))
    assert (await store.find(equal=given)).records == [made]
    for each in given:
        assert (await store.find(equal={**given, each: "another"})).records == []
        if len(given) > MANY:
            break
    page = await store.find(size=5, newest_first=False)
    assert {quay.get(each, "crate_id") for each in page.records} == {key, quay.get(other, "crate_id")}
    edge = store.edge_between(words.LANDED, words.READY, quay.call)
    assert (await store.transition(key, edge.name, quay.call, given={remark: "seen"})).applied
    (lifted,) = await store.claim("c1", 1, quay.call)
    check(lifted)
    assert await store.renew([(key, lease(lifted))]) != [None]
    drop = store.edge_between(words.LIFTED, words.SWAYING, quay.call).name
    dropped = await store.settle(LeaseSettlement(key, lease(lifted), drop, {remark: "oh"}), quay.call)
    assert dropped == words.SWAYING
    quay.pass_time()
    assert await store.run_due("settle_down", quay.call) == 1
    (again,) = await store.claim("c2", 1, quay.call)
    check(again)
    ship = store.edge_between(words.LIFTED, words.SHIPPED, quay.call).name
    settlement = LeaseSettlement(key, lease(again), ship, {remark: "away"})
    assert (await store.exchange("c2", [settlement], 0, quay.call)).outcomes == [words.SHIPPED]
    shipped = await store.get(key)
    check(shipped)
    assert [quay.get(shipped, each) for each in ("remark", "lifts", "drops")] == ["away", 2, 1]
    assert [each.target for each in await store.history(key)][-1] == words.SHIPPED
    quay.pass_time()
    assert await store.purge(0.0, quay.call) == 1
    assert await store.get(key) is None


def fields_with(quay: Quay) -> dict[str, Any]:
    """A new key and a new label under the names that they have."""
    return {quay.name(each): WORLD.new_id() for each in ("crate_id", "label")}
