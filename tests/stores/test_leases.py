"""Leases: the order of claims, capabilities, fences, renewal, settling, exchange, pausing and waiting."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from runtime.model.lifecycles import Backoff, Index, Take, Update
from runtime.stores.contract import LeaseProof, LeaseSettlement, Transitioned
from runtime.stores.store import GuardBreach
from tests.support.stores.engine_time import in_time_of_engine, tick_s
from tests.support.stores.engines import BY_CREATION, ENGINES, claims_by_creation
from tests.support.stores.lifecycles import COURIER, ERRAND, LETTER, PARCEL, PERMIT, kept_with
from tests.support.stores.records import (
    DONE,
    HELD,
    HIGH,
    LOW,
    VARIABLES,
    WAITING,
    CourierRecord,
    ErrandRecord,
    LetterRecord,
    ParcelRecord,
    PermitRecord,
    Policy,
)
from tests.support.stores.shop import Shop, proof, refused, settlement

_BY_POLICY = Backoff(
    until="ready_at",
    count="tries",
    base="policy.base_ms",
    max="policy.most_ms",
    times="policy.factor",
    jitter="policy.jitter",
)


async def add_errands(shop: Shop, *records: ErrandRecord) -> Any:
    """Errands a second apart, in a place with one courier that is able to do all."""
    skills = ("lift", "drive")
    await shop.store(COURIER).create(CourierRecord(name="bob", room=9, skills=skills), shop.call("client"))
    store = shop.store(ERRAND)
    for record in records:
        await store.create(record, shop.call("client"))
        shop.pass_s(1)
    return store


def keys(records: Any) -> list[str]:
    return [each.key for each in records]


async def test_a_claim_takes_the_lease(shop: Shop) -> None:
    """Owner, end and fence are the store's; each claim raises the fence."""
    store = shop.store(PERMIT)
    await store.create(PermitRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 5, shop.call("runner"))
    assert (record.state, record.owner, record.fence, record.ends_at) == (HELD, "bob", 1, shop.now(10))
    assert await store.claim("eve", 5, shop.call("runner")) == []
    await store.settle(settlement(record, "give_back"), shop.call("runner"))
    left = await store.get("a")
    assert (left.owner, left.ends_at, left.fence) == (None, None, 1)
    shop.pass_s(1)
    await store.run_due("requeue", shop.call("scheduler"))
    (record,) = await store.claim("eve", 5, shop.call("runner"))
    assert (record.owner, record.fence) == ("eve", 2)


async def test_a_lease_may_have_a_token_and_go_by_renewal(shop: Shop) -> None:
    """A fresh token at each claim and none otherwise; a renewal is the time that counts."""
    letters, parcels, runner = shop.store(LETTER), shop.store(PARCEL), shop.call("runner")
    await letters.create(LetterRecord(key="a"), shop.call("client"))
    (letter,) = await letters.claim("bob", 1, runner)
    assert letter.token
    await letters.settle(settlement(letter, "release"), runner)
    assert (await letters.get("a")).token is None
    await parcels.create(ParcelRecord(key="p"), shop.call("client"))
    shop.pass_s(3)
    (parcel,) = await parcels.claim("bob", 1, runner)
    assert (parcel.moved_at, parcel.owner, parcel.tries) == (shop.world.wall_ms, "bob", 1)


async def test_an_owner_is_named_where_the_lease_keeps_it(shop: Shop) -> None:
    """Where an entity is not free again it still names its last owner."""
    store = await add_errands(shop, ErrandRecord(key="a"), ErrandRecord(key="b"))
    first, second = await store.claim("bob", 2, shop.call("runner"))
    await store.settle(settlement(first, "finish"), shop.call("runner"))
    await store.settle(settlement(second, "give_back"), shop.call("runner"))
    assert ((await store.get("a")).owner, (await store.get("b")).owner) == ("bob", None)
    assert (await store.get("a")).ends_at is None


async def test_claims_go_by_priority_then_age(shop: Shop) -> None:
    """The values of `claim_order` in their order; within one the oldest."""
    store = await add_errands(
        shop,
        ErrandRecord(key="a", urgency=LOW),
        ErrandRecord(key="b", urgency=HIGH),
        ErrandRecord(key="c", urgency=HIGH),
    )
    assert keys(await store.claim("bob", 2, shop.call("runner"))) == ["b", "c"]
    assert keys(await store.claim("bob", 2, shop.call("runner"))) == ["a"]


