"""What Redis has forgotten is read back as it was."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from generated.priority.lifecycle import TASK
from generated.priority.messages import COMPLETED, HIGH, LOW
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.postgres.database import PostgresUnavailable
from runtime.stores.postgres.schema.migrations import find_missing, migrate
from tests.runtime.stores.history.kit import PATH, Kit, stored


async def test_a_record_comes_back_as_it_was(kit: Kit) -> None:
    """Types, times to the microsecond, JSON to the letter, and what was not set is unset."""
    await kit.live("a")
    kit.begin()
    await kit.emptied()
    record = await kit.reader.get("a")
    assert record is not None
    assert (record.task_id, record.status, record.priority, record.effective_priority) == (
        "a",
        COMPLETED,
        LOW,
        HIGH,
    )
    assert record.created_at == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
    assert record.required_capabilities == ("gpu", "ssd")
    assert record.parameters == stored("a", "", "")["parameters"]
    assert (record.retriable, record.error, record.available_at, record.changes) == (True, None, None, 5)
    changes = await kit.reader.history("a")
    numbers = {word: number for number, word in TASK.require_storage(KeptInRedis).words["status"].items()}
    states = [numbers[word] for word in PATH]
    assert [(each.source, each.target) for each in changes] == [*zip((None, *states), states, strict=False)]
    assert (changes[4].owner, changes[4].fence, changes[4].trace) == ("w-1", 2, "trace of a")


async def test_what_could_still_go_on_was_deleted(kit: Kit) -> None:
    """Redis keeps dead letters until somebody purges them; nobody is shown a purged one."""
    await kit.live("a", ("queued", "executing", "dead_letter"))
    kit.begin()
    await kit.emptied()
    assert await kit.reader.get("a") is None
    assert len(await kit.reader.history("a")) == 3


@pytest.mark.parametrize(
    "key", ["unknown", "", "a\0b", "\udcff", "'; DROP TABLE task_changes; --", "x" * 100_000]
)
async def test_nobody_knows_of_it(kit: Kit, key: str) -> None:
    """A key that is nobody's, or can be nobody's, has no history; the database is not shown hostile ones."""
    assert await kit.reader.get(key) is None
    assert await kit.reader.history(key) == []


@pytest.mark.req("PQ-251")
async def test_the_tables_are_made_once_by_whoever_comes_first(kit: Kit) -> None:
    """Migrations run twice do nothing the second time."""
    assert await migrate(kit.database, "priority")
    assert await migrate(kit.database, "priority") == []
    assert await find_missing(kit.database, "priority") == []
    assert await kit.reader.get("a") is None


async def test_without_the_database_nobody_can_say(
    redis_server: EmbeddedRedis, postgres: EmbeddedPostgres
) -> None:
    """Whoever asks is told so, and not that there is none."""
    kit = Kit(redis_server.url, "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(PostgresUnavailable):
        await kit.reader.get("a")
    await kit.close()
