"""Entities without a layout of their own: several processes on one bucket, and what a dead one leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from runtime.call.conditions import Condition
from runtime.model.lifecycles import Due
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof
from runtime.stores.s3 import journal
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.store import S3Store
from tests.runtime.hand_world import HandWorld, make_call
from tests.runtime.stores.s3.conftest import Make
from tests.support.s3.fixtures import Bucket
from tests.support.stores.engines import SYSTEM
from tests.support.stores.lifecycles import COURIER, ERRAND, PARCEL, PERMIT
from tests.support.stores.records import VARIABLES, CourierRecord, ErrandRecord, ParcelRecord, PermitRecord


class Node:
    """One process with parcels and permits."""

    def __init__(self, bucket: Bucket, world: HandWorld) -> None:
        self.objects, self.world = Objects(bucket.location), world
        self.parcels: S3Store[Any] = self.open(PARCEL)
        self.permits: S3Store[Any] = self.open(PERMIT)

    def open(self, lifecycle: Any, variables: Any = VARIABLES, **more: Any) -> S3Store[Any]:
        given = (self.objects, self.world, Metrics(), variables)
        return S3Store(SYSTEM, lifecycle, lifecycle.record, *given, **more)

    def call(self, caller: str) -> Any:
        return make_call(self.world, caller=caller)


@pytest.fixture
async def nodes(bucket: Bucket) -> AsyncIterator[list[Node]]:
    world = HandWorld()
    made = [Node(bucket, world) for _ in range(3)]
    yield made
    for each in made:
        await each.objects.close()


async def test_of_many_with_one_unique_value_one_is_created(nodes: list[Node]) -> None:
    """The others find it, or are asked to come again while it is on its way."""

    async def create(node: Node, key: str) -> Any:
        for _ in range(20):
            try:
                return await node.parcels.create(ParcelRecord(key=key, ticket="t"), node.call("client"))
            except Condition as away:
                assert away.code == "store_unavailable"
        raise AssertionError("it never came")

    results = await asyncio.gather(*[create(node, key) for node, key in zip(nodes, "abc", strict=True)])
    assert sum(each.is_new for each in results) == 1
    assert len({each.record.key for each in results}) == 1
    assert sum((await nodes[0].parcels.count()).values()) == 1


async def test_a_value_that_a_dead_process_has_reserved_is_free_after_a_while(nodes: list[Node]) -> None:
    """It died between the value and its entity. Until then nobody can tell whether the entity is coming."""
    dead, other, _ = nodes
    await dead.parcels._unique.reserve("a", ParcelRecord(key="a", ticket="t"), dead.world.now_ms() * 1000)
    with pytest.raises(Condition) as away:
        await other.parcels.create(ParcelRecord(key="b", ticket="t"), other.call("client"))
    assert away.value.code == "store_unavailable"
    other.world.wall_ms += 10_000
    assert (await other.parcels.create(ParcelRecord(key="b", ticket="t"), other.call("client"))).is_new


async def test_each_is_claimed_once(nodes: list[Node]) -> None:
    """Whoever comes first, and in whatever process."""
    made = [PermitRecord(key=f"{number:02}") for number in range(20)]
    await nodes[0].permits.create_many(made, nodes[0].call("client"))

    async def work(node: Node, owner: str) -> list[str]:
        found: list[str] = []
        while some := await node.permits.claim(owner, 3, node.call("runner")):
            found += [each.key for each in some]
        return found

    shares = await asyncio.gather(*[work(node, owner) for node, owner in zip(nodes, "xyz", strict=True)])
    assert sorted(key for share in shares for key in share) == [each.key for each in made]


async def test_of_racing_steps_each_sees_the_other(nodes: list[Node]) -> None:
    """A step that lost the race begins anew with what is there: no write is lost."""
    one, two, _ = nodes
    await one.permits.create(PermitRecord(key="a"), one.call("client"))
    await one.permits.transition("a", "claim", one.call("runner"))
    steps = ["give_back", "finish"]
    taken = await asyncio.gather(
        *[
            node.permits.transition("a", step, node.call("runner"), lease=LeaseProof("", 0))
            for node, step in zip((one, two), steps, strict=True)
        ],
        return_exceptions=True,
    )
    applied = [step for step, each in zip(steps, taken, strict=True) if getattr(each, "applied", False)]
    assert len(applied) == 1
    assert [each.edge for each in await two.permits.history("a")] == ["create", "claim", *applied]


async def test_a_journal_is_bounded(nodes: list[Node], monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest entries go, and the others keep their numbers."""
    monkeypatch.setattr(journal, "_MOST", 3)
    one = nodes[0]
    await one.parcels.create(ParcelRecord(key="a"), one.call("client"))
    for _ in range(3):
        await one.parcels.transition("a", "claim", one.call("runner"))
        await one.parcels.transition("a", "release", one.call("runner"), lease=LeaseProof("", 0))
    entries = await one.parcels.history("a")
    assert [(each.sequence, each.edge) for each in entries] == [(5, "release"), (6, "claim"), (7, "release")]


