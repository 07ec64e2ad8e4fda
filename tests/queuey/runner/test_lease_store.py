"""The lease store of a runner: requests of the queue in place of a store, one slot for each job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from generated.queuey import errors
from generated.queuey.lifecycle import JOB_ABANDON, JOB_COMPLETE, JOB_FAIL, JOB_RELEASE
from generated.queuey.messages import COMPLETED, FAILED, PENDING, Job
from handlers.queuey.queue_lease_store import QueueLeaseStore
from runtime.call.conditions import Condition
from runtime.stores.contract import LeaseProof, LeaseSettlement
from tests.runtime.hand_world import HandWorld, make_call

LEASE = LeaseProof("me", 1)


class Queue:
    """A queue that writes down its requests, and answers as a test says."""

    def __init__(self) -> None:
        self.jobs = ["a", "b", "c"]
        self.requests: list[Any] = []
        self.failure: Condition | None = None
        self.may_answer = asyncio.Event()

    async def claim_job(self, request: Any, _call: Any) -> Job:
        self._note(request)
        if request.wait_ms:
            await self.may_answer.wait()
        return Job(job_id=self.jobs.pop(0), run_attempts=1) if self.jobs else Job()

    async def complete_job(self, request: Any, _call: Any) -> Job:
        return self._note(request)

    release_job = tickle_job = complete_job

    def _note(self, request: Any) -> Job:
        if self.failure is not None:
            raise self.failure
        self.requests.append(request)
        return Job()


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def world() -> HandWorld:
    return HandWorld()


@pytest.fixture
def store(queue: Queue, world: HandWorld) -> QueueLeaseStore:
    service: Any = queue
    return QueueLeaseStore(service, "me", make_call(world, caller="runner"))


def call(world: HandWorld) -> Any:
    return make_call(world, caller="runner")


async def test_each_edge_is_a_request(queue: Queue, store: QueueLeaseStore, world: HandWorld) -> None:
    done = {"output_addr": "out", "stderr_addr": None, "exit_code": 0}
    settlements = [
        LeaseSettlement("a", LEASE, JOB_COMPLETE.name, done),
        LeaseSettlement("b", LEASE, JOB_FAIL.name, {"reason": "TRAPPED"}),
        LeaseSettlement("c", LEASE, JOB_RELEASE.name),
        LeaseSettlement("d", LEASE, JOB_ABANDON.name),
    ]
    assert await store.settle_many(settlements, call(world)) == [COMPLETED, FAILED, PENDING, PENDING]
    completed, failed, released, abandoned = queue.requests
    assert (completed.job_id, completed.runner_id, completed.run_attempts) == ("a", "me", 1)
    assert (completed.status, completed.output_addr, completed.exit_code) == (COMPLETED, "out", 0)
    assert completed.HasField("exit_code") and not completed.HasField("stderr_addr")
    assert (failed.status, failed.reason) == (FAILED, "TRAPPED")
    assert (released.job_id, released.abandoned, abandoned.abandoned) == ("c", False, True)


async def test_the_poll_in_flight_has_a_slot(queue: Queue, store: QueueLeaseStore, world: HandWorld) -> None:
    """What it may bring is not claimed a second time."""
    pushed: list[str] = []
    store.poll.push = lambda jobs: not pushed.extend(each.job_id for each in jobs)  # type: ignore[func-returns-value]
    assert not await store.wait(0)
    assert [each.job_id for each in (await store.exchange("me", [], 2, call(world))).claimed] == ["a"]
    queue.may_answer.set()
    assert await store.wait(60)
    assert pushed == ["b"]
    assert [each.job_id for each in (await store.exchange("me", [], 2, call(world))).claimed] == ["c"]


async def test_a_runner_in_trouble_pauses(queue: Queue, store: QueueLeaseStore, world: HandWorld) -> None:
    """It gives the job back at once, and claims nothing for a while."""
    trouble = [LeaseSettlement("d", LEASE, JOB_ABANDON.name)]
    assert (await store.exchange("me", trouble, 2, call(world))).claimed == []
    world.seconds += 4.9
    assert (await store.exchange("me", [], 2, call(world))).claimed == []
    world.seconds += 0.2
    assert len((await store.exchange("me", [], 2, call(world))).claimed) == 2


async def test_an_outage_is_no_loss(queue: Queue, store: QueueLeaseStore, world: HandWorld) -> None:
    """What the queue refuses is lost; what it cannot answer may be tried again."""
    done = [LeaseSettlement("a", LEASE, JOB_COMPLETE.name)]
    for failure, is_lost in (
        (errors.DeadlineExceeded(method="CompleteJob"), False),
        (errors.StoreUnavailable(), False),
        (errors.NotOwner(holder="me", key="a"), True),
    ):
        queue.failure = failure
        (outcome,) = await store.settle_many(done, call(world))
        (renewed,) = await store.renew([("a", LEASE)])
        assert isinstance(outcome, Condition) and (outcome.grpc == "UNAVAILABLE") is not is_lost
        assert (renewed is None) is is_lost
    queue.failure = errors.DeadlineExceeded(method="ClaimJob")
    with pytest.raises(errors.UpstreamUnavailable):
        await store.exchange("me", [], 1, call(world))


async def test_a_job_that_comes_after_the_stop_is_released(
    queue: Queue, store: QueueLeaseStore, world: HandWorld
) -> None:
    assert not await store.wait(0)
    queue.may_answer.set()
    await store.release_undelivered(call(world))
    (claimed, released) = queue.requests
    assert claimed.wait_ms > 0
    assert (released.job_id, released.run_attempts, released.abandoned) == ("a", 1, False)
