"""The store in PostgreSQL as handlers see it: creation, moves, listings, history and purges."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from generated.orchestrator.messages import CREATED, DEAD, QUEUED, RETRY, RUNNING, SUCCESS
from runtime.call.conditions import Condition
from runtime.stores.contract import Transitioned
from runtime.stores.store import GuardBreach, NoSuchEntity, Unstorable
from tests.runtime.stores.postgres.conftest import MakeKit
from tests.runtime.stores.postgres.kit import STATES, Kit, unguarded
from tests.support.eventually import eventually

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.mark.req("ORC-021", "ORC-038", "ORC-041", "ORC-042", "ORC-046")
async def test_a_new_entity_is_as_it_was_given_and_stamped_by_the_database(kit: Kit) -> None:
    """What the caller says of state, counters and times is not taken; the clock is the database's."""
    payload = {"nested": {"unicode": "žluťoučký 🐎", "list": [1, 2.5, None]}, "big": 12345678901234567890}
    given = kit.intent(payload=json.dumps(payload), state=DEAD, attempt=9)
    before = await kit.sql.fetchval("SELECT clock_timestamp()")
    made, new = await kit.create_or_find(given, kit.call("api"))
    after = await kit.sql.fetchval("SELECT clock_timestamp()")
    assert new
    assert (made.job_id, made.job_type, made.state) == (given.job_id, "echo", CREATED)
    assert (made.retry_count, made.attempt, made.lease_owner, made.result) == (0, 0, None, None)
    assert json.loads(made.payload) == payload
    assert before <= made.created_at <= made.updated_at <= after
    assert await kit.store.get(made.job_id) == made


@pytest.mark.req("ORC-060", "ORC-074", "ORC-103", "ORC-104")
@pytest.mark.parametrize("state", STATES.values())
async def test_a_known_key_finds_what_it_was_given_first(kit: Kit, state: int) -> None:
    """Whatever became of it, and whatever the repeat says; nothing is changed by asking."""
    first = await kit.add(state, key="the key")
    row = await kit.row(first.job_id)
    again, new = await kit.create_or_find(
        kit.intent("the key", job_type="other", payload='{"other": 1}'), kit.call("api")
    )
    assert not new
    assert again == first
    assert await kit.row(first.job_id) == row
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs") == 1


@pytest.mark.req("ORC-076")
async def test_keys_are_compared_exactly(kit: Kit) -> None:
    """Case, blanks and composed characters make another key."""
    keys = ["a", "A", " a", "a ", "\u00e9", "e\u0301"]
    made = [await kit.create_or_find(kit.intent(key), kit.call("api")) for key in keys]
    assert all(new for _, new in made)
    assert len({record.job_id for record, _ in made}) == len(keys)


async def test_many_are_created_in_one_step_and_in_order(kit: Kit) -> None:
    """Those that are alike find the first of them; those that are known are found."""
    known = await kit.add(key="known")
    wanted = [kit.intent("one"), kit.intent("known"), kit.intent("two"), kit.intent("one")]
    made = await kit.create_or_find_all(wanted, kit.call("api"))
    assert [new for _, new in made] == [True, False, True, False]
    assert [record.job_id for record, _ in made] == [
        wanted[0].job_id,
        known.job_id,
        wanted[2].job_id,
        wanted[0].job_id,
    ]


async def test_many_are_created_or_none(kit: Kit) -> None:
    wanted = [kit.intent("good"), kit.intent("bad", payload='{"text": "\\u0000"}')]
    with pytest.raises(Unstorable):
        await kit.create_or_find_all(wanted, kit.call("api"))
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs") == 0


async def test_what_cannot_be_stored_spoils_nothing_that_came_with_it(kit: Kit) -> None:
    """Calls share a statement, and only the one whose value is refused fails."""
    payloads = ["{}", '{"text": "\\u0000"}', "{}", "no json"]
    made = await asyncio.gather(
        *(kit.create_or_find(kit.intent(payload=each), kit.call("api")) for each in payloads),
        return_exceptions=True,
    )
    assert [isinstance(each, Unstorable) for each in made] == [False, True, False, True]


async def test_only_creators_create(kit: Kit) -> None:
    with pytest.raises(Condition) as caught:
        await kit.create_or_find(kit.intent(), kit.call("worker"))
    assert caught.value.code == "actor_not_allowed"


