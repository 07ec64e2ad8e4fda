"""Fields that stand in YAML in another order than their numbers come back under their own names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.stores.contract import LeaseSettlement
from tests.support.specs.harbour import WORLD, Quay, harbour, new_database, quays

SYSTEM = "harbour_order"
GIVEN = {
    "kind": "a kind",
    "queue": "a queue",
    "weight": 7,
    "note": "a note",
    "price": 2.5,
    "papers": '{"of": "one"}',
}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with harbour(tmp_path_factory.mktemp("harbour"), SYSTEM) as made:
        yield made


@pytest.fixture
async def stores(
    system: str, tmp_path: Path, shared_postgres: EmbeddedPostgres
) -> AsyncIterator[dict[str, Quay]]:
    async with (
        new_database(shared_postgres) as url,
        quays(system, tmp_path / "shed.db", url) as made,
    ):
        yield made


@pytest.mark.parametrize("entity", ["crate", "barge"])
async def test_every_way_of_reading_gives_each_field_its_own_value(
    stores: dict[str, Quay], entity: str
) -> None:
    quay = stores[entity]
    store, words = quay.store, quay.words
    asked = quay.make(**GIVEN)
    made, is_new, *_ = await store.create(asked, quay.call)
    assert is_new
    assert given(made) == given(asked)
    assert await store.create(quay.make(label=asked.label), quay.call) == (made, False, False, None)
    key = made.crate_id
    assert await store.get(key) == made
    assert (await store.find(equal={"kind": "a kind"})).records == [made]
    assert (await store.find(equal={"queue": "a kind"})).records == []
    edge = store.edge_between(words.LANDED, words.READY, quay.call).name
    assert (await store.transition(key, edge, quay.call, given={"remark": "seen"})).applied
    (lifted,) = await store.claim("c1", 1, quay.call)
    assert given(lifted) == given(asked)
    assert (lifted.crane, lifted.lifts, lifted.drops, lifted.remark) == ("c1", 1, 0, "seen")
    assert lifted.lifted_until > lifted.changed_at
    (renewed,) = await store.renew([(key, quay.make_lease(lifted))])
    assert replace(renewed, lifted_until=lifted.lifted_until) == lifted
    edge = store.edge_between(words.LIFTED, words.SWAYING, quay.call).name
    asked_for = LeaseSettlement(key, quay.make_lease(lifted), edge, {"remark": "oh"})
    assert await store.settle(asked_for, quay.call) == words.SWAYING
    dropped = await store.get(key)
    assert given(dropped) == given(asked)
    assert (dropped.crane, dropped.lifts, dropped.drops, dropped.remark) == (None, 1, 1, "oh")
    assert dropped.still_at is not None


async def test_what_is_settled_and_what_is_taken_in_one_step_keep_their_values(
    stores: dict[str, Quay],
) -> None:
    quay = stores["barge"]
    store, words = quay.store, quay.words
    first, second = [(await store.create(quay.make(**GIVEN), quay.call)).record for _ in range(2)]
    edge = store.edge_between(words.LANDED, words.READY, quay.call).name
    for each in (first, second):
        await store.transition(each.crate_id, edge, quay.call)
    (taken,) = await store.claim("c1", 1, quay.call)
    edge = store.edge_between(words.LIFTED, words.SHIPPED, quay.call).name
    settling = LeaseSettlement(taken.crate_id, quay.make_lease(taken), edge, {"remark": "away"})
    (next_one,), outcomes = await store.exchange("c2", [settling], 0, quay.call)
    assert outcomes == [words.SHIPPED]
    assert (given(next_one), next_one.crane) == (given(second), "c2")
    shipped = await store.get(taken.crate_id)
    assert (shipped.whereabouts, shipped.remark, shipped.sealed) == (words.SHIPPED, "away", True)
    assert given(shipped) == given(first)


@pytest.mark.parametrize("entity", ["lamp", "buoy"])
async def test_an_entity_without_any_transition_is_created_and_read(
    stores: dict[str, Quay], entity: str
) -> None:
    quay = stores[entity]
    asked = quay.record(mark_id=WORLD.new_id(), colour="red")
    made = (await quay.store.create(asked, quay.call)).record
    assert (made.mark_id, made.colour, made.state) == (asked.mark_id, "red", quay.words.LIT)
    assert await quay.store.get(asked.mark_id) == made
    red, green = [await quay.store.find(equal={"colour": each}) for each in ("red", "green")]
    assert [*red.records, *green.records] == [made]


def given(record: Any) -> dict[str, Any]:
    """What whoever created it has said of it."""
    return {name: getattr(record, name) for name in ("crate_id", "label", *GIVEN)}
