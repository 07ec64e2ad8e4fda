"""The jobs of a system in memory: a state changes by a guarded transition and in no other way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import CANCELED, DONE, FAILED, QUEUED, RUNNING
from generated.taskqueue.records import JobRecord
from generated.taskqueue.system import SYSTEM
from runtime.call.conditions import Condition
from runtime.observe.metrics import Metrics
from runtime.stores.contract import Transitioned
from runtime.stores.memory import MemoryStore
from runtime.stores.store import GuardBreach, NoSuchEntity
from tests.runtime.hand_world import HandWorld, Lines, make_call

DRIVERS: dict[tuple[int, int], str] = {
    (QUEUED, RUNNING): "coordinator",
    (RUNNING, DONE): "coordinator",
    (RUNNING, FAILED): "coordinator",
    (RUNNING, CANCELED): "coordinator",
    (QUEUED, CANCELED): "gateway",
}
PATHS: dict[int, tuple[tuple[int, int], ...]] = {
    QUEUED: (),
    RUNNING: ((QUEUED, RUNNING),),
    DONE: ((QUEUED, RUNNING), (RUNNING, DONE)),
    FAILED: ((QUEUED, RUNNING), (RUNNING, FAILED)),
    CANCELED: ((QUEUED, CANCELED),),
}
"""How a job gets into each state."""


class Fixture:
    """A store with a clock and a log of its own."""

    def __init__(self, max_terminal: int = 0) -> None:
        self.world = HandWorld()
        self.lines = Lines()
        self.metrics = Metrics()
        self.store: MemoryStore[JobRecord] = MemoryStore(
            SYSTEM, JOB, JobRecord, self.world, self.metrics, max_terminal=max_terminal
        )

    async def add(self, key: str = "x") -> JobRecord:
        call = make_call(self.world, caller="gateway", lines=self.lines)
        return (await self.store.create(JobRecord(job_id=key, job_type="t"), call)).record

    async def move(
        self, source: int, target: int, key: str = "x", caller: str = "", **given: str
    ) -> Transitioned:
        caller = caller or DRIVERS.get((source, target), "coordinator")
        call = make_call(self.world, caller=caller, lines=self.lines)
        edge = self.store.edge_between(source, target, call)
        return await self.store.transition(key, edge.name, call, given=given, noted=given)

    async def held(self, key: str = "x") -> JobRecord:
        record = await self.store.get(key)
        assert record is not None
        return record

    async def in_state(self, state: int, key: str = "x") -> JobRecord:
        await self.add(key)
        for source, target in PATHS[state]:
            assert (await self.move(source, target, key)).applied
        return await self.held(key)


@pytest.mark.req("TQ-061", "TQ-063", "TQ-064", "TQ-053")
@pytest.mark.parametrize("state", JOB.states)
@pytest.mark.parametrize(("source", "target"), list(product(JOB.states, repeat=2)))
async def test_every_pair_from_every_state(state: int, source: int, target: int) -> None:
    """A pair that is no edge is refused, a stale one is soft, and neither touches the record."""
    fixture = Fixture()
    before = await fixture.in_state(state)
    if (source, target) not in DRIVERS:
        with pytest.raises(Condition) as refused:
            await fixture.move(source, target)
        assert refused.value.code == "illegal_transition"
        assert await fixture.held() == before
    elif state != source:
        assert await fixture.move(source, target) == Transitioned(False, state)
        assert await fixture.held() == before
    else:
        assert await fixture.move(source, target) == Transitioned(True, target)
        assert (await fixture.held()).status == target


@pytest.mark.req("TQ-060")
@pytest.mark.parametrize("caller", SYSTEM.principals)
@pytest.mark.parametrize("edge", DRIVERS)
async def test_an_edge_has_its_driver(edge: tuple[int, int], caller: str) -> None:
    """The store itself asks who drives an edge, whatever the guard at the door has let in."""
    fixture = Fixture()
    await fixture.in_state(edge[0])
    if caller == DRIVERS[edge]:
        assert (await fixture.move(*edge, caller=caller)).applied
    else:
        with pytest.raises(Condition) as refused:
            await fixture.move(*edge, caller=caller)
        assert refused.value.code == "permission_denied"
        assert (await fixture.held()).status == edge[0]


@pytest.mark.req("TQ-064", "TQ-167")
async def test_the_first_of_two_terminal_writes_stands() -> None:
    """Of two endings that race, one applies; the other changes nothing and leaves a log line."""
    fixture = Fixture()
    await fixture.in_state(RUNNING)
    ends = await asyncio.gather(fixture.move(RUNNING, DONE), fixture.move(RUNNING, FAILED, reason="late"))
    assert sorted(end.applied for end in ends) == [False, True]
    (ignored,) = fixture.lines.read_back("terminal_write_ignored")
    assert (ignored["job_id"], ignored["current_status"]) == ("x", "DONE")
    assert (await fixture.held()).failure_reason == ""


@pytest.mark.req("TQ-167")
async def test_only_a_terminal_write_counts_as_ignored() -> None:
    """A repeated ending of the same kind, or a start that comes too late, is no ignored terminal write."""
    fixture = Fixture()
    await fixture.in_state(CANCELED)
    await fixture.move(QUEUED, CANCELED)
    await fixture.move(QUEUED, RUNNING)
    assert fixture.lines.read_back("terminal_write_ignored") == []


@pytest.mark.req("TQ-064")
@given(st.lists(st.sampled_from(sorted(DRIVERS)), max_size=12))
async def test_a_terminal_state_never_changes(edges: list[tuple[int, int]]) -> None:
    """Whatever is asked for in whatever order, a job that is over stays as it is."""
    fixture = Fixture()
    await fixture.add()
    over = None
    for edge in edges:
        await fixture.move(*edge)
        record = await fixture.held()
        assert over is None or record == over
        over = record if record.status in JOB.terminal else None


@pytest.mark.req("TQ-065")
async def test_the_store_stamps_and_nobody_else() -> None:
    """Each stamp is the store's time at its transition; what a record brings along is overwritten."""
    fixture = Fixture()
    call = make_call(fixture.world, caller="gateway")
    forged = JobRecord(job_id="x", job_type="t", status=DONE, created_at_ms=1, started_at_ms=0)
    await fixture.store.create(forged, call)
    fixture.world.wall_ms += 10
    await fixture.move(QUEUED, RUNNING)
    fixture.world.wall_ms += 10
    await fixture.move(RUNNING, DONE)
    record = await fixture.held()
    assert (record.created_at_ms, record.started_at_ms, record.finished_at_ms) == (1000000, 1000010, 1000020)