async def test_claims_of_one_time_go_by_key(shop: Shop) -> None:
    """Whatever was created first, unless the engine knows that order."""
    store = shop.store(PERMIT)
    await store.create_many([PermitRecord(key=key) for key in "cab"], shop.call("client"))
    wanted = ["c", "a"] if shop.engine in BY_CREATION else ["a", "b"]
    assert keys(await store.claim("bob", 2, shop.call("runner"))) == wanted


async def test_claims_of_one_millisecond_go_by_creation(shop: Shop) -> None:
    """Entities of the same age are no rarity where ages are in milliseconds."""
    store = shop.store(PARCEL)
    for key in "cab":
        await store.create(ParcelRecord(key=key), shop.call("client"))
    wanted = ["c", "a", "b"] if claims_by_creation(shop.engine, PARCEL, VARIABLES) else ["a", "b", "c"]
    assert keys(await store.claim("bob", 3, shop.call("runner"))) == wanted
    shop.pass_s(11)
    assert await store.run_due("abandon", shop.call("keeper"))
    assert keys(await store.claim("bob", 3, shop.call("runner"))) == wanted


async def test_an_unknown_priority_is_never_served(shop: Shop) -> None:
    """A value that `claim_order` does not have is not claimed."""
    store = await add_errands(shop, ErrandRecord(key="a", urgency=LOW))
    await store.create_many([ErrandRecord(key="b", urgency=7, length=1)], shop.call("client"))
    assert keys(await store.claim("bob", 9, shop.call("runner"))) == ["a"]


async def test_a_claim_may_be_narrowed(shop: Shop) -> None:
    """By equality of fields; a field that the record does not have is a fault."""
    store = await add_errands(shop, ErrandRecord(key="a", kind="x"), ErrandRecord(key="b", kind="y"))
    assert keys(await store.claim("bob", 9, shop.call("runner"), where={"kind": "y"})) == ["b"]
    with pytest.raises(GuardBreach, match="has no wings"):
        await store.claim("bob", 9, shop.call("runner"), where={"wings": 2})


async def test_a_holder_is_able_to_do_what_it_claims(shop: Shop) -> None:
    """All needs are offered; what is asked for narrows that and never widens it."""
    store = await add_errands(
        shop,
        ErrandRecord(key="a", needs=("fly",)),
        ErrandRecord(key="b", needs=("lift", "drive")),
        ErrandRecord(key="c", needs=("lift",)),
    )
    runner = shop.call("runner")
    assert await store.claim("bob", 9, runner, capabilities=("fly",)) == []
    assert keys(await store.claim("bob", 9, runner, capabilities=("lift", "fly"))) == ["c"]
    assert keys(await store.claim("bob", 9, runner)) == ["b"]


async def test_a_text_may_say_who_is_able(shop: Shop) -> None:
    """With `only` the capabilities are the texts that an owner runs; none given are all."""
    store, runner = shop.store(LETTER), shop.call("runner")
    for key in ("a", "b"):
        await store.create(LetterRecord(key=key, kind=key), shop.call("client"))
    assert keys(await store.claim("bob", 9, runner, capabilities=("b", "c"))) == ["b"]
    assert keys(await store.claim("bob", 9, runner)) == ["a"]


async def test_a_holder_has_room_and_a_state(shop: Shop) -> None:
    """Nobody gets more than its capacity, and nothing that is unknown or in another state."""
    store = shop.store(ERRAND)
    couriers, client, runner = shop.store(COURIER), shop.call("client"), shop.call("runner")
    await couriers.create(CourierRecord(name="bob", room=2), client)
    await store.create_many([ErrandRecord(key=key) for key in "abc"], client)
    assert await store.claim("eve", 9, runner) == []
    claimed = await store.claim("bob", 9, runner)
    assert len(claimed) == 2 and await store.claim("bob", 9, runner) == []
    await store.settle(settlement(claimed[0], "finish"), runner)
    await couriers.transition("bob", "lose", shop.call("reaper"))
    assert await store.claim("bob", 9, runner) == []


