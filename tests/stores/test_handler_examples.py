"""The examples of the reference of stores: each is on the page as it is here, and each runs."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest

from runtime.stores.contract import EntityStore
from tests.support.stores import handler_examples
from tests.support.stores.engine_time import in_time_of_engine, tick_s
from tests.support.stores.engines import ENGINES
from tests.support.stores.handler_examples import Errands
from tests.support.stores.lifecycles import COURIER, ERRAND
from tests.support.stores.records import DEAD, DONE, HELD, LOW, SHELVED, WAITING, CourierRecord, ErrandRecord
from tests.support.stores.shop import Shop, refused

PAGE = Path(__file__).parents[2] / "docs/reference/stores.md"


async def open_counter(shop: Shop, *keys: str) -> Errands:
    """The handler, with errands a second apart and a courier that is able to do them."""
    courier = CourierRecord(name="bob", room=9, skills=("lift", "drive"))
    await shop.store(COURIER).create(courier, shop.call("client"))
    handler = Errands(await shop.open(ERRAND))
    for key in keys:
        await handler.submit(ErrandRecord(key=key, kind="parcel"), shop.call("client"))
        shop.pass_s(1)
    return handler


def list_functions(source: str) -> set[str]:
    """The functions of a source, whatever its layout."""
    found = ast.walk(ast.parse(source))
    return {ast.dump(each) for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def read_examples() -> str:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return "\n".join(blocks)


def test_every_example_of_the_page_is_a_method_of_the_handler() -> None:
    source = Path(handler_examples.__file__).read_text(encoding="utf-8")
    assert list_functions(read_examples()) == list_functions(source)


def test_every_method_of_a_store_has_an_example() -> None:
    methods = {name for name in vars(EntityStore) if not name.startswith("_")}
    assert set(re.findall(r"self\._errands\.(\w+)\(", read_examples())) == methods


async def test_creating(shop: Shop) -> None:
    """A repeat finds the first; what does not fit is refused by itself."""
    handler, client = await open_counter(shop), shop.call("client")
    first = await handler.submit(ErrandRecord(key="a", ticket="t"), client)
    again = await handler.submit(ErrandRecord(key="b", ticket="t"), client)
    assert (first.key, again.key, again.state) == ("a", "a", WAITING)
    made = await handler.submit_many([ErrandRecord(key=key) for key in "cde"], client)
    assert [(each.is_new, each.is_refused) for each in made] == [(True, False), (True, False), (False, True)]


async def test_reading(shop: Shop) -> None:
    handler = await open_counter(shop, "a", "b")
    shown = await handler.show("a")
    assert shown is not None and shown.state == WAITING and await handler.show("x") is None
    page = await handler.list_waiting("parcel", None)
    assert [each.key for each in page.records] == ["a", "b"] and page.next is None
    assert [(each.edge, each.actor) for each in await handler.show_history("a")] == [("create", "client")]
    assert await handler.count_open() == 2
    assert await handler.describe_health() == "ready"


async def test_changing(shop: Shop) -> None:
    """What does not apply is an answer, and no error."""
    handler, client = await open_counter(shop, "a", "b"), shop.call("client")
    assert await handler.cancel("a", client) and not await handler.cancel("a", client)
    assert await handler.move("b", WAITING, SHELVED, client) == (True, SHELVED)
    assert (await handler.remark("b", "fragile")).remark == "fragile"


async def test_leases(shop: Shop) -> None:
    """Claim, renew, progress, settle; a lease that has ended is refused."""
    handler, runner = await open_counter(shop, "a", "b", "c"), shop.call("runner")
    first, second = await handler.claim("bob", runner)
    assert (first.state, first.owner, first.fence) == (HELD, "bob", 1)
    assert await handler.keep_alive(first)
    assert (await handler.advance(first, 40, runner)).applied
    assert await handler.finish(first, "delivered", runner) == DONE
    (third,) = await handler.finish_and_claim("bob", second, runner)
    assert third.key == "c"
    assert await handler.fail_all([second, third], "lost", runner) == [second]
    failed = await handler.show("c")
    assert failed is not None and failed.state == DEAD
    with refused("lease_lost"):
        await handler.finish(third, "late", runner)


async def test_deleting(shop: Shop) -> None:
    handler, runner, admin = await open_counter(shop, "a", "b"), shop.call("runner"), shop.call("admin")
    await handler.fail_all(await handler.claim("bob", runner), "lost", runner)
    assert await handler.discard("a", admin)
    assert await handler.discard_old(1, admin) == 0
    shop.pass_s(86400 + 1)
    assert await handler.discard_old(1, admin) == 1
    assert await handler.show("b") is None


async def test_pausing_and_clocks(shop: Shop) -> None:
    handler, runner = await open_counter(shop, "a", "b", "c"), shop.call("runner")
    assert (await handler.show_backlog()).entities == 3
    assert await handler.close_counter() == {LOW} and await handler.claim("bob", runner) == []
    assert await handler.open_counter() == frozenset()
    shop.pass_s(40)
    assert await handler.promote_all(shop.call("promoter")) == 3


@pytest.mark.parametrize("engine", sorted(ENGINES))
@in_time_of_engine
async def test_waiting(engine: str) -> None:
    """A wait ends with something to claim, and with a change of one entity."""
    shop = Shop(engine)
    handler, runner, client = await open_counter(shop), shop.call("runner"), shop.call("client")
    waiting = asyncio.ensure_future(handler.claim_soon("bob", runner))
    await asyncio.sleep(tick_s(engine))
    await handler.submit(ErrandRecord(key="a"), client)
    (claimed,) = await waiting
    changing = asyncio.ensure_future(handler.show_next_change("a"))
    await asyncio.sleep(tick_s(engine))
    await handler.finish(claimed, "delivered", runner)
    changed = await changing
    assert changed is not None and changed.state == DONE
