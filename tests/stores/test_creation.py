"""Creation: the first record, unique values, the ceiling, and who may."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.stores.contract import LeaseProof
from runtime.stores.store import GuardBreach
from tests.support.stores.lifecycles import COURIER, ERRAND, LETTER, PARCEL
from tests.support.stores.records import (
    DEAD,
    DONE,
    HIGH,
    LOW,
    SHELVED,
    VARIABLES,
    WAITING,
    CourierRecord,
    ErrandRecord,
    LetterRecord,
    ParcelRecord,
)
from tests.support.stores.shop import Shop, refused, settlement


async def test_the_first_record_is_the_stores(shop: Shop) -> None:
    """State, stamps, copies, fills and the lease are written by the store, whatever a record brings."""
    store = shop.store(ERRAND)
    forged = ErrandRecord(
        key="a", state=DONE, urgency=HIGH, owner="x", fence=7, ends_at=shop.now(), made_at=shop.now(99)
    )
    made, is_new, is_refused, _ = await store.create(forged, shop.call("client"))
    assert (is_new, is_refused) == (True, False)
    assert made == ErrandRecord(
        key="a",
        state=WAITING,
        urgency=HIGH,
        effective=HIGH,
        length=5,
        first_length=5,
        made_at=shop.now(),
        moved_at=shop.now(),
    )
    assert await store.get("a") == made


async def test_a_given_value_is_not_filled(shop: Shop) -> None:
    """`defaults` stand in for what was not given; a copy has the filled value, or the given one."""
    store = shop.store(ERRAND)
    made = (await store.create(ErrandRecord(key="a", urgency=LOW, length=3), shop.call("client"))).record
    assert (made.length, made.first_length) == (3, 3)


async def test_times_are_what_the_record_has(shop: Shop) -> None:
    """A stamp is a datetime in one record, and milliseconds in another."""
    made = (await shop.store(PARCEL).create(ParcelRecord(key="p"), shop.call("client"))).record
    assert made.made_at == shop.world.wall_ms


async def test_only_creators_create(shop: Shop) -> None:
    """Nobody else may, and nothing is created then."""
    store = shop.store(COURIER)
    with refused("permission_denied"):
        await store.create(CourierRecord(name="a"), shop.call("runner"))
    assert await store.get("a") is None


async def test_a_key_is_taken_once(shop: Shop) -> None:
    """A second entity under a key is a fault of the handler."""
    store = shop.store(COURIER)
    await store.create(CourierRecord(name="a"), shop.call("client"))
    with pytest.raises(GuardBreach, match="exists already"):
        await store.create(CourierRecord(name="a"), shop.call("client"))
    with pytest.raises(GuardBreach, match="exists already"):
        await store.create_many([CourierRecord(name="b"), CourierRecord(name="a")], shop.call("client"))
    assert await store.get("b") is None


async def test_a_unique_value_finds_its_entity(shop: Shop) -> None:
    """A second record with the same value finds the first; no value, or an empty one, is no value."""
    store, client = shop.store(PARCEL), shop.call("client")
    first = (await store.create(ParcelRecord(key="a", ticket="t"), client)).record
    assert (await store.create(ParcelRecord(key="b", ticket="t"), client))[:3] == (first, False, False)
    assert (await store.create(ParcelRecord(key="a", ticket="t"), client))[:3] == (first, False, False)
    for key, ticket in (("c", None), ("d", None), ("e", ""), ("f", "")):
        made = await store.create(ParcelRecord(key=key, ticket=ticket), client)
        assert (made.is_new, made.record.ticket) == (True, None)


async def test_a_unique_value_is_free_when_its_entity_is_gone(shop: Shop) -> None:
    """Whoever deletes an entity frees its values."""
    store, client, runner = shop.store(PARCEL), shop.call("client"), shop.call("runner")
    await store.create(ParcelRecord(key="a", ticket="t"), client)
    await store.transition("a", "claim", runner)
    await store.transition("a", "finish", runner, lease=LeaseProof("", 0))
    assert (await store.delete("a", DONE, client)).applied
    assert (await store.create(ParcelRecord(key="b", ticket="t"), client)).is_new


async def test_a_unique_value_may_be_forgotten(shop: Shop) -> None:
    """Where the lifecycle says for how long, the value is free after that."""
    store, client = shop.store(ERRAND), shop.call("client")
    await store.create(ErrandRecord(key="a", ticket="t"), client)
    shop.pass_s(59.9)
    assert not (await store.create(ErrandRecord(key="b", ticket="t"), client)).is_new
    shop.pass_s(0.1)
    assert (await store.create(ErrandRecord(key="b", ticket="t"), client)).is_new
    assert (await store.create(ErrandRecord(key="c", ticket="t"), client)).record.key == "b"


async def test_a_remembered_value_is_free_with_its_entity(shop: Shop) -> None:
    """What is unique for some time belongs to nothing once the entity is gone."""
    store, client = shop.store(ERRAND), shop.call("client")
    await shop.store(COURIER).create(CourierRecord(name="bob"), client)
    await store.create(ErrandRecord(key="a", ticket="t"), client)
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    await store.settle(settlement(record, "bury"), shop.call("runner"))
    assert (await store.delete("a", DEAD, shop.call("admin"))).applied
    assert (await store.create(ErrandRecord(key="b", ticket="t"), client)).is_new


async def test_a_unique_value_goes_on_to_a_later_entity(shop: Shop) -> None:
    """The end of an entity does not free a value that another has taken over meanwhile."""
    store, client = shop.store(ERRAND), shop.call("client")
    await store.create(ErrandRecord(key="a", ticket="t"), client)
    await store.transition("a", "cancel", client)
    shop.pass_s(950)
    assert (await store.create(ErrandRecord(key="b", ticket="t"), client)).is_new
    shop.pass_s(55)
    assert await store.get("a") is None
    assert (await store.create(ErrandRecord(key="c", ticket="t"), client)).record.key == "b"


async def test_many_are_one_step(shop: Shop) -> None:
    """Of two alike the later finds the first, and what the comparison raises undoes all."""
    store, client = shop.store(PARCEL), shop.call("client")
    wanted = [ParcelRecord(key=key, ticket=ticket) for key, ticket in (("a", "t"), ("b", "t"), ("c", "u"))]
    seen: list[Any] = []
    results = await store.create_many(wanted, client, compare=lambda new, old: seen.append((new, old.key)))
    assert [(each.record.key, each.is_new) for each in results] == [("a", True), ("a", False), ("c", True)]
    assert seen == [(wanted[1], "a")]

    def refuse(_new: Any, _old: Any) -> None:
        raise ValueError("another one")

    with pytest.raises(ValueError, match="another one"):
        more = [ParcelRecord(key="d"), ParcelRecord(key="e", ticket="t")]
        await store.create_many(more, client, compare=refuse)
    assert await store.get("d") is None


async def test_a_ceiling_refuses(shop: Shop) -> None:
    """As many as the index may hold; `create` raises, `create_many` says so of each by itself."""
    store, client = shop.store(ERRAND), shop.call("client")
    wanted = [ErrandRecord(key=key) for key in "abcd"]
    results = await store.create_many(wanted, client)
    assert [(each.is_new, each.is_refused) for each in results] == [(True, False)] * 3 + [(False, True)]
    assert await store.get("d") is None
    with refused("store_full"):
        await store.create(ErrandRecord(key="d"), client)
    await store.transition("a", "cancel", client)
    assert (await store.create(ErrandRecord(key="d"), client)).is_new


async def test_no_ceiling_is_no_limit(engine: str) -> None:
    """0 is no limit. What the index does not have does not count."""
    shop = Shop(engine, {**VARIABLES, "MOST_WAITING": 0})
    store = shop.store(ERRAND)
    results = await store.create_many([ErrandRecord(key=str(n)) for n in range(9)], shop.call("client"))
    assert all(each.is_new for each in results)
    shop = Shop(engine, {**VARIABLES, "MOST_WAITING": 1})
    held_back = [ErrandRecord(key=key, wait_until=shop.now(5)) for key in "ab"]
    store = shop.store(ERRAND)
    results = await store.create_many([*held_back, ErrandRecord(key="c")], shop.call("client"))
    assert all(each.is_new for each in results)


async def test_a_time_that_has_passed_holds_nothing_back(shop: Shop) -> None:
    """A new entity that should wait until a time that is over does not wait."""
    store, client = shop.store(ERRAND), shop.call("client")
    over = (await store.create(ErrandRecord(key="a", wait_until=shop.now()), client)).record
    ahead = (await store.create(ErrandRecord(key="b", wait_until=shop.now(1)), client)).record
    assert (over.wait_until, ahead.wait_until) == (None, shop.now(1))


async def test_the_time_of_the_first_claim_may_lie_ahead(shop: Shop) -> None:
    """A stamp before which nothing is claimed stays if it lies ahead; an earlier one is now."""
    store, client = shop.store(LETTER), shop.call("client")
    ahead = (await store.create(LetterRecord(key="a", ready_at=shop.now(9)), client)).record
    behind = (await store.create(LetterRecord(key="b", ready_at=shop.now(-9)), client)).record
    assert (ahead.ready_at, behind.ready_at) == (shop.now(9), shop.now())


async def test_a_creator_takes_edges_in_the_same_step(shop: Shop) -> None:
    """What `then` names is taken with the creation; an entity that is found stays as it is."""
    store, client = shop.store(ERRAND), shop.call("client")
    made = await store.create(ErrandRecord(key="a", ticket="t"), client, then=["cancel"])
    assert (made.is_new, made.record) == (True, await store.get("a"))
    assert made.record.state == SHELVED
    entries = await store.history("a")
    assert [(each.edge, each.source, each.target) for each in entries] == [
        ("create", None, WAITING),
        ("cancel", WAITING, SHELVED),
    ]
    results = await store.create_many(
        [ErrandRecord(key="b", ticket="t"), ErrandRecord(key="c", ticket="u"), ErrandRecord(key="d")],
        client,
        then=["cancel"],
    )
    assert [(each.record.key, each.is_new, each.record.state) for each in results] == [
        ("a", False, SHELVED),
        ("c", True, SHELVED),
        ("d", True, SHELVED),
    ]


async def test_an_edge_that_does_not_apply_creates_nothing(shop: Shop) -> None:
    """Neither one that the new record does not fit, nor one that the creator may not take."""
    store, client = shop.store(ERRAND), shop.call("client")
    with pytest.raises(GuardBreach, match="cancel of a new errand does not apply"):
        await store.create_many(
            [ErrandRecord(key="a"), ErrandRecord(key="b", mode=1)], client, then=["cancel"]
        )
    with refused("permission_denied"):
        await store.create(ErrandRecord(key="a"), client, then=["claim"])
    with pytest.raises(GuardBreach, match="has no transition fly"):
        await store.create(ErrandRecord(key="a"), client, then=["fly"])
    assert (await store.count())[WAITING] == 0


async def test_a_value_is_remembered_again_where_a_clock_steps_back() -> None:
    """That it was looked for when it was not remembered any more changes nothing in memory."""
    shop = Shop("memory")
    store, client = shop.store(ERRAND), shop.call("client")
    await store.create(ErrandRecord(key="a", ticket="t"), client)
    shop.pass_s(60)
    with pytest.raises(GuardBreach):
        await store.create(ErrandRecord(key="a", ticket="t"), client)
    shop.pass_s(-1)
    assert not (await store.create(ErrandRecord(key="b", ticket="t"), client)).is_new