async def test_a_key_that_would_lead_elsewhere_is_none(nodes: list[Node]) -> None:
    """Keys become names of objects."""
    one = nodes[0]
    for key in ("", "a/b", "..", "."):
        with pytest.raises(Exception, match="is no key of a parcel"):
            await one.parcels.create(ParcelRecord(key=key), one.call("client"))


async def test_versions_tell_the_history_where_there_is_no_journal(process: Make) -> None:
    """Edges by the two states; the actor where only one may be it."""
    one = process()
    task = await one.submit()
    [taken] = await one.take()
    await one.advance(taken, progress="1")
    await one.settle(taken, "complete", output="1")
    entries = await one.tasks.history(task.id)
    assert [(each.sequence, each.edge, each.actor, each.fence, each.owner) for each in entries] == [
        (1, "create", "client", 0, ""),
        (2, "claim", "worker", 1, "w1"),
        (3, "complete", "worker", 1, "w1"),
    ]
    assert [(each.source, each.target) for each in entries][1:] == [
        (one.states["PENDING"], one.states["RUNNING"]),
        (one.states["RUNNING"], one.states["COMPLETED"]),
    ]


async def test_the_longest_overdue_come_first(nodes: list[Node]) -> None:
    """By their times, and not by their keys."""
    one = nodes[0]
    due = Due(at="moved_at", by="keeper", every="EVERY", batch="FEW")
    store = one.open(
        replace(PARCEL, deletion_due=due, deleters=frozenset({"keeper"})), {**VARIABLES, "FEW": 1}
    )
    for key in "ba":
        await store.create(ParcelRecord(key=key), one.call("client"))
        await store.transition(key, "claim", one.call("runner"))
        await store.transition(key, "finish", one.call("runner"), lease=LeaseProof("", 0))
        one.world.wall_ms += 1000
    assert await store.run_due("delete", one.call("keeper")) == 1
    assert [each.key for each in (await store.find()).records] == ["a"]


async def test_a_holder_is_not_deleted_by_the_clock(nodes: list[Node]) -> None:
    """As long as it has leases."""
    one = nodes[0]
    due = Due(at="seen_at", by="reaper", every="EVERY")
    stores: dict[str, Any] = {}
    couriers = one.open(replace(COURIER, deletion_due=due, deleters=frozenset({"reaper"})), stores=stores)
    errands = one.open(ERRAND, stores=stores)
    await couriers.create(CourierRecord(name="bob"), one.call("client"))
    await errands.create(ErrandRecord(key="a"), one.call("client"))
    (held,) = await errands.claim("bob", 1, one.call("runner"))
    one.world.wall_ms += 1000
    assert await couriers.run_due("delete", one.call("reaper")) == 0
    await errands.transition("a", "give_back", one.call("runner"), lease=LeaseProof("bob", held.fence))
    assert await couriers.run_due("delete", one.call("reaper")) == 1


async def test_those_that_ended_first_are_forgotten_first(nodes: list[Node]) -> None:
    """Also where several have ended at one moment."""
    one = nodes[0]
    store = one.open(PERMIT, max_terminal=2)
    await store.create_many([PermitRecord(key=key) for key in "abc"], one.call("client"))
    for key in "cba":
        await store.transition(key, "claim", one.call("runner"))
        await store.transition(key, "finish", one.call("runner"), lease=LeaseProof("", 0))
    assert sorted(each.key for each in (await store.find()).records) == ["a", "b"]