async def test_create_refuses_a_key_that_exists(kit: Kit) -> None:
    first = await kit.add()
    with pytest.raises(GuardBreach, match="exists already"):
        await kit.store.create(replace(kit.intent(), job_id=first.job_id), kit.call("api"))
    assert await kit.job(first.job_id) == first


@pytest.mark.req("ORC-095", "ORC-096")
@pytest.mark.parametrize("key", ["abc", "", "\0", NOBODY, "%00", NOBODY + "0", "x" * 10_000])
async def test_a_key_that_nothing_has_is_simply_not_there(kit: Kit, key: str) -> None:
    """A text that is no UUID is no error either."""
    assert await kit.store.get(key) is None
    assert await kit.store.history(key) == []
    with pytest.raises(NoSuchEntity):
        await kit.move(key, CREATED, QUEUED, kit.call("api"))
    with pytest.raises(NoSuchEntity):
        await kit.store.update(key)
    with pytest.raises(NoSuchEntity):
        await kit.store.delete(key, SUCCESS, kit.call("operator"))


@pytest.mark.req("ORC-033", "ORC-034")
async def test_a_move_applies_once(kit: Kit) -> None:
    """Of all that move the same entity at the same moment one does; the others learn the state."""
    made = await kit.add()
    moves = [kit.move(made.job_id, CREATED, QUEUED, kit.call("api")) for _ in range(20)]
    results = await asyncio.gather(*moves)
    assert sorted(results) == [Transitioned(False, QUEUED)] * 19 + [Transitioned(True, QUEUED)]
    moved = await kit.job(made.job_id)
    assert moved.updated_at > made.updated_at
    assert moved.created_at == made.created_at
    assert await kit.edges(made.job_id) == [("", "CREATED", "api"), ("CREATED", "QUEUED", "api")]


async def test_many_are_moved_at_once(kit: Kit) -> None:
    """Only those that are in the expected state, however many were asked for."""
    keys = [(await kit.add()).job_id for _ in range(15)]
    taken = (await kit.add(SUCCESS)).job_id
    call = kit.call("api")
    assert await kit.move_all([*keys[:3], taken], CREATED, QUEUED, call) == 3
    assert await kit.move_all([*keys, *keys], CREATED, QUEUED, call) == 12
    assert (await kit.job(taken)).state == SUCCESS


async def test_an_unknown_edge_is_refused(kit: Kit) -> None:
    made = await kit.add()
    with pytest.raises(Condition) as caught:
        await kit.move(made.job_id, CREATED, SUCCESS, kit.call("api"))
    assert caught.value.code == "illegal_transition"


async def test_an_update_touches_nothing_that_is_guarded(kit: Kit) -> None:
    made = await kit.add()
    assert await kit.store.update(made.job_id) == made
    for field in (
        "state",
        "retry_count",
        "attempt",
        "created_at",
        "lease_owner",
        "idempotency_key",
        "job_id",
    ):
        with pytest.raises(GuardBreach, match=field):
            await kit.store.update(made.job_id, **{field: "x"})


@pytest.mark.req("ORC-X02")
async def test_a_listing_goes_newest_first_and_pages_by_what_was_seen(kit: Kit) -> None:
    """Entities that come while someone pages do not shift the pages behind."""
    made = [await kit.add() for _ in range(7)]
    newest = [each.job_id for each in reversed(made)]
    first = await kit.store.find(size=3)
    assert [each.job_id for each in first.records] == newest[:3]
    await kit.add()
    rest = await kit.store.find(after=first.next, size=50)
    assert [each.job_id for each in rest.records] == newest[3:]


async def test_entities_of_the_same_moment_are_paged_by_key(kit: Kit) -> None:
    for _ in range(5):
        await kit.add()
    await kit.sql.execute(unguarded("UPDATE jobs SET created_at = '2026-01-01Z'"))
    seen: list[str] = []
    after = None
    while True:
        page = await kit.store.find(after=after, size=2)
        seen += [each.job_id for each in page.records]
        if (after := page.next) is None:
            break
    assert len(seen) == 5
    assert seen == sorted(seen)