@pytest.mark.req("CH-42")
async def test_a_clock_that_steps_back_does_not_turn_stamps_round() -> None:
    """A stamp is never before an earlier stamp of the same job."""
    fixture = Fixture()
    await fixture.add()
    fixture.world.wall_ms -= 500
    await fixture.move(QUEUED, RUNNING)
    fixture.world.wall_ms -= 500
    await fixture.move(RUNNING, DONE)
    record = await fixture.held()
    assert record.created_at_ms == record.started_at_ms == record.finished_at_ms == 1_000_000


@pytest.mark.req("TQ-065")
async def test_a_job_canceled_while_queued_never_started() -> None:
    """Only the stamps of the transitions that were made are set."""
    record = await Fixture().in_state(CANCELED)
    assert (record.started_at_ms, record.finished_at_ms) == (0, 1_000_000)


@pytest.mark.req("CH-58", "CH-09", "CH-08")
async def test_a_cancel_raises_the_flag_and_keeps_the_first_reason() -> None:
    """CANCELED sets the flag; a reason is kept if none was there before."""
    fixture = Fixture()
    await fixture.add()
    await fixture.move(QUEUED, CANCELED, reason="enough")
    record = await fixture.held()
    assert (record.cancel_requested, record.cancel_reason) == (True, "enough")
    await fixture.add("y")
    await fixture.store.update("y", cancel_reason="first")
    await fixture.move(QUEUED, RUNNING, "y")
    await fixture.move(RUNNING, CANCELED, "y", reason="second")
    assert (await fixture.held("y")).cancel_reason == "first"


