"""Migrations: the same schema as a fresh one, once, in any number of processes; derived where that can be."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from codegen import migrations as derived
from codegen.emit.postgres import postgres_files
from codegen.emit.postgres.postgres_entity import KeptEntity
from codegen.language.lifecycle import Entity
from codegen.language.storage import StorageFile
from codegen.language.storage.tables import PostgresStorage, SqliteStorage, Tables
from codegen.language.types import MessageField
from codegen.source.loader import examine
from codegen.source.spec import Spec
from generated.orchestrator.messages import CREATED, QUEUED, SUCCESS
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.stores.contract import LeaseProof
from runtime.stores.postgres import Database
from runtime.stores.postgres.schema import migrations
from runtime.stores.postgres.schema.migrations import Migration, MigrationError, migrate
from runtime.stores.postgres.statements import Statement, parse_statements
from tests.runtime.stores.postgres.kit import WORLD, Kit, arguments

ROOT = Path(__file__).parents[5]
SYSTEM = "orchestrator"

CATALOGUE = {
    "columns": "SELECT table_name, column_name, data_type, is_nullable, column_default FROM"
    " information_schema.columns WHERE table_schema = 'public' AND table_name <> 'charter_migrations'",
    "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'charter_migrations'"
    " AND contype <> 'n'",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
    " AND tablename <> 'charter_migrations'",
    "triggers": "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "functions": "SELECT proname, prosrc, proconfig::text FROM pg_proc"
    " WHERE pronamespace = 'public'::regnamespace",
    "settings": "SELECT relname, reloptions::text FROM pg_class WHERE relkind = 'r'"
    " AND relnamespace = 'public'::regnamespace AND relname <> 'charter_migrations'",
}


@pytest.fixture(scope="module")
def spec() -> Spec:
    found, _ = examine(ROOT / "spec" / SYSTEM, ROOT)
    assert found is not None
    return found


async def catalogue(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All that a database knows of its schema."""
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    try:
        return {
            what: sorted(tuple(row) for row in await connection.fetch(text))
            for what, text in CATALOGUE.items()
        }
    finally:
        await connection.close()


async def execute(url: str, *texts: str) -> None:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    try:
        for text in texts:
            await connection.execute(text)
    finally:
        await connection.close()