async def test_a_listing_is_narrowed_by_states_fields_and_times(kit: Kit) -> None:
    queued = await kit.add(QUEUED, job_type="a")
    done = await kit.add(SUCCESS, job_type="b")
    created = await kit.add(job_type="b")

    async def found(**given: object) -> list[str]:
        return [each.job_id for each in (await kit.store.find(**given)).records]  # type: ignore[arg-type]

    assert await found(states=[QUEUED, SUCCESS]) == [done.job_id, queued.job_id]
    assert await found(states=[DEAD]) == []
    assert await found(equal={"job_type": "b"}) == [created.job_id, done.job_id]
    assert await found(states=[SUCCESS], equal={"job_type": "b"}) == [done.job_id]
    assert await found(since=done.created_at) == [created.job_id, done.job_id]
    assert await found(until=done.created_at) == [queued.job_id]
    assert await found(since=datetime.now(UTC) + timedelta(hours=1)) == []
    with pytest.raises(GuardBreach, match="payload of a job cannot be a filter"):
        await found(equal={"payload": "x"})


async def test_pages_by_number(kit: Kit) -> None:
    made = [(await kit.add()).job_id for _ in range(5)]
    page, more = await kit.store.find(offset=1, size=2, newest_first=False)
    assert ([each.job_id for each in page], more is not None) == (made[1:3], True)
    page, more = await kit.store.find(states=[CREATED], offset=3, size=2)
    assert ([each.job_id for each in page], more) == ([made[1], made[0]], None)


async def test_history_has_every_edge_with_its_actor_and_fence(kit: Kit) -> None:
    key = (await kit.add(DEAD)).job_id
    changes = await kit.store.history(key)
    assert [(each.source, each.target, each.fence) for each in changes] == [
        (None, CREATED, 0),
        (CREATED, QUEUED, 0),
        (QUEUED, RUNNING, 1),
        (RUNNING, RETRY, 1),
        (RETRY, DEAD, 1),
    ]
    assert [each.at for each in changes] == sorted(each.at for each in changes)


@pytest.mark.req("ORC-X11")
async def test_a_purge_takes_what_ended_long_ago(kit: Kit) -> None:
    """With its history, and nothing that may still go on; the keys are free again."""
    old, new = await kit.add(SUCCESS, key="old"), await kit.add(DEAD)
    waiting = await kit.add(QUEUED)
    for each in (old, waiting):
        await kit.sql.execute(
            "UPDATE jobs SET updated_at = updated_at - interval '8 days' WHERE job_id = $1",
            each.job_id,
        )
    with pytest.raises(Condition):
        await kit.store.purge(7 * 86400, kit.call("worker"))
    assert await kit.store.purge(7 * 86400, kit.call("operator")) == 1
    assert await kit.store.get(old.job_id) is None
    assert await kit.store.history(old.job_id) == []
    assert await kit.store.get(new.job_id) is not None
    assert await kit.store.get(waiting.job_id) is not None
    assert (await kit.create_or_find(kit.intent("old"), kit.call("api")))[1]


async def test_a_deletion_needs_the_expected_state(kit: Kit) -> None:
    done, open_ = await kit.add(SUCCESS), await kit.add(QUEUED)
    operator = kit.call("operator")
    assert await kit.store.delete(done.job_id, DEAD, operator) == Transitioned(False, SUCCESS)
    assert await kit.store.delete(open_.job_id, QUEUED, operator) == Transitioned(False, QUEUED)
    assert await kit.store.delete(done.job_id, SUCCESS, operator) == Transitioned(True, SUCCESS)
    assert await kit.store.get(done.job_id) is None


@pytest.mark.req("ORC-X10")
async def test_the_log_has_every_transition_and_no_payload(kit: Kit) -> None:
    made = await kit.add(payload='{"secret": "marker-1"}')
    await kit.move(made.job_id, CREATED, QUEUED, kit.call("api"))
    held = await kit.claim("w", kit.call("worker"))
    assert held is not None
    told = [(each["transition"], each["job_id"]) for each in kit.lines.read_back("transition")]
    assert told == [(name, made.job_id) for name in ("create", "accept", "acquire")]
    assert kit.lines.read_back("transition")[-1]["lease_owner"] == "w"
    assert "marker-1" not in kit.lines.getvalue()


