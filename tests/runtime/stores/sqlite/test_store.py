"""What the contract suite cannot know of SQLite: its stored form, its guards, its errors and its restarts."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runtime.call.conditions import Condition
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.store import Unstorable
from tests.runtime.stores.sqlite.kit import LENT, Kit

SILENT = 10_000
"""How long nobody may be heard of who looks for a sock, in milliseconds."""


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


async def test_the_history_of_an_end_as_it_is_stored(kit: Kit) -> None:
    """Both edges of a giving up, one of which the guards would not let an entity leap over."""
    made = await kit.bring()
    assert await kit.stain(await kit.wash(), is_final=True) == kit.words.SHIRT_RUINED
    columns = "from_state, to_state, actor, fence"
    assert kit.sql(f"SELECT {columns} FROM shirt_changes ORDER BY number") == [
        (None, "SHIRT_WAITING", "guest", 0),
        ("SHIRT_WAITING", "SHIRT_WASHING", "machine", 1),
        ("SHIRT_WASHING", "SHIRT_SOAKING", "machine", 1),
        ("SHIRT_SOAKING", "SHIRT_RUINED", "machine", 1),
    ]
    names = [each.edge for each in await kit.shirts.history(made.shirt_id)]
    assert names == ["create", "wash", "stain", "ruin"]
    lines = [line["transition"] for line in kit.lines.read_back("transition")]
    assert lines == names


@pytest.mark.parametrize(("fabric", "waits"), [("", 2000), ("silk", None), ("wool", 4000)])
async def test_limits_and_waits_differ_by_a_text(kit: Kit, fabric: str, waits: int | None) -> None:
    made = await kit.bring(fabric=fabric)
    await kit.stain(await kit.wash())
    soaking = await kit.shirts.get(made.shirt_id)
    until = None if waits is None else at(kit.world.wall_ms + waits)
    assert soaking.soaks_until == until
    assert soaking.state == (kit.words.SHIRT_RUINED if waits is None else kit.words.SHIRT_SOAKING)


async def test_hundreds_that_are_due_go_step_by_step(kit: Kit) -> None:
    records = [kit.new_shirt() for _ in range(600)]
    await kit.shirts.create_many(records, kit.call("guest"))
    assert len(await kit.shirts.claim("m1", 600, kit.call("machine"))) == 600
    kit.pass_ms(LENT + 1)
    assert [await kit.shirts.run_due("stain", kit.call("laundry")) for _ in range(3)] == [500, 100, 0]


async def test_nothing_is_written_while_nothing_is_due(kit: Kit) -> None:
    before = kit.file.transactions
    assert await kit.shirts.run_due("stain", kit.call("laundry")) == 0
    assert kit.file.transactions == before


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


async def test_what_a_person_has_changed_is_seen(kit: Kit) -> None:
    made = await kit.bring()
    kit.sql("UPDATE shirts SET fabric = 'linen'")
    assert (await kit.shirts.get(made.shirt_id)).fabric == "linen"
    assert (await kit.wash()).fabric == "linen"


@pytest.mark.parametrize("fields", [{"label": "\ud800"}, {"soap": 2**63}, {"price": "much"}])
async def test_what_no_file_can_hold(kit: Kit, fields: dict[str, Any]) -> None:
    with pytest.raises(Unstorable):
        await kit.bring(**fields)
    assert kit.sql("SELECT count(*) FROM shirts") == [(0,)]
    assert kit.sql("SELECT count(*) FROM shirt_changes") == [(0,)]


async def test_a_settlement_that_no_file_can_hold_leaves_the_others(kit: Kit) -> None:
    await kit.shirts.create_many([kit.new_shirt(), kit.new_shirt()], kit.call("guest"))
    shirts = await kit.shirts.claim("m1", 2, kit.call("machine"))
    remarks = ["\ud800", "fine"]
    settlements = [
        LeaseSettlement(each.shirt_id, LeaseProof("m1", 1), "finish", {"remark": remark})
        for each, remark in zip(shirts, remarks, strict=True)
    ]
    first, second = await kit.shirts.settle_many(settlements, kit.call("machine"))
    assert isinstance(first, Unstorable)
    assert second == kit.words.SHIRT_CLEAN
    assert (await kit.shirts.get(shirts[0].shirt_id)).state == kit.words.SHIRT_WASHING


async def test_a_file_that_is_closed(kit: Kit) -> None:
    """Reads, steps and the census say so, and a settlement has it as its outcome."""
    await kit.bring()
    shirt = await kit.wash()
    await kit.file.close()
    for asked in (kit.shirts.get("x"), kit.bring(), kit.shirts.find(), kit.wash()):
        with pytest.raises(Condition, match="the book cannot be written"):
            await asked
    assert kit.shirts.census() == []
    settlement = LeaseSettlement(shirt.shirt_id, LeaseProof("m1", 1), "finish")
    (outcome,) = (await kit.shirts.exchange("m1", [settlement], 1, kit.call("machine"))).outcomes
    assert isinstance(outcome, Condition)
    assert await kit.shirts.health() == "the database file cannot be written: the database is not open"


async def test_the_census_and_the_ages(kit: Kit) -> None:
    await kit.bring()
    kit.pass_ms(5000)
    assert ("shirt", "SHIRT_WAITING", 1, 5.0) in kit.shirts.census()


async def test_after_a_start_nothing_is_due_for_a_while(laundry: Path, tmp_path: Path) -> None:
    async with Kit(tmp_path / "book.db") as kit:
        sock = await kit.sought()
    async with Kit(tmp_path / "book.db", QUIET_SECONDS=60) as kit:
        kit.pass_ms(SILENT + 1)
        assert await kit.socks.run_due("forget", kit.call("laundry")) == 0
        assert (await kit.socks.get(sock.sock_id)).state == kit.words.SOUGHT
        kit.pass_ms(60_000)
        assert await kit.socks.run_due("forget", kit.call("laundry")) == 1
        assert (await kit.socks.get(sock.sock_id)).state == kit.words.LOOSE
