"""What a step costs on each engine: every variant lacks what it says, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bench.stores.command import ENTITIES, measure_engine
from bench.stores.removals import HISTORY, TRIGGERS, skip_disk
from bench.stores.variants import CLIENT, WHOLE, ChoreRecord, list_variants
from tests.support.stores.engines import ENGINES, close_opened
from tests.support.stores.postgres_engine import Server
from tests.support.stores.shop import Shop


@pytest.fixture(autouse=True)
def _servers(request: pytest.FixtureRequest, engine: str) -> None:
    if engine == "postgres":
        Server.url = request.getfixturevalue("shared_postgres").url


@pytest.fixture(params=sorted(ENTITIES))
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest_asyncio.fixture(autouse=True)
async def closed_stores() -> AsyncIterator[None]:
    yield
    await close_opened()


async def test_each_engine_is_measured(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENTITIES, engine, 2)
    costs = await measure_engine(engine, 3)
    assert [each.title for each in costs] == [each.title for each in list_variants(engine)]
    assert costs[0].microseconds > 0


async def test_the_history_is_removed(engine: str) -> None:
    shop = Shop(engine)
    store, call = await shop.open(WHOLE), shop.call(CLIENT)
    await store.create(ChoreRecord(key="before", wanted=True, mode=1), call)
    assert len(await store.history("before")) == 1
    await HISTORY[engine](store)
    await skip_disk(engine, store)
    assert (await store.transition("before", "take", call)).applied
    assert (await store.transition("before", "put_back", call)).applied
    # Of a bucket without it there are the versions, where the bucket keeps any.
    assert len(await store.history("before")) <= 1


async def test_what_has_triggers_lacks_them(engine: str) -> None:
    if engine not in TRIGGERS:
        assert "triggers for edges" not in [each.title for each in list_variants(engine)]
        return
    shop = Shop(engine)
    store, call = await shop.open(WHOLE), shop.call(CLIENT)
    await store.create(ChoreRecord(key="it", wanted=True, mode=1), call)
    await TRIGGERS[engine](store)
    assert (await store.transition("it", "take", call)).applied
    assert len(await store.history("it")) == 2


def test_every_engine_has_a_place(engine: str) -> None:
    """The engine of JSON files belongs to the tests."""
    assert {*ENTITIES} == {*ENGINES} - {"json"} == {*HISTORY}
