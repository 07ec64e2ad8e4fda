"""Transitions: by name, guarded by state, actor, conditions and lease; and what each word writes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from runtime.model.lifecycles import Backoff, Overrides, Update
from runtime.stores.contract import LeaseProof, Transitioned
from runtime.stores.store import GuardBreach, NoSuchEntity, Unstorable
from tests.support.stores.lifecycles import COURIER, ERRAND, LETTER, PARCEL, PERMIT, with_edges
from tests.support.stores.records import (
    DEAD,
    DONE,
    HELD,
    SHELVED,
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


async def held_errand(shop: Shop, **fields: Any) -> Any:
    """An errand that a courier has claimed."""
    await shop.store(COURIER).create(CourierRecord(name="bob", room=9), shop.call("client"))
    store = shop.store(ERRAND)
    await store.create(ErrandRecord(key="a", **fields), shop.call("client"))
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    return record


async def test_an_edge_is_taken_from_its_source_only(shop: Shop) -> None:
    """In another state nothing happens, and the answer says which."""
    store, client = shop.store(ERRAND), shop.call("client")
    await store.create(ErrandRecord(key="a"), client)
    assert await store.transition("a", "cancel", client) == Transitioned(True, SHELVED)
    assert await store.transition("a", "cancel", client) == Transitioned(False, SHELVED)
    with pytest.raises(NoSuchEntity):
        await store.transition("b", "cancel", client)
    with pytest.raises(GuardBreach, match="no transition fly"):
        await store.transition("a", "fly", client)


async def test_an_edge_has_its_actors(shop: Shop) -> None:
    """Others are refused, and nothing changes."""
    store = shop.store(ERRAND)
    made = (await store.create(ErrandRecord(key="a"), shop.call("client"))).record
    with refused("permission_denied"):
        await store.transition("a", "cancel", shop.call("runner"))
    assert await store.get("a") == made


async def test_states_name_an_edge(shop: Shop) -> None:
    """A request with states finds the edge between them, and the one by name for who may not the other."""
    store = shop.store(LETTER)
    assert store.edge_between(WAITING, DEAD, shop.call("client")).name == "cancel"
    assert store.edge_between(HELD, DEAD, shop.call("runner")).name == "fail"
    assert store.edge_between(HELD, DEAD, shop.call("client")).name == "cancel"
    with refused("illegal_transition"):
        store.edge_between(DONE, WAITING, shop.call("client"))
    with refused("permission_denied"):
        store.edge_between(WAITING, HELD, shop.call("client"))


async def test_when_and_where_are_conditions(shop: Shop) -> None:
    """All flags must be set and all values equal."""
    store, client = shop.store(ERRAND), shop.call("client")
    for key, mode, wanted, edge, applied in (
        ("a", 1, True, "skip", True),
        ("b", 1, False, "skip", False),
        ("c", 0, True, "skip", False),
        ("d", 1, True, "cancel", False),
        ("e", 0, False, "cancel", True),
    ):
        await store.create(ErrandRecord(key=key, mode=mode, wanted=wanted), client)
        assert (await store.transition(key, edge, client)).applied is applied, key
        if not applied:
            await store.update(key, mode=0)
            await store.transition(key, "cancel", client)


async def test_stamps_never_go_back(shop: Shop) -> None:
    """A clock that steps back makes no entity older than it was; a time that lies ahead is no stamp."""
    store, client = shop.store(ERRAND), shop.call("client")
    later = shop.now()
    await store.create(ErrandRecord(key="a", wait_until=shop.now(500)), client)
    shop.pass_s(-10)
    await store.transition("a", "cancel", client)
    record = await store.get("a")
    assert (record.made_at, record.moved_at) == (later, later)
    letters = shop.store(LETTER)
    await letters.create(LetterRecord(key="x", ready_at=shop.now(500)), client)
    await letters.transition("x", "cancel", client)
    assert (await letters.get("x")).moved_at == shop.now()


async def test_an_edge_takes_what_the_request_says(shop: Shop) -> None:
    """Typed as the field is; a default for an empty one; the first is kept where the edge says so."""
    store, runner = shop.store(ERRAND), shop.call("runner")
    record = await held_errand(shop)
    await store.settle(settlement(record, "retry", error="broken", again="true"), runner)
    record = await store.get("a")
    assert (record.error, record.first_error, record.again) == ("broken", "broken", True)
    shop.pass_s(10)
    await store.run_due("release", shop.call("sweeper"))
    (record,) = await store.claim("bob", 1, runner)
    assert record.error is None
    await store.settle(settlement(record, "retry", error=""), runner)
    record = await store.get("a")
    assert (record.error, record.first_error, record.again) == ("unknown", "broken", None)


async def test_a_text_that_is_no_number_is_refused(shop: Shop) -> None:
    """Where a number is taken; nothing changes then."""
    record = await held_errand(shop)
    store, runner = shop.store(ERRAND), shop.call("runner")
    with pytest.raises(Unstorable, match="progress of a errand is a number"):
        await store.transition("a", "advance", runner, lease=proof(record), given={"progress": "much"})
    assert await store.get("a") == record


async def test_an_edge_sets_copies_clears_grows_and_counts(shop: Shop) -> None:
    """Each word writes its field, from the record as it was."""
    store, runner = shop.store(ERRAND), shop.call("runner")
    record = await held_errand(shop, length=7, limit=0)
    await store.settle(settlement(record, "retry", error="no"), runner)
    record = await store.get("a")
    assert (record.state, record.why, record.error, record.tries) == (DEAD, "tried too often", "no", 0)
    assert (await store.transition("a", "revive", shop.call("admin"))).applied
    record = await store.get("a")
    assert (record.why, record.owner, record.ended_at, record.tries, record.length) == (None,) * 3 + (0, 7)
    record = await held_errand_again(shop, limit=9)
    assert record.length == 11
    assert (record.tries, record.begun_at, record.effective) == (1, None, record.urgency)


async def held_errand_again(shop: Shop, **fields: Any) -> Any:
    """An errand that was claimed once more, and has failed once."""
    store, runner = shop.store(ERRAND), shop.call("runner")
    await store.update("a", **fields)
    (record,) = await store.claim("bob", 1, runner)
    await store.settle(settlement(record, "retry"), runner)
    return await store.get("a")


async def test_growth_is_rounded_up_and_bounded(shop: Shop) -> None:
    """7 becomes 11, 17 and then no more than the variable says."""
    store, runner = shop.store(ERRAND), shop.call("runner")
    record = await held_errand(shop, length=7, limit=99)
    lengths = []
    for _ in range(4):
        await store.settle(settlement(record, "retry"), runner)
        shop.pass_s(60)
        await store.run_due("release", shop.call("sweeper"))
        (record,) = await store.claim("bob", 1, runner)
        lengths.append(record.length)
    assert lengths == [11, 17, 20, 20]


async def test_a_backoff_doubles_to_the_most(shop: Shop) -> None:
    """By the count of failures, in seconds of the variables."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create(PermitRecord(key="a"), shop.call("client"))
    waits = []
    for _ in range(2):
        (record,) = await store.claim("bob", 1, runner)
        await store.settle(settlement(record, "fail"), runner)
        waits.append((await store.get("a")).wait_until - shop.now())
        shop.pass_s(60)
        await store.run_due("requeue", shop.call("scheduler"))
    assert [each.total_seconds() for each in waits] == [2.0, 4.0]
    assert (await store.get("a")).wait_until is None