@pytest.mark.req("CH-09", "TQ-123")
@pytest.mark.parametrize(("reason", "kept"), [("broke", "broke"), ("", "UNKNOWN_FAILURE")])
async def test_a_failure_has_a_reason(reason: str, kept: str) -> None:
    """The reason of a move to FAILED is kept, and made up where there is none."""
    fixture = Fixture()
    await fixture.in_state(RUNNING)
    await fixture.move(RUNNING, FAILED, reason=reason)
    assert (await fixture.held()).failure_reason == kept


@pytest.mark.req("CH-09", "TQ-123")
async def test_the_reason_of_a_success_is_only_logged() -> None:
    """A reason that no field keeps is in the log of the transition."""
    fixture = Fixture()
    await fixture.in_state(RUNNING)
    await fixture.move(RUNNING, DONE, reason="as asked")
    assert (await fixture.held()).failure_reason == ""
    assert fixture.lines.read_back("transition")[-1]["reason"] == "as asked"


@pytest.mark.req("TQ-060", "TQ-061")
@pytest.mark.parametrize("field", ["status", "job_id", "created_at_ms", "started_at_ms", "finished_at_ms"])
async def test_a_handler_cannot_change_a_state_otherwise(field: str) -> None:
    """Neither an update nor the record itself lets anyone past the transitions."""
    fixture = Fixture()
    record = await fixture.add()
    with pytest.raises(GuardBreach, match=f"{field} of a job changes only with its state"):
        await fixture.store.update("x", **{field: DONE})
    with pytest.raises(AttributeError):
        setattr(record, field, DONE)
    assert await fixture.held() == record


@pytest.mark.req("TQ-061")
async def test_an_entity_is_created_once_and_by_its_creators() -> None:
    """A second record under a key is a fault of the handler; a creator outside the lifecycle is denied."""
    fixture = Fixture()
    await fixture.add()
    with pytest.raises(GuardBreach, match="exists already"):
        await fixture.add()
    with pytest.raises(Condition, match="only gateway may create a job"):
        await fixture.store.create(
            JobRecord(job_id="y", job_type="t"), make_call(fixture.world, caller="coordinator")
        )
    assert await fixture.store.get("y") is None


@pytest.mark.req("TQ-115")
async def test_a_delete_needs_its_state_and_its_caller() -> None:
    """Only in the expected state, only in one that may be deleted, and only by whom the lifecycle names."""
    fixture = Fixture()
    call = make_call(fixture.world, caller="gateway", lines=fixture.lines)
    await fixture.in_state(RUNNING)
    assert await fixture.store.delete("x", QUEUED, call) == Transitioned(False, RUNNING)
    assert await fixture.store.delete("x", RUNNING, call) == Transitioned(False, RUNNING)
    await fixture.add("y")
    with pytest.raises(Condition, match="only gateway may delete a job"):
        await fixture.store.delete("y", QUEUED, make_call(fixture.world, caller="coordinator"))
    assert await fixture.store.delete("y", QUEUED, call) == Transitioned(True, QUEUED)
    assert await fixture.store.get("y") is None
    assert fixture.lines.read_back("transition")[-1]["transition"] == "delete"
    with pytest.raises(NoSuchEntity):
        await fixture.store.delete("y", QUEUED, call)


