"""Entities whose leases end at a time: limits, waits, overrides, what edges write, history and deletion."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtime.call.conditions import Condition
from runtime.stores.store import GuardBreach, Held, Moved, NoSuchEntity, Unstorable
from tests.runtime.stores.sqlite.kit import LENT, Kit


def at(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


async def test_every_type_comes_back_as_it_went(kit: Kit) -> None:
    given = {"fabric": "wöol 🧶", "price": 2.5, "picture": b"\0\xff", "note": '{"a": [1]}'}
    made = await kit.bring(**given)
    back = await kit.shirts.get(made.shirt_id)
    assert back == made
    assert {name: getattr(back, name) for name in given} == given
    assert (made.brought_at, made.changed_at, made.last_label) == (at(1_000_000), at(1_000_000), made.label)
    assert kit.sql("SELECT state, brought_at FROM shirts") == [("waiting", 1_000_000_000)]


async def test_what_is_unique_finds_the_first(kit: Kit) -> None:
    first = await kit.bring(label="X")
    found, is_new = await kit.shirts.create_or_find(kit.new_shirt(label="X"), kit.call("guest"))
    assert (found, is_new) == (first, False)
    with pytest.raises(GuardBreach, match="exists already"):
        await kit.bring(label="X")
    made = await kit.shirts.create_or_find_all(
        [kit.new_shirt(label="Y"), kit.new_shirt(label="X"), kit.new_shirt(label="Y")], kit.call("guest")
    )
    assert [is_new for _, is_new in made] == [True, False, False]


async def test_a_lease_is_taken_renewed_and_ends(kit: Kit) -> None:
    made = await kit.bring()
    shirt = await kit.wash()
    assert (shirt.shirt_id, shirt.machine, shirt.turn) == (made.shirt_id, "m1", 1)
    assert shirt.washed_until == at(kit.world.wall_ms + LENT)
    kit.pass_ms(LENT - 1)
    held = Held("m1", 1)
    assert await kit.shirts.renew(shirt.shirt_id, held)
    assert not await kit.shirts.renew(shirt.shirt_id, Held("m2", 1))
    with pytest.raises(Condition, match="m2 no longer has"):
        await kit.shirts.extend(shirt.shirt_id, Held("m2", 1))
    with pytest.raises(Condition, match="taken anew"):
        await kit.shirts.extend(shirt.shirt_id, Held("m1", 7))
    assert not await kit.shirts.renew("nobody", held)
    kit.pass_ms(LENT + 1)
    assert not await kit.shirts.renew(shirt.shirt_id, held)
    with pytest.raises(Condition, match="no longer has"):
        await kit.stain(shirt)


async def test_what_an_edge_writes(kit: Kit) -> None:
    await kit.bring(soap=3)
    await kit.stain(await kit.wash(), "a spot")
    shirt = (await kit.shirts.page([kit.words.SHIRT_SOAKING], 0, 1, newest_first=True))[0][0]
    assert (shirt.stains, shirt.soap, shirt.first_remark, shirt.remark) == (1, 5, "a spot", "a spot")
    assert (shirt.machine, shirt.washed_until) == (None, None)
    assert shirt.soaks_until == at(kit.world.wall_ms + 2000)
    kit.pass_ms(2001)
    assert await kit.sweep("wring") == 1
    waiting = await kit.shirts.get(shirt.shirt_id)
    assert (waiting.soaks_until, waiting.state) == (None, kit.words.SHIRT_WAITING)
    await kit.stain(await kit.wash("m2"), None)
    again = await kit.shirts.get(shirt.shirt_id)
    assert (again.first_remark, again.remark, again.soap) == ("a spot", None, 8)
    assert again.soaks_until == at(kit.world.wall_ms + 4000)


@pytest.mark.parametrize(("fabric", "stains", "waits"), [("", 3, 2000), ("silk", 1, 500), ("wool", 3, 4000)])
async def test_limits_and_waits_differ_by_a_text(kit: Kit, fabric: str, stains: int, waits: int) -> None:
    made = await kit.bring(fabric=fabric)
    if stains > 1:
        await kit.stain(await kit.wash())
        soaking = await kit.shirts.get(made.shirt_id)
        assert soaking.soaks_until == at(kit.world.wall_ms + waits)
    for _ in range(stains - 1):
        kit.pass_ms(60_000)
        assert await kit.sweep("wring") == 1
        target = await kit.stain(await kit.wash())
    if stains == 1:
        target = await kit.stain(await kit.wash())
    assert target == kit.words.SHIRT_RUINED
    ruined = await kit.shirts.get(made.shirt_id)
    assert (ruined.stains, ruined.remark, ruined.soaks_until) == (stains, None, None)


async def test_both_edges_of_an_end_are_in_the_history(kit: Kit) -> None:
    made = await kit.bring()
    assert await kit.stain(await kit.wash(), final=True) == kit.words.SHIRT_RUINED
    found = [
        (each.source, each.target, each.actor, each.fence) for each in await kit.shirts.history(made.shirt_id)
    ]
    assert found == [
        ("", "SHIRT_WAITING", "guest", 0),
        ("SHIRT_WAITING", "SHIRT_WASHING", "machine", 1),
        ("SHIRT_WASHING", "SHIRT_SOAKING", "machine", 1),
        ("SHIRT_SOAKING", "SHIRT_RUINED", "machine", 1),
    ]
    assert [line["transition"] for line in kit.lines.read_back("transition")] == [
        "create",
        "wash",
        "stain",
        "ruin",
    ]


async def test_the_clock_gives_what_the_spec_says(kit: Kit) -> None:
    made = await kit.bring()
    await kit.wash()
    kit.pass_ms(LENT)
    assert await kit.sweep("stain") == 0
    kit.pass_ms(1)
    assert await kit.sweep("stain") == 1
    late = await kit.shirts.get(made.shirt_id)
    assert (late.state, late.remark, late.stains) == (kit.words.SHIRT_SOAKING, "it took too long", 1)


async def test_hundreds_that_are_due_go_step_by_step(kit: Kit) -> None:
    records = [kit.new_shirt() for _ in range(600)]
    await kit.shirts.create_or_find_all(records, kit.call("guest"))
    for _ in records:
        await kit.wash()
    kit.pass_ms(LENT + 1)
    assert [await kit.sweep("stain") for _ in range(3)] == [500, 100, 0]


async def test_flags_actors_and_edges_are_guarded(kit: Kit) -> None:
    words = kit.words
    made = await kit.bring()
    await kit.stain(await kit.wash())
    guest = kit.call("guest")
    refused = await kit.shirts.move(made.shirt_id, words.SHIRT_SOAKING, words.SHIRT_CLEAN, guest)
    assert refused == Moved(False, words.SHIRT_SOAKING)
    kit.sql("UPDATE shirts SET pressed = 1")
    moved = await kit.shirts.move(made.shirt_id, words.SHIRT_SOAKING, words.SHIRT_CLEAN, guest)
    assert moved == Moved(True, words.SHIRT_CLEAN)
    for source, target, actor in (
        (words.SHIRT_WAITING, words.SHIRT_WASHING, "guest"),
        (words.SHIRT_CLEAN, words.SHIRT_WAITING, "machine"),
    ):
        with pytest.raises(Condition):
            await kit.shirts.move(made.shirt_id, source, target, kit.call(actor))
    with pytest.raises(Condition, match="may create"):
        await kit.shirts.create(kit.new_shirt(), kit.call("machine"))
    with pytest.raises(NoSuchEntity):
        await kit.shirts.move("nobody", words.SHIRT_SOAKING, words.SHIRT_CLEAN, guest)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE shirts SET state = 'clean'",
        "UPDATE shirts SET state = 'lost'",
        "UPDATE shirts SET shirt_id = 'other'",
        "UPDATE shirts SET turn = -1",
        "UPDATE shirts SET state = 'washing'",
        "UPDATE shirts SET brought_at = 'yesterday'",
        "DELETE FROM shirts",
        "INSERT INTO shirts (shirt_id, label, fabric, price, state) VALUES ('x', 'x', '', 0, 'clean')",
    ],
)
async def test_the_file_refuses_what_a_person_types_in(kit: Kit, statement: str) -> None:
    await kit.bring()
    before = kit.sql("SELECT * FROM shirts")
    with pytest.raises(sqlite3.IntegrityError):
        kit.sql(statement)
    assert kit.sql("SELECT * FROM shirts") == before


async def test_only_what_has_come_to_its_end_is_deleted(kit: Kit) -> None:
    words, guest = kit.words, kit.call("guest")
    waiting, done = await kit.bring(), await kit.bring()
    kit.sql("UPDATE shirts SET state = 'washing', machine = 'm', turn = 1 WHERE shirt_id = ?", done.shirt_id)
    held = Held("m", 1)
    kit.sql("UPDATE shirts SET washed_until = ?", (kit.world.wall_ms + LENT) * 1000)
    moved = await kit.shirts.leave(done.shirt_id, words.SHIRT_CLEAN, held, kit.call("machine"), remark="good")
    assert moved == Moved(True, words.SHIRT_CLEAN)
    assert not (await kit.shirts.delete(waiting.shirt_id, words.SHIRT_WAITING, guest)).applied
    with pytest.raises(Condition, match="may delete"):
        await kit.shirts.delete(done.shirt_id, words.SHIRT_CLEAN, kit.call("machine"))
    assert await kit.shirts.purge(1, guest) == 0
    kit.pass_ms(1001)
    assert await kit.shirts.purge(1, guest) == 1
    assert await kit.shirts.get(done.shirt_id) is None
    assert (await kit.shirts.counts())[words.SHIRT_CLEAN] == 0


async def test_what_is_given_at_creation_may_change_and_nothing_else(kit: Kit) -> None:
    made = await kit.bring()
    changed = await kit.shirts.update(made.shirt_id, picture=b"new", price=1.5)
    assert (changed.picture, changed.price) == (b"new", 1.5)
    for field in ("state", "turn", "label", "shirt_id", "brought_at", "machine"):
        with pytest.raises(GuardBreach, match=field):
            await kit.shirts.update(made.shirt_id, **{field: 1})
    with pytest.raises(NoSuchEntity):
        await kit.shirts.update("nobody", price=1.0)


@pytest.mark.parametrize("fields", [{"label": "\ud800"}, {"soap": 2**63}])
async def test_what_no_file_can_hold(kit: Kit, fields: dict[str, Any]) -> None:
    with pytest.raises(Unstorable):
        await kit.bring(**fields)
    assert kit.sql("SELECT count(*) FROM shirts") == [(0,)]


async def test_listings_pages_and_counts(kit: Kit) -> None:
    made = []
    for number in range(5):
        made.append(await kit.bring(fabric="silk" if number % 2 else ""))
        kit.pass_ms(1000)
    newest, more = await kit.shirts.page([], 0, 3, newest_first=True)
    assert ([each.label for each in newest], more) == (["L5", "L4", "L3"], True)
    oldest, more = await kit.shirts.page([], 3, 3, newest_first=False)
    assert ([each.label for each in oldest], more) == (["L4", "L5"], False)
    silk = await kit.shirts.find(equal={"fabric": "silk"})
    assert [each.label for each in silk] == ["L4", "L2"]
    behind = await kit.shirts.find(after=(silk[0].brought_at, made[2].shirt_id), size=1)
    assert [each.label for each in behind] == ["L2"]
    between = await kit.shirts.find(since=made[1].brought_at, until=made[3].brought_at)
    assert [each.label for each in between] == ["L3", "L2"]
    with pytest.raises(ValueError, match="colour"):
        await kit.shirts.find(equal={"colour": "red"})
    counts = await kit.shirts.counts()
    assert counts[kit.words.SHIRT_WAITING] == 5
    assert ("shirt", "SHIRT_WAITING", 5, 5.0) in kit.shirts.census()