async def test_a_backoff_of_the_record_has_its_factor_and_jitter(shop: Shop) -> None:
    """Milliseconds by a path, by any factor, and jitter that the world draws; never over the most."""
    store, runner = shop.store(LETTER), shop.call("runner")
    policy = Policy(base_ms=1000, most_ms=4000, factor=3.0, jitter=0.5)
    await store.create(LetterRecord(key="a", limit=9, policy=policy), shop.call("client"))
    waits = []
    for _ in range(3):
        (record,) = await store.claim("bob", 1, runner)
        await store.settle(settlement(record, "retry"), runner)
        waits.append(((await store.get("a")).ready_at - shop.now()).total_seconds())
        shop.pass_s(5)
    assert waits == [1.5, 4.0, 4.0]
    assert len(shop.world.drawn) == 3


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Backoff("wait_until", base=1.5, count="tries", max=9, times=3.0), [1.5, 4.5, 9.0]),
        (Backoff("wait_until", base="BASE_S", count="tries", max="MOST_S", kind="linear"), [2.0, 4.0, 6.0]),
        (Backoff("wait_until", base="BASE_S", count="tries", max=5.0, kind="linear"), [2.0, 4.0, 5.0]),
        (Backoff("wait_until", base="BASE_S", kind="constant"), [2.0, 2.0, 2.0]),
        (Backoff("wait_until", base=4.0, max=5.0, jitter=0.5, kind="constant"), [5.0, 5.0, 5.0]),
    ],
)
async def test_a_backoff_grows_as_its_kind_says(engine: str, backoff: Backoff, waits: list[float]) -> None:
    """By a factor, by its base or not at all; each number is one of the lifecycle or of a variable."""
    shop = Shop(engine, {**VARIABLES, "MAX_TRIES": 9})
    store, runner = (
        shop.store(with_edges(PERMIT, replace(PERMIT.transition("fail"), backoff=backoff))),
        shop.call("runner"),
    )
    await store.create(PermitRecord(key="a"), shop.call("client"))
    seen = []
    for _ in waits:
        (record,) = await store.claim("bob", 1, runner)
        await store.settle(settlement(record, "fail"), runner)
        seen.append(((await store.get("a")).wait_until - shop.now()).total_seconds())
        shop.pass_s(60)
        await store.run_due("requeue", shop.call("scheduler"))
    assert seen == waits


