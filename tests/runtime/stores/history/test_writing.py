"""Every change in the stream becomes one row, whatever happens to writers, database and entries."""

from __future__ import annotations

import json

import pytest

from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.history import stream as streams
from runtime.stores.history import writer as writers
from runtime.stores.history.stream import GROUP, OutboxStream
from tests.runtime.stores.history.kit import PATH, STREAM, Kit, entry, together
from tests.support.eventually import eventually

CHANGES = "SELECT * FROM task_changes WHERE task_id = $1 ORDER BY sequence"


@pytest.mark.req("PQ-248")
async def test_each_change_is_a_row_with_everything_that_is_known(kit: Kit) -> None:
    """A life with a retry is five rows; the stream is empty afterwards."""
    await kit.live("a")
    kit.begin()
    await kit.emptied()
    rows = await kit.rows(CHANGES, "a")
    assert [row["to_state"] for row in rows] == [*PATH]
    assert [row["from_state"] for row in rows] == [None, *PATH[:-1]]
    assert [row["sequence"] for row in rows] == [1, 2, 3, 4, 5]
    told = ("fence", "owner", "reason", "trace", "actor")
    assert [rows[2][name] for name in told] == [1, "w-1", "timeout", "trace of a", "worker"]
    assert await kit.redis.xpending(STREAM, GROUP) == {
        "pending": 0,
        "min": None,
        "max": None,
        "consumers": [],
    }


async def test_the_changes_of_one_entry_are_as_those_of_many(kit: Kit) -> None:
    """Each is a row with all that is known of it, and those that ended have their records."""
    names = [f"task {number}" for number in range(30)]
    await kit.redis.xadd(STREAM, together(*(entry(name, 1, "queued", "executing") for name in names)))
    await kit.redis.xadd(STREAM, together(*(entry(name, 2, "executing", "completed") for name in names)))
    kit.begin()
    await kit.emptied()
    for name in names:
        begun, done = await kit.rows(CHANGES, name)
        assert (begun["from_state"], begun["to_state"], begun["fence"]) == ("queued", "executing", 0)
        assert (done["to_state"], done["owner"], done["trace"]) == ("completed", "w-1", f"trace of {name}")
    ended = await kit.rows("SELECT task_id, status, task_type FROM ended_tasks")
    assert {row["task_id"] for row in ended} == {*names}
    assert {(row["status"], row["task_type"]) for row in ended} == {("completed", "report")}


async def test_of_the_changes_of_one_entry_each_is_refused_by_itself(kit: Kit) -> None:
    """One that no table takes is set aside as an entry of its own; the others are written."""
    made = [entry(name, 2, "executing", "completed") for name in "abcd"]
    made[1]["fence"] = str(2**70)
    made[2]["sequence"] = "many"
    await kit.redis.xadd(STREAM, together(*made))
    await kit.redis.xadd(STREAM, {**together(*made), "rows": "no rows"})
    kit.begin()
    await kit.emptied()
    aside = [fields or {} for _, fields in await kit.redis.xrange(f"{STREAM}:refused") or ()]
    assert sorted(str(fields.get("key")) for fields in aside) == ["None", "b", "c"]
    assert [len(await kit.rows(CHANGES, name)) for name in "abcd"] == [1, 0, 0, 1]


async def test_what_was_written_before_is_the_same_row(kit: Kit) -> None:
    """An entry that comes again, from a writer that died after its commit, changes nothing."""
    await kit.live("a")
    kit.begin()
    await kit.emptied()
    first = await kit.rows(CHANGES, "a")
    await kit.redis.xadd(STREAM, {**entry("a", 3, "completed", "failed"), "reason": "another"})
    await kit.emptied()
    assert await kit.rows(CHANGES, "a") == first


async def test_the_latest_record_stands(kit: Kit) -> None:
    """A dead letter that was replayed and then done is done, in whatever order entries come."""
    await kit.live("a", ("queued", "executing", "dead_letter"))
    await kit.redis.xadd(STREAM, entry("a", 6, "executing", "completed", task_type="late"))
    await kit.redis.xadd(STREAM, entry("a", 5, "queued", "failed", task_type="early"))
    kit.begin()
    await kit.emptied()
    await kit.redis.xadd(STREAM, entry("a", 3, "executing", "dead_letter", task_type="again"))
    await kit.emptied()
    (row,) = await kit.rows("SELECT task_type, status, changes FROM ended_tasks")
    assert (row["task_type"], row["status"], row["changes"]) == ("late", "completed", 6)


