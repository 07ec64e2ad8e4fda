"""Edges that leave several states, entities that begin in one of several, and states in which they rest."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from runtime.model.lifecycles import DeadLetter, Due
from runtime.stores.contract import LeaseProof, Transitioned
from runtime.stores.store import GuardBreach
from tests.support.stores.lifecycles import LETTER, PERMIT, edge, kept_with, with_edges
from tests.support.stores.records import (
    DEAD,
    DONE,
    HELD,
    SHELVED,
    VARIABLES,
    WAITING,
    LetterRecord,
    PermitRecord,
)
from tests.support.stores.shop import Shop, proof, refused, settlement

LAPSE = edge(
    "lapse",
    WAITING,
    DEAD,
    *("client", "reaper"),
    stamps=("moved_at",),
    others=frozenset({HELD}),
    dues=(Due(at="made_at", by="reaper", every="EVERY", after="KEEP_S"),),
)
LAPSING = with_edges(PERMIT, LAPSE)


async def test_an_edge_is_taken_out_of_each_of_its_states(shop: Shop) -> None:
    """The history has the state that was left, and a lease ends where there was one."""
    store, client = shop.store(LETTER), shop.call("client")
    for key in "ab":
        await store.create(LetterRecord(key=key), client)
    (held,) = await store.claim("bob", 1, shop.call("runner"))
    assert held.key == "a"
    for key in "ab":
        assert await store.transition(key, "cancel", client) == Transitioned(True, DEAD)
        assert await store.transition(key, "cancel", client) == Transitioned(False, DEAD)
    record = await store.get("a")
    assert (record.owner, record.ends_at, record.fence) == (None, None, 1)
    ends = {key: (await store.history(key))[-1] for key in "ab"}
    assert [(ends[key].edge, ends[key].source, ends[key].target) for key in "ab"] == [
        ("cancel", HELD, DEAD),
        ("cancel", WAITING, DEAD),
    ]
    with refused("lease_lost"):
        await store.settle(settlement(held, "finish"), shop.call("runner"))


async def test_a_log_line_has_the_state_that_was_left(shop: Shop) -> None:
    store, client = shop.store(LETTER), shop.call("client")
    for key in "ab":
        await store.create(LetterRecord(key=key), client)
    await store.claim("bob", 1, shop.call("runner"))
    for key in "ab":
        await store.transition(key, "cancel", client)
    lines = [line for line in shop.lines.read_back("transition") if line["transition"] == "cancel"]
    assert [(line["key"], line["from_status"], line["to_status"]) for line in lines] == [
        ("a", "HELD", "DEAD"),
        ("b", "WAITING", "DEAD"),
    ]


async def test_states_name_it_wherever_no_other_edge_is_meant(shop: Shop) -> None:
    """One that is taken by its name is found by its states where it alone leads from one to the other."""
    store = shop.store(LETTER)
    assert store.edge_between(WAITING, DEAD, shop.call("client")).name == "cancel"
    assert store.edge_between(HELD, DEAD, shop.call("runner")).name == "fail"
    with refused("permission_denied"):
        store.edge_between(WAITING, DEAD, shop.call("runner"))


async def test_a_clock_drives_it_out_of_each_state(shop: Shop) -> None:
    """What waits and what is leased lapse alike; others do not."""
    store, client, reaper = shop.store(LAPSING), shop.call("client"), shop.call("reaper")
    for key in "abc":
        await store.create(PermitRecord(key=key), client)
    first, _ = await store.claim("bob", 2, shop.call("runner"))
    await store.settle(settlement(first, "give_back"), shop.call("runner"))
    assert await store.run_due("lapse", reaper) == 0
    shop.pass_s(101)
    assert await store.run_due("lapse", reaper) == 2
    assert [(await store.get(key)).state for key in "abc"] == [SHELVED, DEAD, DEAD]
    assert [(await store.history(key))[-1].source for key in "bc"] == [HELD, WAITING]


async def test_by_hand_the_clock_takes_none_that_may_leave_a_lease(shop: Shop) -> None:
    """Whatever state the entity is in: the principal of the clock waits until it is due."""
    store = shop.store(LAPSING)
    await store.create(PermitRecord(key="a"), shop.call("client"))
    with pytest.raises(GuardBreach, match="is driven by the clock"):
        await store.transition("a", "lapse", shop.call("reaper"))
    assert await store.transition("a", "lapse", shop.call("client")) == Transitioned(True, DEAD)


async def test_a_proof_counts_where_there_is_a_lease(shop: Shop) -> None:
    """Those who claim give one always, and it is compared out of the leased state alone."""
    store = shop.store(with_edges(PERMIT, edge("drop", WAITING, DEAD, "runner", others=frozenset({HELD}))))
    runner = shop.call("runner")
    for key in "ab":
        await store.create(PermitRecord(key=key), shop.call("client"))
    (held,) = await store.claim("bob", 1, runner)
    with pytest.raises(GuardBreach, match="needs the proof"):
        await store.transition("b", "drop", runner)
    with refused("lease_lost"):
        await store.transition("a", "drop", runner, lease=LeaseProof("eve", held.fence))
    assert await store.transition("b", "drop", runner, lease=LeaseProof("", 0)) == Transitioned(True, DEAD)
    assert await store.settle(settlement(held, "drop"), runner) == DEAD
    assert (await store.history("a"))[-1].source == HELD


async def test_a_dead_letter_is_taken_in_place_or_behind(engine: str) -> None:
    """Out of a state that the ending edge leaves, too, it is taken in place; else it follows."""
    shop = Shop(engine, {**VARIABLES, "MAX_TRIES": 0})
    fail = edge(
        *("fail", HELD, SHELVED, "runner"),
        others=frozenset({WAITING}),
        increment="tries",
        dead_letter=DeadLetter("bury", count="tries", limit="MAX_TRIES"),
    )
    bury = edge("bury", SHELVED, DEAD, "runner", others=frozenset({WAITING}))
    store, runner = shop.store(with_edges(PERMIT, fail, bury)), shop.call("runner")
    for key in "ab":
        await store.create(PermitRecord(key=key), shop.call("client"))
    (held,) = await store.claim("bob", 1, runner)
    assert await store.settle(settlement(held, "fail"), runner) == DEAD
    assert await store.transition("b", "fail", runner, lease=proof(held)) == Transitioned(True, DEAD)
    steps = {key: [(each.edge, each.source) for each in await store.history(key)] for key in "ab"}
    assert steps["a"][2:] == [("fail", HELD), ("bury", SHELVED)]
    assert steps["b"][1:] == [("bury", WAITING)]
    assert [(await store.get(key)).tries for key in "ab"] == [1, 0]


async def test_an_edge_may_lead_from_everywhere_to_one_state(shop: Shop) -> None:
    """Also out of states in which nothing waits for a worker."""
    close = edge("close", SHELVED, DONE, "client", others=frozenset({WAITING}), stamps=("moved_at",))
    store, client, runner = shop.store(with_edges(PERMIT, close)), shop.call("client"), shop.call("runner")
    for key in "ab":
        await store.create(PermitRecord(key=key), client)
    (held,) = await store.claim("bob", 1, runner)
    await store.settle(settlement(held, "fail"), runner)
    for key in "ab":
        assert await store.transition(key, "close", client) == Transitioned(True, DONE)
    assert (await store.get("a")).wait_until is None
    assert await store.count() == {WAITING: 0, HELD: 0, DONE: 2, DEAD: 0, SHELVED: 0}


PLANNED = replace(PERMIT, begins=frozenset({SHELVED}))


async def test_a_creator_may_name_the_state_in_which_it_begins(shop: Shop) -> None:
    """One of those that the lifecycle has; any other, and none, is the usual one."""
    store, client = shop.store(PLANNED), shop.call("client")
    states = {"a": 0, "b": SHELVED, "c": HELD, "d": WAITING}
    records = [PermitRecord(key=key, state=state) for key, state in states.items()]
    (first,) = (await store.create_many(records[:1], client),)
    made = [each.record for each in (*first, *await store.create_many(records[1:], client))]
    assert [each.state for each in made] == [WAITING, SHELVED, WAITING, WAITING]
    assert [await store.get(key) for key in states] == made
    for each in made:
        (entry,) = await store.history(each.key)
        assert (entry.edge, entry.source, entry.target) == ("create", None, each.state)
    lines = [(line["key"], line["to_status"]) for line in shop.lines.read_back("transition")]
    assert sorted(lines) == [("a", "WAITING"), ("b", "SHELVED"), ("c", "WAITING"), ("d", "WAITING")]
    assert await store.count([WAITING, SHELVED]) == {WAITING: 3, SHELVED: 1}


async def test_without_the_word_each_begins_alike(shop: Shop) -> None:
    """Whatever state the record of the creator has."""
    store, client = shop.store(PERMIT), shop.call("client")
    assert (await store.create(PermitRecord(key="a", state=SHELVED), client)).record.state == WAITING


async def test_what_begins_as_planned_waits_for_its_time(shop: Shop) -> None:
    """A due time that its creator gives leads it on; before that nobody claims it."""
    store, client, runner = shop.store(PLANNED), shop.call("client"), shop.call("runner")
    record = PermitRecord(key="a", state=SHELVED, wait_until=shop.now(50))
    await store.create(record, client)
    assert await store.claim("bob", 1, runner) == []
    assert await store.run_due("requeue", shop.call("scheduler")) == 0
    shop.pass_s(50.001)
    assert await store.run_due("requeue", shop.call("scheduler")) == 1
    (claimed,) = await store.claim("bob", 1, runner)
    assert (claimed.key, claimed.wait_until) == ("a", None)


async def test_edges_of_the_creator_begin_where_the_entity_does(shop: Shop) -> None:
    """`then` starts from the state that the creator names."""
    queue = edge("queue", SHELVED, WAITING, "client")
    store = shop.store(with_edges(replace(PLANNED, edges={**PERMIT.edges}), replace(queue, name="requeue")))
    made = await store.create(PermitRecord(key="a", state=SHELVED), shop.call("client"), then=["requeue"])
    assert made.record.state == WAITING
    assert [(each.edge, each.source, each.target) for each in await store.history("a")] == [
        ("create", None, SHELVED),
        ("requeue", SHELVED, WAITING),
    ]
    with pytest.raises(GuardBreach, match="does not apply"):
        await store.create(PermitRecord(key="b"), shop.call("client"), then=["requeue"])


async def test_what_rests_stays_until_somebody_acts(engine: str) -> None:
    """No clock and no claim moves it on, and no bound of those that have ended counts it."""
    shop = Shop(engine, {**VARIABLES, "RETENTION_S": 10.0}, max_terminal=1)
    resting = replace(PERMIT, resting=frozenset({SHELVED}), storage=kept_with(expires="RETENTION_S"))
    shelve = edge("shelve", WAITING, SHELVED, "client", stamps=("moved_at",))
    store = shop.store(with_edges(resting, shelve, edge("requeue", SHELVED, WAITING, "client")))
    client, runner = shop.call("client"), shop.call("runner")
    for key in "abcd":
        await store.create(PermitRecord(key=key), client)
    for key in "ab":
        assert await store.transition(key, "shelve", client) == Transitioned(True, SHELVED)
    for record in await store.claim("bob", 9, runner):
        await store.settle(settlement(record, "finish"), runner)
    shop.pass_s(1000)
    assert await store.claim("bob", 9, runner) == []
    assert [await store.get(key) is not None for key in "abcd"] == [True, True, False, False]
    assert await store.transition("a", "requeue", client) == Transitioned(True, WAITING)
    assert [each.key for each in await store.claim("bob", 9, runner)] == ["a"]