async def test_a_backoff_of_the_record_is_linear(shop: Shop) -> None:
    """The base of each record, in milliseconds."""
    backoff = Backoff("ready_at", base="policy.base_ms", count="tries", max="policy.most_ms", kind="linear")
    store, runner = (
        shop.store(with_edges(LETTER, replace(LETTER.transition("retry"), backoff=backoff))),
        shop.call("runner"),
    )
    policy = Policy(base_ms=500, most_ms=1200)
    await store.create(LetterRecord(key="a", limit=9, policy=policy), shop.call("client"))
    waits = []
    for _ in range(3):
        (record,) = await store.claim("bob", 1, runner)
        await store.settle(settlement(record, "retry"), runner)
        waits.append(((await store.get("a")).ready_at - shop.now()).total_seconds())
        shop.pass_s(5)
    assert waits == [0.5, 1.0, 1.2]


async def test_a_counter_begins_anew(shop: Shop) -> None:
    """An edge that sets it to 0 ends the row of failures: waits are short again, and nothing is given up."""
    by_hand = {"actors": frozenset({"client"}), "dead_letter": None, "dues": ()}
    anew = replace(PERMIT.transition("requeue"), **by_hand, sets={"tries": 0})
    store, runner = shop.store(with_edges(PERMIT, anew)), shop.call("runner")
    await store.create(PermitRecord(key="a"), shop.call("client"))
    seen = []
    for _ in range(4):
        (record,) = await store.claim("bob", 1, runner)
        assert await store.settle(settlement(record, "fail"), runner) == SHELVED
        failed = await store.get("a")
        seen.append((failed.tries, (failed.wait_until - shop.now()).total_seconds()))
        await store.transition("a", "requeue", shop.call("client"))
        assert (await store.get("a")).tries == 0
    assert seen == [(1, 2.0)] * 4
    assert (await store.get("a")).fence == 4, "claims go on being counted"


async def test_an_update_resets_a_counter(shop: Shop) -> None:
    """The state stays, and the next failure is the first."""
    forgive = Update(
        name="forgive", states=frozenset({SHELVED}), actors=frozenset({"client"}), sets={"tries": 0}
    )
    store, runner = shop.store(replace(PERMIT, updates={"forgive": forgive})), shop.call("runner")
    await store.create(PermitRecord(key="a"), shop.call("client"))
    for tries in (1, 2, 1, 2):
        (record,) = await store.claim("bob", 1, runner)
        assert await store.settle(settlement(record, "fail"), runner) == SHELVED
        assert (await store.get("a")).tries == tries
        if tries == 2:
            assert await store.transition("a", "forgive", shop.call("client")) == Transitioned(True, SHELVED)
            assert (await store.get("a")).tries == 0
        shop.pass_s(60)
        assert await store.run_due("requeue", shop.call("scheduler")) == 1


async def test_a_wait_of_no_length_holds_nothing_back(engine: str) -> None:
    """Where an index holds back by the time, no wait leaves it unset."""
    shop = Shop(engine, {**VARIABLES, "BASE_S": 0.0})
    record = await held_errand(shop)
    store = shop.store(ERRAND)
    await store.settle(settlement(record, "retry"), shop.call("runner"))
    assert (await store.get("a")).wait_until is None
    assert len(await store.claim("bob", 1, shop.call("runner"))) == 1


async def test_a_text_of_the_record_overrides_variables(shop: Shop) -> None:
    """Limits and waits of some entities are other ones; all else is by the variables."""
    overrides = Overrides("error", {"soft": {"BASE_S": 5.0, "MAX_TRIES": 1}})
    store, runner = shop.store(replace(PERMIT, overrides=overrides)), shop.call("runner")
    await store.create_many([PermitRecord(key="a", error="soft"), PermitRecord(key="b")], shop.call("client"))
    for record, seconds in zip(await store.claim("bob", 2, runner), (5.0, 2.0), strict=True):
        await store.settle(settlement(record, "fail", error=record.error), runner)
        assert (await store.get(record.key)).wait_until == shop.now(seconds)
    shop.pass_s(60)
    await store.run_due("requeue", shop.call("scheduler"))
    ends = [
        await store.settle(settlement(record, "fail", error=record.error), runner)
        for record in await store.claim("bob", 2, runner)
    ]
    assert ends == [DEAD, SHELVED]


