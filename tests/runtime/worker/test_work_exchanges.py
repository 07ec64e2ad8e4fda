"""Exchanges of a worker: batches, concurrency and failures, over a store in memory."""

from __future__ import annotations

import asyncio

from generated.bakery.messages import BAKING
from generated.bakery.records import CakeRecord
from runtime.stores.contract import LeaseProof
from runtime.worker.config import Outcome
from tests.runtime.hand_world import Lines
from tests.runtime.virtual_time import LoopWorld, in_virtual_time
from tests.runtime.worker.memory_leases import DONE, WORLD, MemoryLeases, run_worker, wait_for_settled
from tests.support.eventually import eventually


class PauseRecorder(LoopWorld):
    """A world that records its pauses."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await super().sleep(seconds)


async def run_slowly(_record: CakeRecord, _held: LeaseProof) -> Outcome:
    await asyncio.sleep(0.002)
    return DONE


@in_virtual_time
async def test_a_half_is_run_while_the_other_is_exchanged() -> None:
    """With many slots worker and store work at the same time; no two exchanges are in flight at once."""
    store = MemoryLeases(left=1000)
    async with run_worker(store, 40) as counter:
        await wait_for_settled(store, 1000)
    assert counter.meanwhile > 600
    assert store.concurrent == 1
    assert store.most <= 40


@in_virtual_time
async def test_a_store_that_can_do_two_at_a_time_is_given_two() -> None:
    """Each a half of the slots; both have no more entities than there are slots."""
    store = MemoryLeases(left=1000)
    async with run_worker(store, 40, exchanges=2):
        await wait_for_settled(store, 1000)
    assert store.concurrent == 2
    assert all(10 <= count <= 20 for count in store.beside)
    assert store.most <= 40
    assert store.held == 0


@in_virtual_time
async def test_a_few_outcomes_wait_for_the_exchange_that_is_in_flight() -> None:
    """They go with all that have ended by then, as an exchange costs almost as much for a few as for many."""
    store = MemoryLeases(left=1000)
    async with run_worker(store, 40, run_slowly, exchanges=2):
        await wait_for_settled(store, 1000)
    assert all(count >= 10 for count in store.beside)
    assert store.most <= 40
    small = MemoryLeases(left=200)
    async with run_worker(small, 8, exchanges=2):
        await wait_for_settled(small, 200)
    assert small.concurrent == 1


@in_virtual_time
async def test_two_exchanges_that_fail_together_are_one_outage() -> None:
    """It is logged once, and there is one pause; nothing is lost, and nothing is written twice."""
    store, lines, world = MemoryLeases(left=1000, fails_at=200), Lines(), PauseRecorder()
    async with run_worker(store, 40, exchanges=2, lines=lines, world=world):
        await wait_for_settled(store, 1000)
    assert (store.settled, store.held, store.failed_exchanges) == (1000, 0, 2)
    assert len(lines.read_back("acquire_failed")) == 1
    assert len(world.pauses) == 1


@in_virtual_time
async def test_with_few_slots_all_go_in_one_exchange() -> None:
    """So few are exchanged at once, as an exchange of a few would cost as much as one of all."""
    store = MemoryLeases(left=100)
    async with run_worker(store, 4) as counter:
        await wait_for_settled(store, 100)
    assert counter.meanwhile == 0
    assert store.most == 4


@in_virtual_time
async def test_runs_that_wait_fill_their_slots_as_they_end() -> None:
    store = MemoryLeases(left=200)
    async with run_worker(store, 10, run_slowly):
        await wait_for_settled(store, 200)
    assert store.most <= 10
    assert store.held == 0


@in_virtual_time
async def test_a_locked_entity_delays_no_other() -> None:
    """It is written alone, as long as that takes, and its slot is not filled before."""
    store = MemoryLeases(left=300, busy=3)
    async with run_worker(store, 5):
        await wait_for_settled(store, 290)
        assert (store.settled_alone, store.held > 2) == (0, True)
        store.is_free.set()
        await wait_for_settled(store, 300)
    assert (store.settled_alone, store.held) == (3, 0)
    assert store.most <= 5


@in_virtual_time
async def test_an_entity_that_was_locked_for_a_moment_goes_with_the_next_exchange() -> None:
    """As many do that another exchange has passed over: to write each of them alone would cost far more."""
    store = MemoryLeases(left=300, busy=30, unlocks=True)
    async with run_worker(store, 40, exchanges=2):
        await wait_for_settled(store, 300)
    assert (store.settled_alone, store.held, store.locked) == (0, 0, set())


@in_virtual_time
async def test_an_idle_worker_polls_once_in_an_interval() -> None:
    store = MemoryLeases(left=0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with run_worker(store, 50, poll_s=0.05):
        await eventually(lambda: store.polls >= 5)
        polls, took = store.polls, loop.time() - began
    # As many as intervals have gone by, however long they were, and the one at the start.
    assert polls <= took / 0.05 + 1


@in_virtual_time
async def test_a_pushed_entity_is_run_without_a_poll_of_the_store() -> None:
    """Its runs have begun after one turn of the loop, and its outcome is written like that of any other."""
    store = MemoryLeases(left=0, held=2)
    async with run_worker(store, slots=4, poll_s=60) as worker:
        given = [CakeRecord(order_id=WORLD.new_id(), state=BAKING, round=1) for _ in range(2)]
        async with asyncio.timeout(60):
            while not worker.push(given):  # It has not begun.
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert worker.runs == 2
        await wait_for_settled(store, 2)


@in_virtual_time
async def test_a_worker_that_is_about_to_stop_takes_nothing() -> None:
    store = MemoryLeases(left=0)
    async with run_worker(store, slots=4, poll_s=60) as worker:
        given = [CakeRecord(order_id=WORLD.new_id(), state=BAKING, round=1)]
        assert not worker.push(given)  # It has not begun.
        await asyncio.sleep(0.02)
        worker.stopping.set()
        assert not worker.push(given)
        assert worker.runs == 0
