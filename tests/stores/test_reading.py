"""Listing, history, counts, deletion, purge and retention."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.stores.contract import Cursor, Transitioned
from runtime.stores.store import GuardBreach, NoSuchEntity
from tests.support.stores.lifecycles import COURIER, ERRAND, PARCEL, PERMIT
from tests.support.stores.records import (
    DEAD,
    DONE,
    HELD,
    IDLE,
    SHELVED,
    WAITING,
    CourierRecord,
    ErrandRecord,
    ParcelRecord,
    PermitRecord,
)
from tests.support.stores.shop import Shop, refused, settlement


async def add_parcels(shop: Shop) -> Any:
    """Six parcels, two at each moment, of which two are leased."""
    store = shop.store(PARCEL)
    for pair in ("ab", "cd", "ef"):
        await store.create_many([ParcelRecord(key=key) for key in pair], shop.call("client"))
        shop.pass_s(1)
    await store.claim("bob", 2, shop.call("runner"))
    return store


def keys(page: Any) -> str:
    return "".join(each.key for each in page.records)


async def test_a_listing_is_ordered_by_time_and_key(shop: Shop) -> None:
    """In both directions keys ascend within a moment; a change moves an entity in the listing."""
    store = await add_parcels(shop)
    assert keys(await store.find()) == "abefcd"
    assert keys(await store.find(newest_first=False)) == "cdefab"


async def test_a_listing_goes_on_behind_a_cursor(shop: Shop) -> None:
    """Page by page nothing is missed and nothing comes twice; the last page has no cursor."""
    store = await add_parcels(shop)
    for newest_first, wanted in ((True, "abefcd"), (False, "cdefab")):
        found, cursor = "", None
        while True:
            page = await store.find(size=2, after=cursor, newest_first=newest_first)
            found, cursor = found + keys(page), page.next
            if cursor is None:
                break
        assert found == wanted
    page = await store.find(size=6)
    assert page.next is None


async def test_a_cursor_needs_no_entity(shop: Shop) -> None:
    """It is a place in the order, whoever is there."""
    store = await add_parcels(shop)
    at = (shop.world.wall_ms - 2000) * 1000
    assert keys(await store.find(after=Cursor(at, "cc"), newest_first=False)) == "defab"
    assert keys(await store.find(after=Cursor(at, "cc"))) == "d"


async def test_a_listing_skips_an_offset(shop: Shop) -> None:
    """In any mix of states."""
    store = await add_parcels(shop)
    assert keys(await store.find(offset=1, size=3)) == "bef"
    assert keys(await store.find(offset=6)) == keys(await store.find(offset=2**63 - 1)) == ""
    assert (await store.find(offset=4, size=2)).next is None


async def test_a_listing_is_narrowed(shop: Shop) -> None:
    """By states, by equality, and by a range of times."""
    store = await add_parcels(shop)
    assert keys(await store.find(states=[HELD])) == "ab"
    assert keys(await store.find(states=[HELD, DONE, WAITING])) == "abefcd"
    assert keys(await store.find(equal={"owner": "bob", "key": "b"})) == "b"
    start = shop.world.wall_ms - 2000
    assert keys(await store.find(since=start, until=start + 1000)) == "cd"
    assert keys(await store.find(until=start + 1000, newest_first=False)) == "cd"
    assert keys(await store.find(since=start + 1, newest_first=False)) == "efab"
    with pytest.raises(GuardBreach, match="has no wings"):
        await store.find(equal={"wings": 2})


async def test_times_of_a_listing_may_be_datetimes(shop: Shop) -> None:
    """As the field is that orders it."""
    store = shop.store(PERMIT)
    for key in "ab":
        await store.create(PermitRecord(key=key), shop.call("client"))
        shop.pass_s(1)
    assert keys(await store.find(since=shop.now(-1))) == "b"


async def test_a_count_is_by_state(shop: Shop) -> None:
    """Of all states, or of some."""
    store = await add_parcels(shop)
    assert await store.count() == {WAITING: 4, HELD: 2, DONE: 0, DEAD: 0, SHELVED: 0}
    assert await store.count([HELD]) == {HELD: 2}
    start = shop.world.wall_ms - 2000
    assert await store.count([WAITING], since=start + 1) == {WAITING: 4 - len("cd")}
    assert await store.count([WAITING], since=start) == {WAITING: 4}


async def test_what_a_process_has_itself_is_measured() -> None:
    """Of every state how many there are, and how old the oldest is."""
    shop = Shop("memory")
    await add_parcels(shop)
    census = {state: (count, age) for _, state, count, age in _census(shop)}
    assert census["WAITING"] == (4, 2.0)


def _census(shop: Shop) -> Any:
    (store,) = shop.metrics._values.stores
    return store.census()


async def test_a_history_has_every_change_of_state(shop: Shop) -> None:
    """With actor, time, lease and reason, numbered; neither updates nor renewals are in it."""
    await shop.store(COURIER).create(CourierRecord(name="bob"), shop.call("client"))
    store = shop.store(ERRAND)
    await store.create(ErrandRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    await store.update("a", remark="x")
    shop.pass_s(2)
    await store.settle(settlement(record, "retry", reason="tired"), shop.call("runner"))
    first, second, third = await store.history("a")
    assert first[:5] == (1, "create", None, WAITING, "client")
    assert second[:5] == (2, "claim", WAITING, HELD, "runner")
    assert third[:5] == (3, "retry", HELD, WAITING, "runner")
    assert (third.at, third.fence, third.owner, third.reason) == (shop.now(), 1, "bob", "tired")
    assert await store.history("b") == []


async def test_a_deletion_has_its_state_and_its_caller(shop: Shop) -> None:
    """Only in the expected state, only where it may be deleted, and only by whom the lifecycle names."""
    store, client = shop.store(PARCEL), shop.call("client")
    await store.create(ParcelRecord(key="a"), client)
    assert await store.delete("a", DONE, client) == Transitioned(False, WAITING)
    assert await store.delete("a", WAITING, client) == Transitioned(False, WAITING)
    with refused("permission_denied"):
        await store.delete("a", WAITING, shop.call("runner"))
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    await store.settle(settlement(record, "finish"), shop.call("runner"))
    assert await store.delete("a", DONE, client) == Transitioned(True, DONE)
    assert await store.get("a") is None and await store.history("a") == []
    with pytest.raises(NoSuchEntity):
        await store.delete("a", DONE, client)
    assert shop.lines.read_back("transition")[-1]["transition"] == "delete"


async def test_nobody_is_deleted_who_holds_something(shop: Shop) -> None:
    """A courier with errands stays until they are settled."""
    couriers, store = shop.store(COURIER), shop.store(ERRAND)
    await couriers.create(CourierRecord(name="bob"), shop.call("client"))
    await store.create(ErrandRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    with refused("still_held"):
        await couriers.delete("bob", IDLE, shop.call("client"))
    await store.settle(settlement(record, "finish"), shop.call("runner"))
    assert (await couriers.delete("bob", IDLE, shop.call("client"))).applied


async def test_a_purge_takes_what_is_old(shop: Shop) -> None:
    """All that may be deleted and has not changed for longer than this."""
    store, runner = shop.store(PARCEL), shop.call("runner")
    await store.create_many([ParcelRecord(key=key) for key in "abc"], shop.call("client"))
    for record in await store.claim("bob", 2, runner):
        await store.settle(settlement(record, "finish"), runner)
        shop.pass_s(5)
    assert await store.purge(10, shop.call("client")) == 0
    assert await store.purge(7, shop.call("client")) == 1
    assert keys(await store.find(newest_first=False)) == "cb"
    with refused("permission_denied"):
        await store.purge(1, runner)


async def test_terminal_entities_are_bounded_by_number(engine: str) -> None:
    """Beyond the bound the one that ended first is forgotten; a live one never is."""
    shop = Shop(engine, max_terminal=2)
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create_many([PermitRecord(key=key) for key in "abcd"], shop.call("client"))
    for record in await store.claim("bob", 3, runner):
        await store.settle(settlement(record, "finish"), runner)
    assert keys(await store.find(newest_first=False)) == "bcd"
    assert await store.get("a") is None and await store.history("a") == []
    with pytest.raises(NoSuchEntity):
        await store.transition("a", "requeue", shop.call("scheduler"))


async def test_terminal_entities_are_bounded_by_time(shop: Shop) -> None:
    """So long after their end they are forgotten, from listings and counts too."""
    store, client = shop.store(ERRAND), shop.call("client")
    await store.create_many([ErrandRecord(key=key, ticket=key) for key in "ab"], client)
    await store.transition("a", "cancel", client)
    shop.pass_s(999.9)
    assert await store.get("a") is not None
    shop.pass_s(0.1)
    assert (await store.count())[SHELVED] == 0 and keys(await store.find()) == "b"
    assert await store.get("a") is None


async def test_a_key_that_is_used_again_has_a_life_of_its_own(engine: str) -> None:
    """What was to become of an earlier entity of the same key does not happen to the later one."""
    shop = Shop(engine, max_terminal=1)
    store, client = shop.store(ERRAND), shop.call("client")
    await store.create_many([ErrandRecord(key=key) for key in "ab"], client)
    for key in "ab":
        await store.transition(key, "cancel", client)
    assert (await store.create(ErrandRecord(key="a"), client)).is_new
    shop.pass_s(1000)
    assert await store.get("b") is None
    assert (await store.get("a")).state == WAITING


async def test_a_store_says_whether_it_can_be_used(shop: Shop) -> None:
    """None where it can."""
    assert await shop.store(PERMIT).health() is None


async def test_stores_of_one_entity_have_the_same_records(shop: Shop) -> None:
    """Whoever opens it."""
    await shop.store(PERMIT).create(PermitRecord(key="a"), shop.call("client"))
    assert await shop.store(PERMIT).get("a") is not None