async def test_nothing_is_claimed_before_its_time(shop: Shop) -> None:
    """Neither what an index holds back, nor what is ready only later."""
    store = await add_errands(shop, ErrandRecord(key="a", wait_until=shop.now(5)))
    assert await store.claim("bob", 9, shop.call("runner")) == []
    letters = shop.store(LETTER)
    await letters.create(LetterRecord(key="x", ready_at=shop.now(2)), shop.call("client"))
    assert await letters.claim("bob", 9, shop.call("runner")) == []
    shop.pass_s(2)
    assert keys(await letters.claim("bob", 9, shop.call("runner"))) == ["x"]


async def test_only_those_who_may_claim(shop: Shop) -> None:
    """By the actors of the edge; an entity without a lease cannot be claimed."""
    with refused("permission_denied"):
        await shop.store(PERMIT).claim("bob", 1, shop.call("client"))
    with pytest.raises(GuardBreach, match="has no lease"):
        await shop.store(COURIER).claim("bob", 1, shop.call("runner"))


async def test_a_value_is_paused(shop: Shop) -> None:
    """It is not served until it is resumed; what is leased goes on."""
    store = await add_errands(shop, ErrandRecord(key="a", urgency=HIGH), ErrandRecord(key="b", urgency=LOW))
    await store.pause(HIGH)
    assert await store.paused() == {HIGH}
    assert keys(await store.claim("bob", 9, shop.call("runner"))) == ["b"]
    await store.resume(HIGH)
    assert keys(await store.claim("bob", 9, shop.call("runner"))) == ["a"]
    with pytest.raises(GuardBreach, match="no order that could be paused"):
        await shop.store(PERMIT).pause(1)


async def test_the_backlog_is_what_can_be_claimed(shop: Shop) -> None:
    """By each value that is served, paused or not, with the age of the oldest; what waits does not count."""
    store = await add_errands(shop, *(ErrandRecord(key=key, urgency=LOW) for key in "ab"))
    assert await store.backlog() == {HIGH: (0, 0.0), LOW: (2, 2.0)}
    await store.pause(LOW)
    assert (await store.backlog())[LOW] == (2, 2.0)
    await store.resume(LOW)
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    assert (record.key, (await store.backlog())[LOW]) == ("a", (1, 1.0))
    await store.settle(settlement(record, "retry", error="broken"), shop.call("runner"))
    assert (await store.backlog())[LOW] == (1, 1.0), "it waits for the end of its backoff"
    with pytest.raises(GuardBreach, match="has no lease"):
        await shop.store(COURIER).backlog()


async def test_the_backlog_without_an_order_of_values(shop: Shop) -> None:
    """All of it is under 0, and what may not be claimed yet is left out."""
    store = shop.store(LETTER)
    await store.create(LetterRecord(key="a"), shop.call("client"))
    await store.create(LetterRecord(key="b", ready_at=shop.now(5)), shop.call("client"))
    shop.pass_s(2)
    assert await store.backlog() == {0: (1, 2.0)}
    shop.pass_s(3)
    assert await store.backlog() == {0: (2, 5.0)}


async def test_a_lease_is_renewed_by_its_proof(shop: Shop) -> None:
    """For its own length or for so many seconds; never one that has ended or is another's."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create(PermitRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, runner)
    shop.pass_s(9)
    wrong = [("a", LeaseProof("eve", 1)), ("a", LeaseProof("bob", 2)), ("b", LeaseProof("bob", 1))]
    first, *others = await store.renew([("a", proof(record)), *wrong])
    assert first.ends_at == shop.now(10) and others == [None] * 3
    assert (first.moved_at, len(await store.history("a"))) == (record.moved_at, 2)
    (again,) = await store.renew([("a", proof(record))], seconds=3)
    assert again.ends_at == shop.now(3)
    shop.pass_s(3)
    assert await store.renew([("a", proof(record))]) == [None]
    with refused("lease_lost"):
        await store.settle(settlement(record, "finish"), runner)
    with pytest.raises(GuardBreach, match="has no lease"):
        await shop.store(COURIER).renew([])


async def test_a_renewal_is_the_time_that_counts(shop: Shop) -> None:
    """Where a lease has no end, renewing it puts off the edge that ends it."""
    store, runner = shop.store(PARCEL), shop.call("runner")
    await store.create(ParcelRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, runner)
    shop.pass_s(9)
    (renewed,) = await store.renew([("a", proof(record, "tries"))])
    assert renewed.moved_at == shop.world.wall_ms
    shop.pass_s(9)
    assert (await store.get("a")).state == HELD


async def test_a_fence_keeps_earlier_owners_out(shop: Shop) -> None:
    """The same owner with an earlier fence has lost its lease."""
    store, runner = shop.store(PARCEL), shop.call("runner")
    await store.create(ParcelRecord(key="a"), shop.call("client"))
    (first,) = await store.claim("bob", 1, runner)
    await store.settle(settlement(first, "release"), runner)
    (second,) = await store.claim("bob", 1, runner)
    with refused("lease_stale"):
        await store.settle(settlement(first, "finish"), runner)
    assert await store.settle(settlement(second, "finish"), runner) == DONE
    with refused("lease_lost"):
        await store.settle(settlement(second, "finish"), runner)


async def test_many_are_settled_each_by_itself(shop: Shop) -> None:
    """One that was lost does not stand in the way of the others."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create_many([PermitRecord(key=key) for key in "ab"], shop.call("client"))
    first, second = await store.claim("bob", 2, runner)
    lost = LeaseSettlement("a", LeaseProof("eve", 1), "finish")
    outcomes = await store.settle_many(
        [lost, settlement(first, "finish"), settlement(second, "give_back"), settlement(first, "finish")],
        runner,
    )
    assert [getattr(each, "code", each) for each in outcomes] == ["lease_lost", DONE, 5, "lease_lost"]


