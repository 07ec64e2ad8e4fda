"""Entities whose leases end some time after the last sign: on access, after a grace, in place of an edge."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.call.conditions import Condition
from runtime.stores.store import Held, Moved
from tests.runtime.stores.sqlite.kit import Kit

SILENT = 10_000
"""How long nobody may be heard of, in milliseconds."""


async def test_a_sign_moves_the_end_and_nothing_else(kit: Kit) -> None:
    sock = await kit.sought()
    kit.pass_ms(SILENT)
    kept = await kit.socks.extend(sock.sock_id, Held("s1", sock.looks))
    assert kept.seen_at == kit.world.wall_ms
    assert (kept.seeker, kept.looks, kept.found_at) == ("s1", 1, sock.found_at)
    assert await kit.socks.extend(sock.sock_id, Held("", 0)) is not None


async def test_whoever_looks_lets_it_happen_first(kit: Kit) -> None:
    sock = await kit.sought()
    kit.pass_ms(SILENT)
    assert (await kit.socks.get(sock.sock_id)).state == kit.words.SOUGHT
    kit.pass_ms(1)
    assert await kit.socks.extend(sock.sock_id, Held("s1", 1)) is None
    lost = await kit.socks.get(sock.sock_id)
    assert (lost.state, lost.seeker, lost.looks) == (kit.words.LOOSE, None, 2)
    assert [line["transition"] for line in kit.lines.read_back("transition")] == ["create", "seek", "forget"]


async def test_what_was_due_has_happened_though_the_caller_is_refused(kit: Kit) -> None:
    sock = await kit.sought()
    kit.pass_ms(SILENT + 1)
    moved = await kit.socks.leave(sock.sock_id, kit.words.PAIRED, Held("s1", 1), kit.call("machine"))
    assert moved == Moved(False, kit.words.LOOSE)
    again = await kit.socks.acquire("s2", kit.call("machine"))
    assert (again.sock_id, again.looks, again.seeker) == (sock.sock_id, 3, "s2")
    with pytest.raises(Condition, match="s1 no longer has"):
        await kit.socks.leave(sock.sock_id, kit.words.PAIRED, Held("s1", 1), kit.call("machine"))
    kit.pass_ms(1)
    assert (await kit.socks.get(sock.sock_id)).seeker == "s2"


@pytest.mark.parametrize(("most", "state", "looks"), [(1, "LONELY", 2), (2, "LOOSE", 2), (3, "LOOSE", 2)])
async def test_an_end_in_place_of_an_edge(kit: Kit, most: int, state: str, looks: int) -> None:
    sock = await kit.sought(most_looks=most)
    kit.pass_ms(SILENT + 1)
    found = await kit.socks.get(sock.sock_id)
    assert (kit.sock.states[found.state], found.looks, found.seeker) == (state, looks, None)


async def test_what_was_taken_keeps_its_owner_at_the_end(kit: Kit) -> None:
    sock = await kit.sought()
    moved = await kit.socks.leave(sock.sock_id, kit.words.PAIRED, Held("s1", 0), kit.call("machine"))
    assert moved.applied
    assert (await kit.socks.get(sock.sock_id)).seeker == "s1"
    assert await kit.socks.history(sock.sock_id) == []


async def test_an_owner_is_given_where_an_edge_is_followed(kit: Kit) -> None:
    sock = await kit.sought()
    await kit.socks.settle(sock.sock_id, kit.words.LOOSE, Held("s1", 1), kit.call("machine"))
    path = [kit.words.LOOSE, kit.words.SOUGHT]
    moved = await kit.socks.follow(sock.sock_id, path, kit.call("laundry"), owner="the boss")
    assert moved.applied
    assert (await kit.socks.get(sock.sock_id)).seeker == "the boss"
    assert not (await kit.socks.follow(sock.sock_id, path, kit.call("laundry"), owner="me")).applied


async def test_after_a_start_nothing_is_due_for_a_while(laundry: Path, tmp_path: Path) -> None:
    async with Kit(tmp_path / "book.db") as kit:
        sock = await kit.sought()
    async with Kit(tmp_path / "book.db", QUIET_SECONDS=60) as kit:
        kit.pass_ms(SILENT + 1)
        forget = kit.sock.transition("forget")
        assert await kit.socks.sweep(forget, kit.call("laundry")) == 0
        assert (await kit.socks.get(sock.sock_id)).state == kit.words.SOUGHT
        kit.pass_ms(60_000)
        assert await kit.socks.sweep(forget, kit.call("laundry")) == 1
        assert (await kit.socks.get(sock.sock_id)).state == kit.words.LOOSE