@pytest.mark.req("CH-72")
async def test_only_the_oldest_terminal_records_are_forgotten() -> None:
    """Beyond the bound the record that ended first goes, from the listing too; a live one never does."""
    fixture = Fixture(max_terminal=2)
    await fixture.in_state(RUNNING, "live")
    for key in ("a", "b", "c"):
        await fixture.in_state(DONE, key)
    await fixture.add("queued")
    page = await fixture.store.find(size=10, newest_first=False)
    assert ([record.job_id for record in page.records], page.next) == (["b", "c", "live", "queued"], None)
    assert await fixture.store.get("a") is None
    with pytest.raises(NoSuchEntity):
        await fixture.move(RUNNING, DONE, "a")
    await fixture.move(RUNNING, DONE, "live")
    assert await fixture.store.get("b") is None


async def test_a_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bounds the oldest entries are forgotten; what follows has the number that it had to have."""
    monkeypatch.setattr("runtime.stores.memory.table.MOST_HISTORY", 4)
    monkeypatch.setattr("runtime.stores.memory.table.MOST_OF_ONE", 2)
    fixture = Fixture()
    await fixture.in_state(RUNNING, "a")
    await fixture.in_state(DONE, "b")
    assert [(each.sequence, each.edge) for each in await fixture.store.history("b")] == [
        (2, "dispatch"),
        (3, "complete"),
    ]
    await fixture.add("c")
    assert await fixture.store.history("a") == []
    await fixture.move(RUNNING, DONE, "a")
    assert [(each.sequence, each.edge) for each in await fixture.store.history("a")] == [(3, "complete")]


async def test_a_condition_on_the_record_is_part_of_an_edge() -> None:
    """An edge that asks for a flag applies only where the record has it."""
    fixture = Fixture()
    edges = {
        **JOB.edges,
        (RUNNING, CANCELED): replace(JOB.edges[RUNNING, CANCELED], when=("cancel_requested",)),
    }
    fixture.store = MemoryStore(SYSTEM, replace(JOB, edges=edges), JobRecord, fixture.world, fixture.metrics)
    await fixture.in_state(RUNNING)
    assert await fixture.move(RUNNING, CANCELED) == Transitioned(False, RUNNING)
    await fixture.store.update("x", cancel_requested=True)
    assert await fixture.move(RUNNING, CANCELED) == Transitioned(True, CANCELED)


async def test_a_record_may_be_any_frozen_struct() -> None:
    """Fields that are given by name alone are no matter; what was read before the move is left as it was."""

    class Named(Struct, frozen=True, kw_only=True):
        job_id: str
        status: int = 0
        created_at_ms: int = 0
        started_at_ms: int = 0
        finished_at_ms: int = 0
        cancel_requested: bool = False
        failure_reason: str = ""
        cancel_reason: str = ""

    world = HandWorld()
    store: MemoryStore[Named] = MemoryStore(SYSTEM, JOB, Named, world, Metrics())
    before = (await store.create(Named(job_id="x"), make_call(world, caller="gateway"))).record
    assert await store.transition("x", "dispatch", make_call(world, caller="coordinator")) == Transitioned(
        True, RUNNING
    )
    after = await store.get("x")
    assert after == replace(before, status=RUNNING, started_at_ms=world.wall_ms)
    assert before.status == QUEUED


def test_a_record_without_the_fields_of_its_lifecycle_is_refused() -> None:
    """A store for a record that lacks what the lifecycle names is not made at all."""

    class Small(Struct, frozen=True):
        job_id: str
        status: int

    with pytest.raises(TypeError, match="Small lacks cancel_reason, cancel_requested"):
        MemoryStore(SYSTEM, JOB, Small, HandWorld(), Metrics())


def test_a_record_that_can_be_changed_is_refused() -> None:
    """A store hands out its records, so nobody may be able to assign to one."""

    class Open(Struct):
        job_id: str

    @dataclass(frozen=True)
    class Standard:
        job_id: str

    kinds: tuple[type[Any], ...] = (Open, Standard)
    for kind in kinds:
        with pytest.raises(TypeError, match=f"{kind.__name__} must be a msgspec.Struct with frozen=True"):
            MemoryStore(SYSTEM, JOB, kind, HandWorld(), Metrics())