async def of_schema(url: str, spec: Spec) -> dict[str, list[tuple[Any, ...]]]:
    """The catalogue of a fresh database of a spec."""
    await execute(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public", postgres_files.schema(spec))
    return await catalogue(url)


@pytest.mark.req("ORC-035", "ORC-051")
async def test_migrations_lead_to_the_schema(fresh_url: str, spec: Spec) -> None:
    """A database that went through all of them has the same catalogue as one made from schema.sql."""
    database = Database(fresh_url)
    applied = await migrate(database, SYSTEM)
    assert applied == [each.name for each in migrations.list_migrations(SYSTEM)]
    assert applied[0] == "0001_initial.sql"
    await database.close()
    migrated = await catalogue(fresh_url)
    assert migrated == await of_schema(fresh_url, spec)


def test_the_last_migration_leads_to_the_spec_as_it_is(spec: Spec) -> None:
    (*_, last) = migrations.list_migrations(SYSTEM)
    assert derived.compute_schema_digest(spec) in last.text.partition("\n")[0]


@pytest.mark.req("ORC-051")
async def test_processes_that_start_together_migrate_once(fresh_url: str) -> None:
    databases = [Database(fresh_url) for _ in range(6)]
    applied = await asyncio.gather(*(migrate(each, SYSTEM) for each in databases))
    assert sorted(map(len, applied)) == [0, 0, 0, 0, 0, len(migrations.list_migrations(SYSTEM))]
    assert await migrate(databases[0], SYSTEM) == []
    for each in databases:
        await each.close()


@pytest.mark.req("ORC-035", "ORC-036", "ORC-037", "ORC-041", "ORC-042", "ORC-043", "ORC-108")
async def test_the_table_is_what_the_requirements_say(kit: Kit) -> None:
    rows = await kit.sql.fetch(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 'jobs'"
    )
    assert {tuple(row) for row in rows} == {
        ("job_id", "uuid", "NO"),
        ("job_type", "text", "NO"),
        ("payload", "jsonb", "NO"),
        ("idempotency_key", "text", "NO"),
        ("state", "text", "NO"),
        ("retry_count", "integer", "NO"),
        ("attempt", "integer", "NO"),
        ("lease_owner", "text", "YES"),
        ("lease_expiry", "timestamp with time zone", "YES"),
        ("next_attempt_at", "timestamp with time zone", "YES"),
        ("created_at", "timestamp with time zone", "NO"),
        ("updated_at", "timestamp with time zone", "NO"),
        ("result", "jsonb", "YES"),
        ("last_error", "text", "YES"),
    }
    keys = await kit.sql.fetch(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = 'jobs'::regclass AND contype IN ('p', 'u') ORDER BY 1"
    )
    assert [row[0] for row in keys] == ["PRIMARY KEY (job_id)", "UNIQUE (idempotency_key)"]


async def test_what_was_applied_is_never_edited(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(fresh_url)
    known = [Migration(1, "0001_a.sql", "CREATE TABLE a ()"), Migration(3, "0003_c.sql", "CREATE TABLE c ()")]
    monkeypatch.setattr(migrations, "list_migrations", lambda _: known)
    assert await migrate(database, "any") == ["0001_a.sql", "0003_c.sql"]
    known[0] = Migration(1, "0001_a.sql", "CREATE TABLE other ()")
    with pytest.raises(MigrationError, match="never edited"):
        await migrate(database, "any")
    known[:] = [*known[1:], Migration(2, "0002_b.sql", "CREATE TABLE b ()")]
    with pytest.raises(MigrationError, match="older than"):
        await migrate(database, "any")
    known[:] = known[:0]
    assert await migrate(database, "any") == []
    await database.close()


async def test_a_migration_that_fails_leaves_nothing(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(fresh_url)
    known = [Migration(1, "0001_a.sql", "CREATE TABLE a ()"), Migration(2, "0002_b.sql", "CREATE TABLE a ()")]
    monkeypatch.setattr(migrations, "list_migrations", lambda _: known)
    with pytest.raises(MigrationError, match="0002_b"):
        await migrate(database, "any")
    known.pop()
    assert await migrate(database, "any") == ["0001_a.sql"]
    await database.close()


async def test_the_command_migrates(fresh_url: str) -> None:
    def run(*words: str, **variables: str) -> tuple[int, str]:
        environment = {**os.environ, **variables}
        done = subprocess.run(
            [sys.executable, "-m", "runtime.stores.postgres", *words],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    code, said = run("migrate", SYSTEM, DATABASE_URL=fresh_url)
    assert (code, "0001_initial.sql" in said) == (0, True)
    assert run("migrate", SYSTEM, DATABASE_URL=fresh_url) == (0, "DATABASE_URL: nothing to do\n")
    assert run("migrate", SYSTEM, DATABASE_URL="")[0] == 2
    assert run("migrate", "no_such_system")[0] == 2
    assert run("dance")[0] == 2
    code, said = run("migrate", SYSTEM, DATABASE_URL="postgresql://a:secret@127.0.0.1:1/x")
    assert code == 1
    assert "secret" not in said


def changed(spec: Spec, fields: Mapping[str, MessageField] | None = None, **entity: Any) -> Spec:
    """A spec with other fields in the record, or with other words for its entity."""
    (name, row), *_ = spec.lifecycle.entities.items()
    new: Entity = row.model_copy(update=entity)
    types = spec.types
    if fields is not None:
        root = dict(types.root)
        proto = spec.proto_of[row.record]
        message = root[proto].messages[row.record].model_copy(update={"fields": fields})
        messages = {**root[proto].messages, row.record: message}
        root[proto] = root[proto].model_copy(update={"messages": messages})
        types = types.model_copy(update={"root": root})
    lifecycle = spec.lifecycle.model_copy(update={"entities": {name: new}})
    return replace(spec, lifecycle=lifecycle, types=types).at_home()


def named(spec: Spec, table: str) -> Spec:
    """A spec with another table."""
    names = PostgresStorage(entities={"job": Tables(table=table, history="job_transitions")})
    return replace(spec, storage=StorageFile(postgres=names)).at_home()


def elsewhere(spec: Spec) -> Spec:
    """A spec with the entity in a file."""
    return replace(spec, storage=StorageFile(sqlite=SqliteStorage())).at_home()


def older_forms(spec: Spec) -> dict[str, Spec]:
    """Specs from which the present one follows by a change that can be derived."""
    entity = spec.lifecycle.entities["job"]
    fields = spec.messages[entity.record].fields
    transitions = dict(entity.transitions)
    fewer = {name: row for name, row in transitions.items() if name != "bury"}
    fewer = {name: row.model_copy(update={"dead_letter": None}) for name, row in fewer.items()}
    takes_nothing = {
        **transitions,
        "complete": transitions["complete"].model_copy(update={"from_request": {}}),
    }
    other_actors = {**transitions, "fail": transitions["fail"].model_copy(update={"by": ("worker",)})}
    unswept = {**transitions, "requeue": transitions["requeue"].model_copy(update={"due": None})}
    return {
        "column": changed(
            spec, {name: row for name, row in fields.items() if name != "result"}, transitions=takes_nothing
        ),
        "edge": changed(spec, transitions=fewer),
        "actor": changed(spec, transitions=other_actors),
        "index": changed(spec, transitions=unswept),
        "listing": changed(spec, listed_by=None),
        "nothing": spec,
    }


@pytest.mark.parametrize("name", ["column", "edge", "actor", "index", "listing", "nothing"])
async def test_what_can_be_derived_leads_to_the_new_schema(fresh_url: str, spec: Spec, name: str) -> None:
    old = older_forms(spec)[name]
    steps, problems = derived.derive_migration(old, spec)
    assert problems == []
    assert bool(steps) == (name != "nothing")
    await of_schema(fresh_url, old)
    await execute(fresh_url, *steps)
    migrated = await catalogue(fresh_url)
    assert migrated == await of_schema(fresh_url, spec)


@pytest.mark.parametrize("name", ["column", "edge", "actor", "index", "listing"])
async def test_the_old_release_works_on_the_new_schema(fresh_url: str, spec: Spec, name: str) -> None:
    """Nodes of both releases run beside each other while one replaces the other."""
    old = older_forms(spec)[name]
    await of_schema(fresh_url, old)
    await execute(fresh_url, *derived.derive_migration(old, spec)[0])
    entity = KeptEntity(old, "job", old.lifecycle.entities["job"])
    known = parse_statements("\n".join(postgres_files.statements(old, entity)))
    connection: asyncpg.Connection[Any] = await asyncpg.connect(fresh_url)

    async def run(statement: str, **given: Any) -> list[Any]:
        each: Statement = known[statement]
        found: list[Any] = await connection.fetch(each.text, *arguments(each, given))
        return found

    try:
        keys = [WORLD.new_id(), WORLD.new_id()]
        given = {"job_id": keys, "job_type": ["a"] * 2, "payload": ["{}"] * 2, "idempotency_key": keys}
        await run("create", actor="api", **{f"record_{name}": values for name, values in given.items()})
        await connection.execute("UPDATE jobs SET state = 'QUEUED'")
        start = await connection.fetchval("SELECT min(created_at) FROM jobs")
        taken = await run("claim", actor="worker", owner="w", free=2, absent=[], **{"from": start})
        assert len(taken) == 2
        fenced = {"owners": ["w"], "fences": [1]}
        assert await run("settle_complete", actor="worker", keys=keys[:1], **fenced, given_result=[None])
        assert await run("settle_release", actor="worker", keys=keys[1:], **fenced, given_last_error=["e"])
        assert len(await run("get", key=keys[0])) == 1
    finally:
        await connection.close()


def test_what_no_rule_can_decide_is_listed(spec: Spec) -> None:
    """Lost columns and states, other types, new duties: a person says what becomes of the rows."""
    entity = spec.lifecycle.entities["job"]
    fields = spec.messages[entity.record].fields
    needed = fields["job_type"]
    cases = {
        "job_type is gone": changed(spec, {name: row for name, row in fields.items() if name != "job_type"}),
        "needs a value": changed(spec, {**fields, "owner": needed.model_copy(update={"number": 99})}),
        "becomes bigint": changed(
            spec, {**fields, "attempt": fields["attempt"].model_copy(update={"type": "uint64"})}
        ),
        "may no longer be absent": changed(
            spec, {**fields, "last_error": fields["last_error"].model_copy(update={"optional": False})}
        ),
        "its table was jobs": named(spec, "work"),
        "jobs_unique": changed(spec, unique=("job_type",)),
        "is kept no longer": elsewhere(spec),
    }
    for said, new in cases.items():
        _, problems = derived.derive_migration(spec, new)
        assert any(said in each for each in problems), (said, problems)


def test_the_next_migration_is_written_when_a_spec_is_accepted(tmp_path: Path, spec: Spec) -> None:
    """The first has everything; the next only what changed; one that is there already is left alone."""
    old = older_forms(spec)["column"]
    first = derived.write_next(tmp_path, None, old, "")
    assert first is not None
    assert first.name == "0001_initial.sql"
    assert derived.write_next(tmp_path, None, old, "") is None
    second = derived.write_next(tmp_path, old, spec, "Results are kept, too!")
    assert second is not None
    assert second.name == "0002_results_are_kept_too.sql"
    assert "ADD COLUMN result jsonb;" in second.read_text()
    assert derived.write_next(tmp_path, old, spec, "again") is None


def test_what_a_person_must_write_is_asked_for_and_then_taken(tmp_path: Path, spec: Spec) -> None:
    fields = spec.messages["JobRow"].fields
    new = changed(spec, {name: row for name, row in fields.items() if name != "job_type"})
    derived.write_next(tmp_path, None, spec, "")
    with pytest.raises(derived.MigrationNotDerivable, match="job_type is gone") as caught:
        derived.write_next(tmp_path, spec, new, "No types")
    path = tmp_path / "spec/migrations/orchestrator/0002_no_types.sql"
    assert str(path.relative_to(tmp_path)) in str(caught.value)
    path.write_text(
        f"-- Leads to the schema sha256:{derived.compute_schema_digest(new)}.\nALTER TABLE jobs …;\n"
    )
    assert derived.write_next(tmp_path, spec, new, "No types") is None


@pytest.mark.req("ORC-002", "ORC-050")
async def test_the_table_alone_is_enough(kit: Kit, server: EmbeddedPostgres, fresh_url: str) -> None:
    """Dumped and restored elsewhere, open entities go on and known keys are still known."""
    done, waiting = await kit.add(SUCCESS, key="done"), await kit.add(QUEUED, key="waiting")
    from runtime.launch.embedded.programs import program

    dump = subprocess.run(
        [str(program("pg_dump")), "--no-owner", kit.url], capture_output=True, check=True, text=True
    ).stdout
    restored = subprocess.run(
        [str(program("psql")), "-v", "ON_ERROR_STOP=1", "-q", fresh_url],
        input=dump,
        capture_output=True,
        text=True,
        check=False,
    )
    assert restored.returncode == 0, restored.stderr
    other = await Kit(fresh_url).open()
    try:
        taken = await other.claim("w", other.call("worker"))
        assert taken is not None
        assert taken.job_id == waiting.job_id
        await other.settle(taken.job_id, SUCCESS, LeaseProof("w", 1), other.call("worker"))
        found, new = await other.create_or_find(other.intent("done"), other.call("api"))
        assert (found.job_id, new, found.state) == (done.job_id, False, SUCCESS)
        assert CREATED not in {(await other.job(each.job_id)).state for each in (done, waiting)}
    finally:
        await other.close()