async def test_an_edge_without_a_wait_ends_it_at_once(shop: Shop) -> None:
    """Given back, a permit waits for nothing; anywhere else there is no wait at all."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    await store.create(PermitRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, runner)
    await store.settle(settlement(record, "give_back"), runner)
    assert (await store.get("a")).wait_until == shop.now()


async def test_a_time_that_orders_claims_outlives_the_wait(shop: Shop) -> None:
    """An entity is as old after an edge as before it, unless the edge has a wait or a stamp."""
    store, runner = shop.store(LETTER), shop.call("runner")
    await store.create(LetterRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, runner)
    shop.pass_s(3)
    await store.settle(settlement(record, "finish"), runner)
    assert (await store.get("a")).ready_at == record.ready_at == shop.now(-3)


async def test_giving_up_in_place(shop: Shop) -> None:
    """At the limit the ending edge is taken instead, with what was given; `less` is no failure."""
    store, runner = shop.store(PARCEL), shop.call("runner")
    await store.create(ParcelRecord(key="a"), shop.call("client"))
    (record,) = await store.claim("bob", 1, runner)
    assert await store.settle(settlement(record, "release"), runner) == WAITING
    (record,) = await store.claim("bob", 1, runner)
    assert (record.tries, record.returns) == (2, 1)
    assert await store.settle(settlement(record, "abandon"), runner) == WAITING
    (record,) = await store.claim("bob", 1, runner)
    assert await store.settle(settlement(record, "abandon"), runner) == DEAD
    record = await store.get("a")
    assert (record.reason, record.owner) == ("ABANDONED", None)


async def test_giving_up_right_behind(shop: Shop) -> None:
    """Over the limit the ending edge follows in the same step; a final failure does not wait for it."""
    store, runner = shop.store(PERMIT), shop.call("runner")
    for key, is_final, tries in (("a", False, 3), ("b", True, 1)):
        await store.create(PermitRecord(key=key), shop.call("client"))
        state = SHELVED
        while state == SHELVED:
            (record,) = await store.claim("bob", 1, runner)
            state = await store.settle(settlement(record, "fail", is_final=is_final), runner)
            shop.pass_s(60)
            await store.run_due("requeue", shop.call("scheduler"))
        assert (state, (await store.get(key)).tries) == (DEAD, tries)
    assert [each.edge for each in await store.history("b")] == ["create", "claim", "fail", "bury"]


async def test_only_a_try_can_be_the_last(shop: Shop) -> None:
    """`is_final` on an edge that never gives up is a fault of the handler."""
    record = await held_errand(shop)
    with pytest.raises(GuardBreach, match="never the last try"):
        await shop.store(ERRAND).settle(settlement(record, "finish", is_final=True), shop.call("runner"))


async def test_several_edges_are_one_step(shop: Shop) -> None:
    """All of them, or none."""
    store, runner = shop.store(PARCEL), shop.call("runner")
    await store.create(ParcelRecord(key="a"), shop.call("client"))
    path = ["claim", "finish"]
    unproven = LeaseProof("", 0)
    assert await store.transition("a", path, runner, lease=unproven) == Transitioned(True, DONE)
    assert [each.edge for each in await store.history("a")] == ["create", "claim", "finish"]
    await store.create(ParcelRecord(key="b"), shop.call("client"))
    path = ["claim", "claim"]
    assert await store.transition("b", path, runner, lease=unproven) == Transitioned(False, WAITING)


async def test_who_claims_needs_the_proof(shop: Shop) -> None:
    """An edge out of the lease needs it from those who claim; others need none, and the clock waits."""
    record = await held_errand(shop)
    store, runner = shop.store(ERRAND), shop.call("runner")
    with pytest.raises(GuardBreach, match="needs the proof"):
        await store.transition("a", "finish", runner)
    with pytest.raises(GuardBreach, match="driven by the clock"):
        await store.transition("a", "retry", shop.call("reaper"))
    with refused("lease_lost"):
        await store.transition("a", "finish", runner, lease=LeaseProof("eve", record.fence))
    with refused("lease_stale"):
        await store.transition("a", "finish", runner, lease=LeaseProof("bob", record.fence + 1))
    assert await store.get("a") == record
    assert await store.transition("a", "finish", runner, lease=proof(record)) == Transitioned(True, DONE)
    assert await store.transition("a", "finish", runner, lease=proof(record)) == Transitioned(False, DONE)


async def test_others_end_a_lease_without_a_proof(shop: Shop) -> None:
    """A client aborts what is leased; the owner finds out when it next writes."""
    record = await held_errand(shop)
    store = shop.store(ERRAND)
    assert await store.transition("a", "abort", shop.call("client")) == Transitioned(True, SHELVED)
    with refused("lease_lost"):
        await store.settle(settlement(record, "finish"), shop.call("runner"))


async def test_an_update_leaves_the_state(shop: Shop) -> None:
    """It stamps, sets, takes and clears; a fenced one needs the proof."""
    record = await held_errand(shop)
    store, runner = shop.store(ERRAND), shop.call("runner")
    shop.pass_s(1)
    answer = await store.transition("a", "advance", runner, lease=proof(record), given={"progress": "40"})
    assert answer == Transitioned(True, HELD)
    record = await store.get("a")
    assert (record.progress, record.moved_at) == (40, shop.now())
    with pytest.raises(GuardBreach, match="needs the proof"):
        await store.transition("a", "advance", runner)
    with refused("lease_lost"):
        await store.transition("a", "advance", runner, lease=LeaseProof("eve", record.fence))
    assert len(await store.history("a")) == 2


async def test_update_leaves_what_others_own(shop: Shop) -> None:
    """Key, state, stamps, counters, leases, unique values and what orders claims change otherwise."""
    store = shop.store(ERRAND)
    await store.create(ErrandRecord(key="a"), shop.call("client"))
    assert (await store.update("a", remark="hello", mode=3)).remark == "hello"
    guarded = ("key", "state", "made_at", "tries", "length", "owner", "fence", "ends_at", "ticket")
    for name in (*guarded, "effective", "wait_until"):
        with pytest.raises(GuardBreach, match=f"{name} of a errand changes only with its state"):
            await store.update("a", **{name: None})
    with pytest.raises(GuardBreach, match="has no wings"):
        await store.update("a", wings=2)
    with pytest.raises(NoSuchEntity):
        await store.update("b", remark="")


async def test_the_first_of_two_endings_stands(shop: Shop) -> None:
    """The other one changes nothing and leaves a log line."""
    record = await held_errand(shop)
    store = shop.store(ERRAND)
    await store.transition("a", "abort", shop.call("client"))
    await store.transition("a", "finish", shop.call("runner"), lease=proof(record))
    (ignored,) = shop.lines.read_back("terminal_write_ignored")
    assert (ignored["key"], ignored["expected_status"], ignored["current_status"]) == ("a", "HELD", "SHELVED")


async def test_transitions_are_logged(shop: Shop) -> None:
    """With their states, the lease, and what the handler notes; nothing of what was given."""
    record = await held_errand(shop)
    store = shop.store(ERRAND)
    await store.transition(
        "a", "finish", shop.call("runner"), lease=proof(record), given={"result": "x"}, noted={"hint": "y"}
    )
    line = shop.lines.read_back("transition")[-1]
    wanted = {"entity": "errand", "transition": "finish", "from_status": "HELD", "to_status": "DONE"}
    wanted |= {"key": "a", "owner": "bob", "hint": "y", "caller": "runner"}
    assert wanted.items() <= line.items() and line["fence"] == 1 and "result" not in line


async def test_a_lifecycle_may_leave_no_lines(shop: Shop) -> None:
    """What is changed all the time need not be logged."""
    store, client = shop.store(replace(PERMIT, logged=False)), shop.call("client")
    await store.create(PermitRecord(key="a"), client)
    (record,) = await store.claim("bob", 1, shop.call("runner"))
    await store.settle(settlement(record, "finish"), shop.call("runner"))
    assert shop.lines.read_back("transition") == []


async def test_writes_are_counted(shop: Shop) -> None:
    """Once for each write: a creation, a step of any number of edges, a renewal, an update."""
    store, runner = shop.store(LETTER), shop.call("runner")
    forged = LetterRecord(key="a", writes=9)
    assert (await store.create(forged, shop.call("client"))).record.writes == 1
    (record,) = await store.claim("bob", 1, runner)
    assert record.writes == 2
    (renewed,) = await store.renew([("a", proof(record))])
    assert renewed.writes == 3
    await store.transition("a", ("release", "claim"), runner, lease=LeaseProof("", 0), owner="bob")
    assert (await store.get("a")).writes == 4
    assert (await store.update("a", limit=9)).writes == 5
    with pytest.raises(GuardBreach, match="writes of a letter changes only with its state"):
        await store.update("a", writes=1)