async def test_entries_that_cannot_be_written_do_not_stand_in_the_way(kit: Kit) -> None:
    """They are set aside with the reason; the others of the batch are written."""
    await kit.live("before")
    await kit.redis.xadd(STREAM, {"nonsense": "yes"})
    await kit.redis.xadd(STREAM, {**entry("b", 1, "", "queued"), "entity": "worker"})
    await kit.redis.xadd(STREAM, {**entry("c", 1, "", "queued"), "sequence": "many"})
    await kit.redis.xadd(STREAM, {**entry("d", 1, "", "queued"), "fence": str(2**70)})
    await kit.redis.xadd(STREAM, {**entry("e", 1, "", "completed"), "record": "not JSON"})
    await kit.redis.xadd(STREAM, entry("f", 1, "", "completed", result="{broken"))
    await kit.redis.xadd(STREAM, entry("g", 1, "", "completed", parameters="[" * 100_000 + "]" * 100_000))
    await kit.redis.xadd(
        STREAM, entry("h", 1, "", "completed", error="a\0b \udcff".encode(errors="replace").decode())
    )
    await kit.live("after")
    kit.begin()
    await kit.emptied()
    await kit.stop_all()  # It tells and counts after it has emptied the stream.
    aside = [fields or {} for _, fields in await kit.redis.xrange(f"{STREAM}:refused") or ()]
    assert sorted(str(fields.get("key")) for fields in aside) == ["None", *"bcdefg"]
    assert all(fields["refused"] for fields in aside)
    # Where it is only the record that the database does not take, the change has its row all the same.
    written = [len(await kit.rows(CHANGES, key)) for key in ("before", "after", *"bcdefgh")]
    assert written == [5, 5, 0, 0, 0, 0, 1, 1, 1]
    ((error,),) = await kit.rows("SELECT error FROM ended_tasks WHERE task_id = 'h'")
    assert error == "a\N{REPLACEMENT CHARACTER}b ?"
    assert len(kit.lines.read_back("history_refused")) == 7
    assert kit.metrics.registry.get_sample_value("charter_history_refused_total", {"entity": "task"}) == 7
    assert kit.metrics.registry.get_sample_value("charter_history_changes_total", {"entity": "task"}) == 13


async def test_two_writers_share_the_stream(kit: Kit) -> None:
    """No row is missing and none is there twice, and both of them worked."""
    tasks = [f"t{number}" for number in range(400)]
    for key in tasks:
        await kit.live(key)
    kit.begin()
    kit.begin()
    await kit.emptied()
    rows = await kit.rows(
        "SELECT task_id, array_agg(sequence ORDER BY sequence) AS all FROM task_changes GROUP BY 1"
    )
    assert {row["task_id"]: row["all"] for row in rows} == {key: [1, 2, 3, 4, 5] for key in tasks}
    assert len(await kit.rows("SELECT 1 FROM ended_tasks")) == len(tasks)


