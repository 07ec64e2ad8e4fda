"""Due changes: when they are due, in which order, by whom, and what they give along."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from runtime.model.lifecycles import Due, Update
from runtime.stores.contract import DELETION, Transitioned
from runtime.stores.store import GuardBreach
from tests.support.stores.lifecycles import COURIER, ERRAND, LETTER, PARCEL, PERMIT
from tests.support.stores.records import (
    DEAD,
    HELD,
    HIGH,
    LOW,
    SHELVED,
    WAITING,
    CourierRecord,
    ErrandRecord,
    LetterRecord,
    ParcelRecord,
    PermitRecord,
    Policy,
)
from tests.support.stores.shop import Shop, refused, settlement


async def test_a_change_is_due_after_its_time(shop: Shop) -> None:
    """The exact moment is not late yet; and the clock gives along what the lifecycle says."""
    await shop.store(COURIER).create(CourierRecord(name="bob"), shop.call("client"))
    store, reaper = shop.store(ERRAND), shop.call("reaper")
    await store.create(ErrandRecord(key="a"), shop.call("client"))
    await store.claim("bob", 1, shop.call("runner"))
    shop.pass_s(10)
    assert await store.run_due("retry", reaper) == 0
    shop.pass_s(0.001)
    assert await store.run_due("retry", reaper) == 1
    record = await store.get("a")
    assert (record.state, record.error, record.tries) == (WAITING, "bob ran out of time", 1)
    assert await store.run_due("retry", reaper) == 0
    assert [each.actor for each in await store.history("a")] == ["client", "runner", "reaper"]


async def test_a_change_may_be_due_some_time_later(shop: Shop) -> None:
    """`after` is waited on top."""
    store = shop.store(LETTER)
    await store.create(LetterRecord(key="a"), shop.call("client"))
    await store.claim("bob", 1, shop.call("runner"))
    shop.pass_s(15)
    assert await store.run_due("retry", shop.call("reaper")) == 0
    shop.pass_s(0.001)
    assert await store.run_due("retry", shop.call("reaper")) == 1


async def test_a_clock_gives_up_too(shop: Shop) -> None:
    """What has failed too often ends by the clock as well."""
    store = shop.store(PERMIT)
    await store.create(PermitRecord(key="a"), shop.call("client"))
    for _ in range(3):
        await store.claim("bob", 1, shop.call("runner"))
        shop.pass_s(60)
        await store.run_due("fail", shop.call("reaper"))
        shop.pass_s(60)
        await store.run_due("requeue", shop.call("scheduler"))
    record = await store.get("a")
    assert (record.state, record.tries, record.error) == (DEAD, 3, "EXPIRED")


async def test_a_lost_holder_makes_its_leases_due(shop: Shop) -> None:
    """In the state that the clock names, or gone altogether."""
    couriers, store, client = shop.store(COURIER), shop.store(ERRAND), shop.call("client")
    await couriers.create(CourierRecord(name="bob"), client)
    await store.create(ErrandRecord(key="a"), client)
    await store.claim("bob", 1, shop.call("runner"))
    assert await store.run_due("retry", shop.call("reaper")) == 0
    await couriers.transition("bob", "lose", shop.call("reaper"))
    assert await store.run_due("retry", shop.call("reaper")) == 1
    assert (await store.get("a")).error == "lost"


async def test_a_holder_that_is_not_there_is_lost(shop: Shop) -> None:
    """Whatever is leased to it is due at once."""
    store = shop.store(ERRAND)
    await store.create(ErrandRecord(key="a"), shop.call("client"))
    await store.transition("a", "claim", shop.call("runner"), owner="ghost")
    assert await store.run_due("retry", shop.call("reaper")) == 1
    assert (await store.get("a")).error == "lost"


async def test_a_batch_is_bounded_and_the_oldest_come_first(shop: Shop) -> None:
    """By the variable of the clock; an update has its conditions."""
    store, promoter = shop.store(ERRAND), shop.call("promoter")
    for key in "abc":
        await store.create(ErrandRecord(key=key), shop.call("client"))
        shop.pass_s(1)
    shop.pass_s(60)
    assert await store.run_due("promote", promoter) == 2
    assert [(await store.get(key)).effective for key in "abc"] == [HIGH, HIGH, LOW]
    assert await store.run_due("promote", promoter) == 1
    assert await store.run_due("promote", promoter) == 0


async def test_an_update_by_the_clock_makes_it_claimable(shop: Shop) -> None:
    """What was held back is released when its time has come."""
    await shop.store(COURIER).create(CourierRecord(name="bob"), shop.call("client"))
    store = shop.store(ERRAND)
    await store.create(ErrandRecord(key="a", wait_until=shop.now(5)), shop.call("client"))
    assert await store.run_due("release", shop.call("sweeper")) == 0
    shop.pass_s(5.001)
    assert await store.run_due("release", shop.call("sweeper")) == 1
    assert len(await store.claim("bob", 1, shop.call("runner"))) == 1


async def test_only_the_clock_drives_it(shop: Shop) -> None:
    """By its principal; a change without a clock has none, and an update of the clock is not made by hand."""
    store = shop.store(ERRAND)
    with refused("permission_denied"):
        await store.run_due("retry", shop.call("runner"))
    with pytest.raises(GuardBreach, match="not driven by the clock"):
        await store.run_due("finish", shop.call("runner"))
    with pytest.raises(GuardBreach, match="is driven by the clock"):
        await store.transition("a", "promote", shop.call("promoter"))


async def test_a_deletion_may_be_due(shop: Shop) -> None:
    """What has been dead for long enough is deleted."""
    await shop.store(COURIER).create(CourierRecord(name="bob"), shop.call("client"))
    store, sweeper = shop.store(ERRAND), shop.call("sweeper")
    await store.create(ErrandRecord(key="a", limit=0), shop.call("client"))
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    assert await store.settle(settlement(record, "retry"), shop.call("runner")) == DEAD
    shop.pass_s(100)
    assert await store.run_due(DELETION, sweeper) == 0
    shop.pass_s(1)
    assert await store.run_due(DELETION, sweeper) == 1
    assert await store.get("a") is None


async def test_nothing_is_due_within_the_grace(shop: Shop) -> None:
    """So long after the store was opened; then whoever accesses an entity finds it changed."""
    store = shop.store(PARCEL)
    shop.world.wall_ms -= 20_000
    await store.create(ParcelRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    shop.world.wall_ms += 20_000
    assert (await store.get("a")).state == HELD
    shop.pass_s(5)
    record = await store.get("a")
    assert (record.state, record.owner, record.tries) == (WAITING, None, 2)
    assert (await store.history("a"))[-1].actor == "keeper"


async def test_an_access_takes_what_is_due_first(shop: Shop) -> None:
    """A late owner has lost its lease; a claim finds what was abandoned."""
    store, runner = shop.store(PARCEL), shop.call("runner")
    await store.create_many([ParcelRecord(key=key) for key in "ab"], shop.call("client"))
    first, second = await store.claim("bob", 2, runner)
    shop.pass_s(11)
    with refused("lease_lost"):
        await store.settle(settlement(first, "finish"), runner)
    assert (await store.get("a")).state == WAITING
    assert [each.key for each in await store.claim("eve", 9, runner)] == ["a", "b"]
    assert second.owner == "bob"


async def test_an_access_may_take_a_lease(shop: Shop) -> None:
    """The edge that is taken first is as any other, whatever was asked: a lease has its token, too."""
    by_access = Due(at="ready_at", by="runner", every="EVERY", on_access=True)
    edges = {
        ends: replace(each, dues=(by_access,)) if each.name == "claim" else each
        for ends, each in LETTER.edges.items()
    }
    words = {"deletable": frozenset({WAITING}), "deleters": frozenset({"client"})}
    store = shop.store(replace(LETTER, edges=edges, **words))
    for key in ("a", "b"):
        await store.create(LetterRecord(key=key), shop.call("client"))
    shop.pass_s(1)
    record = await store.update("a", policy=Policy(base_ms=5))
    assert record.state == HELD
    assert record.token is not None
    answer = await store.delete("b", WAITING, shop.call("client"))
    assert answer == Transitioned(False, HELD)


async def test_a_clock_drives_an_update_in_each_of_its_states(shop: Shop) -> None:
    """It finds those of all states, the longest overdue first."""
    note = Update(
        name="note",
        states=frozenset({WAITING, SHELVED}),
        actors=frozenset({"scheduler"}),
        sets={"error": "old"},
        stamps=("moved_at",),
        dues=(Due(at="moved_at", by="scheduler", every="EVERY", after="LEASE_S"),),
    )
    store, runner = shop.store(replace(PERMIT, updates={"note": note})), shop.call("runner")
    await store.create(PermitRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, runner)
    await store.settle(settlement(record, "give_back"), runner)
    await store.create(PermitRecord(key="b"), shop.call("client"))
    shop.pass_s(11)
    assert await store.run_due("note", shop.call("scheduler")) == 2
    assert [(await store.get(key)).error for key in ("a", "b")] == ["old", "old"]