async def test_a_fault_in_one_settlement_is_its_own(shop: Shop) -> None:
    """What was settled before it is known all the same."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create_many([PermitRecord(key=key) for key in "ab"], shop.call("client"))
    first, second = await store.claim("bob", 2, runner)
    asked = [settlement(first, "finish"), settlement(second, "fly"), settlement(second, "finish")]
    outcomes = await store.settle_many(asked, runner)
    assert (outcomes[0], type(outcomes[1]), outcomes[2]) == (DONE, GuardBreach, DONE)


async def test_a_settlement_leaves_the_lease(shop: Shop) -> None:
    """By an edge out of the leased state, and by no other."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create(PermitRecord(key="a"), shop.call("client"))
    with pytest.raises(GuardBreach, match="does not leave the lease"):
        await store.settle(LeaseSettlement("a", LeaseProof("bob", 1), "claim"), runner)
    with refused("permission_denied"):
        await store.settle(LeaseSettlement("a", LeaseProof("bob", 1), "finish"), shop.call("client"))


async def test_an_exchange_settles_and_claims(shop: Shop) -> None:
    """One for each that was settled, and so many more."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create_many([PermitRecord(key=key) for key in "abcde"], shop.call("client"))
    first, second = await store.claim("bob", 2, runner)
    lost = LeaseSettlement("b", LeaseProof("eve", 1), "finish")
    claimed, outcomes = await store.exchange("bob", [settlement(first, "finish"), lost], 1, runner)
    assert keys(claimed) == ["c", "d"]
    assert outcomes[0] == DONE and isinstance(outcomes[1], Exception)
    assert (await store.get(second.key)).state == HELD
    assert keys((await store.exchange("bob", [], 5, runner, where={"key": "e"})).claimed) == ["e"]


async def test_an_edge_may_enter_the_lease_by_name(shop: Shop) -> None:
    """Then the caller is the owner, or whom it names."""
    store = shop.store(PARCEL)
    await store.create_many([ParcelRecord(key=key) for key in "ab"], shop.call("client"))
    await store.transition("b", "claim", shop.call("runner"), owner="eve")
    await store.transition("a", "claim", shop.call("keeper"))
    assert ((await store.get("a")).owner, (await store.get("b")).owner) == ("keeper", "eve")


@pytest.mark.parametrize("engine", sorted(ENGINES))
@in_time_of_engine
async def test_waiting_ends_with_work(engine: str) -> None:
    """A wait ends when something can be claimed, and not before; with a key, when that entity changes."""
    shop, tick = Shop(engine), tick_s(engine)
    store, runner, client = await shop.open(PERMIT), shop.call("runner"), shop.call("client")
    assert await store.claim("bob", 1, runner) == []
    assert not await store.wait(tick)
    waiting = asyncio.ensure_future(store.wait(60.0))
    other = asyncio.ensure_future(store.wait(60.0, key="a"))
    await asyncio.sleep(tick)
    assert not waiting.done()
    await store.create(PermitRecord(key="a"), client)
    assert await waiting and await other
    assert await store.wait(0.0)
    (record,) = await store.claim("bob", 5, runner)
    changed = asyncio.ensure_future(store.wait(60.0, key="a"))
    await asyncio.sleep(tick)
    assert not changed.done()
    await store.settle(settlement(record, "finish"), runner)
    assert await changed
    assert not await store.wait(tick, key="a")


@pytest.mark.parametrize("engine", sorted(ENGINES))
@in_time_of_engine
async def test_waiting_ends_with_a_time(engine: str) -> None:
    """What becomes claimable by the clock ends a wait, though nothing changes."""
    shop, tick = Shop(engine), tick_s(engine)
    store = await shop.open(LETTER)
    await store.create(LetterRecord(key="a", ready_at=shop.now(tick)), shop.call("client"))
    assert await store.claim("bob", 1, shop.call("runner")) == []
    loop = asyncio.get_running_loop()
    started = loop.time()
    while loop.time() - started < tick:  # A wake-up is a hint, and may come for the creation.
        assert await store.claim("bob", 1, shop.call("runner")) == []
        assert await store.wait(60.0)
    assert loop.time() - started < 60


async def test_the_state_of_a_leased_index(shop: Shop) -> None:
    """What waits is counted by state."""
    store = await add_errands(shop, ErrandRecord(key="a"), ErrandRecord(key="b"))
    await store.claim("bob", 1, shop.call("runner"))
    assert await store.count((WAITING, HELD)) == {WAITING: 1, HELD: 1}


async def test_an_update_without_a_proof_is_made_when_the_lease_has_ended(shop: Shop) -> None:
    """That a holder is late matters for what it needs the proof for, and for nothing else."""
    note = Update(
        name="note",
        states=frozenset({HELD}),
        actors=frozenset({"runner"}),
        from_request={"error": Take("error")},
    )
    store = shop.store(replace(PERMIT, updates={"note": note}))
    await store.create(PermitRecord(key="a"), shop.call("client"))
    await store.claim("bob", 1, shop.call("runner"))
    shop.pass_s(11)
    answer = await store.transition("a", "note", shop.call("runner"), given={"error": "late"})
    assert answer == Transitioned(True, HELD)
    assert (await store.get("a")).error == "late"


async def test_a_claim_waits_with_the_chance_of_its_world(shop: Shop) -> None:
    """An edge that takes a lease may have a backoff; its jitter is no other than that of any edge."""
    edges = {
        ends: replace(each, backoff=_BY_POLICY) if each.name == "claim" else each
        for ends, each in LETTER.edges.items()
    }
    store = shop.store(replace(LETTER, edges=edges))
    await store.create(LetterRecord(key="a", policy=Policy(jitter=0.5)), shop.call("client"))
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    assert record.ready_at == shop.now(1.5)


async def test_a_settlement_keeps_what_there_is_first(shop: Shop) -> None:
    """Also where the engine has one statement for it."""
    keep = {"error": Take("error", keep_first=True)}
    edges = {
        ends: replace(each, from_request=keep) if each.name == "finish" else each
        for ends, each in PERMIT.edges.items()
    }
    store, runner = shop.store(replace(PERMIT, edges=edges)), shop.call("runner")
    for key in ("a", "b"):
        await store.create(PermitRecord(key=key), shop.call("client"))
    await store.update("a", error="first")
    for record in await store.claim("bob", 2, runner):
        await store.settle(settlement(record, "finish", error="second"), runner)
    assert [(await store.get(key)).error for key in ("a", "b")] == ["first", "second"]


async def test_a_lease_given_back_waits_no_more(shop: Shop) -> None:
    """The time of a wait that an edge ends is now, and not unset."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create(PermitRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, runner)
    await store.settle(settlement(record, "give_back"), runner)
    assert (await store.get("a")).wait_until == shop.now()


async def test_only_what_is_in_the_index_is_claimed(shop: Shop) -> None:
    """An index may want a field to be set."""
    index = Index(key="open", states=frozenset({WAITING}), only_if="error")
    assert PERMIT.lease is not None
    lease = replace(PERMIT.lease, index="open")
    store = shop.store(replace(PERMIT, lease=lease, storage=kept_with(indexes={"open": index})))
    await store.create(PermitRecord(key="a"), shop.call("client"))
    await store.create(PermitRecord(key="b", error="stuck"), shop.call("client"))
    assert keys(await store.claim("bob", 5, shop.call("runner"))) == ["b"]