async def test_what_a_dead_writer_had_taken_another_takes(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry belongs to who took it for a while, and then to whoever is there."""
    monkeypatch.setattr(streams, "ABANDONED_MS", 100)
    monkeypatch.setattr(writers, "MAINTENANCE_S", 0.2)
    monkeypatch.setattr(streams, "BLOCK_MS", 50)
    dead = OutboxStream(kit.redis, STREAM, "dead")
    await dead.read(unfinished=False)
    await kit.live("a")
    assert len(await dead.read(unfinished=False)) == 5
    kit.begin()
    await kit.live("b")
    await kit.emptied()
    assert [len(await kit.rows(CHANGES, key)) for key in "ab"] == [5, 5]


async def test_dead_writers_are_forgotten_and_their_entries_are_not(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry that was taken and is with nobody any more is given out again."""
    monkeypatch.setattr(streams, "BLOCK_MS", 50)
    monkeypatch.setattr(streams, "DEAD_MS", -1)
    dead = OutboxStream(kit.redis, STREAM, "dead")
    await dead.read(unfinished=False)
    await kit.live("a")
    await dead.read(unfinished=False)
    await kit.redis.xgroup_delconsumer(STREAM, GROUP, "dead")
    idle = OutboxStream(kit.redis, STREAM, "idle")
    await idle.read(unfinished=False)
    monkeypatch.setattr(writers, "MAINTENANCE_S", 0.1)
    kit.begin()
    await kit.emptied()
    assert len(await kit.rows(CHANGES, "a")) == 5
    await eventually(
        lambda: kit.redis.xinfo_consumers(STREAM, GROUP),
        wanted=lambda consumers: "idle" not in {each["name"] for each in consumers},
    )
    await kit.stop_all()
    assert await kit.redis.xinfo_consumers(STREAM, GROUP) == []


async def test_what_somebody_deleted_is_passed_over(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that took an entry which is gone has nothing to write, and goes on."""
    monkeypatch.setattr(streams, "BLOCK_MS", 50)
    writer = kit.writer()
    await writer.step(kit.call)
    await kit.live("a", ("queued",))
    (taken,) = await OutboxStream(kit.redis, STREAM, "other").read(unfinished=False)
    await kit.redis.xdel(STREAM, taken.id)
    monkeypatch.setattr(streams, "ABANDONED_MS", 0)
    monkeypatch.setattr(writers, "MAINTENANCE_S", 0.1)
    kit.begin(writer)
    await kit.live("b")
    await kit.emptied()
    assert [len(await kit.rows(CHANGES, key)) for key in "ab"] == [0, 5]


async def test_a_flushed_redis_begins_anew(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the stream and its group the writer makes them again."""
    monkeypatch.setattr(streams, "BLOCK_MS", 50)
    monkeypatch.setattr(writers, "MAINTENANCE_S", 0.01)
    kit.begin()
    await kit.live("a")
    await kit.emptied()
    await kit.redis.flushall()
    await kit.live("b")
    await kit.emptied()
    assert [len(await kit.rows(CHANGES, key)) for key in "ab"] == [5, 5]


async def test_an_outage_of_redis_is_waited_out(kit: Kit, redis_server: EmbeddedRedis) -> None:
    """It is told once, and then the writer goes on."""
    await kit.live("a")
    kit.begin()
    await kit.emptied()
    redis_server.stop()
    await eventually(lambda: kit.lines.read_back("history_waits"))
    redis_server.start()
    await kit.redis.connection_pool.disconnect()
    await kit.live("b")
    await kit.emptied()
    assert len(await kit.rows(CHANGES, "b")) == 5
    assert len(kit.lines.read_back("history_waits")) == 1


async def test_old_history_is_taken_away_where_the_spec_says_so(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of an entity goes at once, some time after its end; what was replayed since stays."""
    monkeypatch.setattr(writers, "MAINTENANCE_S", 0.1)
    monkeypatch.setattr(streams, "BLOCK_MS", 50)
    long_ago = str(1_700_000_000 * 1_000_000)
    await kit.live("new")
    await kit.redis.xadd(STREAM, {**entry("old", 1, "", "completed"), "at": long_ago})
    await kit.redis.xadd(STREAM, {**entry("replayed", 1, "", "dead_letter"), "at": long_ago})
    await kit.redis.xadd(STREAM, entry("replayed", 2, "dead_letter", "queued"))
    kit.begin(kit.writer(HISTORY_RETENTION_SECONDS=3600))
    await kit.emptied()
    await eventually(
        lambda: kit.rows("SELECT 1 FROM ended_tasks WHERE task_id = 'old'"), wanted=lambda rows: not rows
    )
    assert [len(await kit.rows(CHANGES, key)) for key in ("new", "old", "replayed")] == [5, 0, 2]
    assert len(await kit.rows("SELECT 1 FROM ended_tasks")) == 2


async def test_large_records_are_taken_in_small_numbers(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in hand at a time has a bound in bytes, not only in number."""
    monkeypatch.setattr(streams, "BLOCK_MS", 50)
    monkeypatch.setattr(streams, "AT_ONCE_BYTES", 100_000)
    stream = OutboxStream(kit.redis, STREAM, "one")
    await stream.read(unfinished=False)
    for number in range(600):
        size = 20_000 if number >= 200 else 1
        await kit.redis.xadd(STREAM, {"entity": "task", b"record": b"x" * size})
    taken = []
    reader = OutboxStream(kit.writer_client(), STREAM, "one")
    while batch := await reader.read(unfinished=False):
        taken.append(len(batch))
    assert taken[:5] == [10, 20, 40, 80, 160]
    assert taken[-5:] == [10] * 5


async def test_the_record_of_the_stream_is_what_lua_makes(kit: Kit) -> None:
    """cjson writes a slash in its own way; what is read is what was there."""
    await kit.redis.hset("h", mapping={"task_id": "a", "error": 'https://x/"\u2028ü', "changes": "1"})
    text = await kit.redis.eval("return cjson.encode(redis.call('HGETALL', KEYS[1]))", 1, "h")
    assert json.loads(text)
    await kit.redis.xadd(STREAM, {**entry("a", 1, "", "failed"), "record": text})
    kit.begin()
    await kit.emptied()
    ((error,),) = await kit.rows("SELECT error FROM ended_tasks")
    assert error == 'https://x/"\u2028ü'