@pytest.mark.req("ORC-X08")
async def test_what_is_in_each_state_is_counted(kit: Kit, make_kit: MakeKit) -> None:
    await kit.add(QUEUED)
    await kit.add(SUCCESS)
    counted = await make_kit()
    held = counted.metrics.registry.get_sample_value
    await counted.metrics.render()
    assert held("charter_entities", {"entity": "job", "state": "QUEUED"}) == 1
    assert held("charter_entities", {"entity": "job", "state": "SUCCESS"}) == 1
    assert held("charter_entities", {"entity": "job", "state": "RUNNING"}) == 0
    assert (held("charter_oldest_age_seconds", {"entity": "job", "state": "QUEUED"}) or 0) > 0


async def test_a_scrape_counts_what_is_there_at_that_moment(kit: Kit) -> None:
    """Each scrape shows what was there when it came, not what the one before had counted."""
    for number in range(1, 4):
        await kit.add(QUEUED)
        scrapes = await asyncio.gather(*(kit.metrics.render() for _ in range(3)))
        wanted = f'charter_entities{{entity="job",state="QUEUED"}} {number}.0'
        assert all(wanted in text.decode() for text in scrapes)


@pytest.mark.req("ORC-098", "ORC-070", "ORC-101")
async def test_many_processes_with_the_same_keys_make_one_entity_for_each(make_kit: MakeKit) -> None:
    """The constraint decides, so it does not matter who asks where and how often."""
    kits = [await make_kit() for _ in range(4)]
    keys = [f"key {number}" for number in range(25)]
    asked = [
        kit.create_or_find(kit.intent(key), kit.call("api")) for _ in range(5) for kit in kits for key in keys
    ]
    made = await asyncio.gather(*asked)
    assert sum(new for _, new in made) == len(keys)
    assert len({record.job_id for record, _ in made}) == len(keys)
    assert await kits[0].sql.fetchval("SELECT count(*) FROM jobs") == len(keys)


async def test_batches_that_overlap_in_any_order_do_not_block_each_other(make_kit: MakeKit) -> None:
    one, other = await make_kit(), await make_kit()
    keys = [f"key {number}" for number in range(200)]
    for _ in range(5):
        await one.sql.execute(unguarded("TRUNCATE jobs, job_transitions"))
        made = await asyncio.gather(
            one.create_or_find_all([one.intent(key) for key in keys], one.call("api")),
            other.create_or_find_all([other.intent(key) for key in reversed(keys)], other.call("api")),
        )
        assert sum(new for each in made for _, new in each) == len(keys)


@pytest.mark.req("ORC-099", "ORC-100")
@pytest.mark.parametrize("commits", [True, False])
async def test_whoever_comes_second_waits_for_the_first(kit: Kit, commits: bool) -> None:
    """If the first commits, its entity is found; if it rolls back, the second one is created."""
    first = await kit.connect()
    begun = first.transaction()
    await begun.start()
    key = await first.fetchval(
        "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('a', '{}', 'k') RETURNING job_id::text"
    )
    second = asyncio.create_task(kit.create_or_find(kit.intent("k"), kit.call("api")))
    await blocked(kit)
    assert not second.done()
    await (begun.commit() if commits else begun.rollback())
    record, new = await second
    assert new == (not commits)
    assert (record.job_id == key) == commits
    assert await kit.sql.fetchval("SELECT count(*) FROM jobs") == 1


async def blocked(kit: Kit) -> None:
    """Returns when a session of this database waits for another one."""
    waits = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    await eventually(lambda: kit.sql.fetchval(waits))


@pytest.mark.parametrize("changes", [True, False])
async def test_a_locked_row_keeps_no_other_move_waiting(kit: Kit, changes: bool) -> None:
    """Whoever wants the locked one waits for it alone, and moves its latest version."""
    made = [await kit.add() for _ in range(3)]
    other = await kit.connect()
    begun = other.transaction()
    await begun.start()
    lock = (
        "UPDATE jobs SET payload = payload WHERE job_id = $1"
        if changes
        else "SELECT FROM jobs WHERE job_id = $1"
    )
    await other.execute(lock if changes else f"{lock} FOR UPDATE", made[1].job_id)
    moving = [asyncio.create_task(kit.move(each.job_id, CREATED, QUEUED, kit.call("api"))) for each in made]
    assert (await moving[0]).applied
    assert (await moving[2]).applied
    await blocked(kit)
    assert not moving[1].done()
    await begun.commit()
    assert (await moving[1]).applied
    assert (await kit.job(made[1].job_id)).state == QUEUED
