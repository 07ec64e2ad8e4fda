"""The order of steps: a transition is asked for after the calls that the spec puts before it, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from generated.taskqueue.clients import (
    JobInternalServiceClient,
    QueueInternalServiceClient,
    ResultInternalServiceClient,
)
from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    QUEUED,
    RUNNING,
    DequeueJobRequest,
    DequeueJobResponse,
    GetJobRecordRequest,
    JobStatus,
    RemoveJobIfPresentRequest,
    StoreResultRequest,
    TransitionJobStatusRequest,
)
from generated.taskqueue.policy import COMPENSATION
from generated.taskqueue.system import SYSTEM
from runtime.call import Answering, Call, Invoke, Request, Response
from runtime.call.conditions import CallFailed, Failure
from runtime.call.step_order import keep_step_order
from runtime.model.system import Method
from tests.runtime.hand_world import HandWorld, Lines, make_call


class Recorder:
    """A channel that writes down what reaches it; a method can be made to fail."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.failing: set[str] = set()

    def bind(
        self, method: Method, _request: type[Request], response: type[Response], /
    ) -> Invoke[Request, Response]:
        def invoke(_message: Request, _call: Call) -> Answering[Response]:
            return self._answer(method, response)

        return invoke

    async def _answer(self, method: Method, response: type[Any]) -> Any:
        if method.name in self.failing:
            raise CallFailed("UNAVAILABLE", "told to fail", "Test")
        self.reached.append(method.name)
        return response(found=True, job_id="j") if response is DequeueJobResponse else response()


class Actor:
    """A component with clients whose channels keep the order, and one call that it has in hand."""

    def __init__(self, component: str) -> None:
        self.recorder, self.lines = Recorder(), Lines()
        self.call = make_call(HandWorld(), lines=self.lines)
        channel = keep_step_order(SYSTEM, component, self.recorder)
        self._jobs = JobInternalServiceClient(channel)
        self._queue = QueueInternalServiceClient(channel)
        self._results = ResultInternalServiceClient(channel)

    async def remove(self, job_id: str = "j") -> None:
        await self._queue.remove_job_if_present(RemoveJobIfPresentRequest(job_id=job_id), self.call)

    async def dequeue(self) -> None:
        await self._queue.dequeue_job(DequeueJobRequest(worker_id="w"), self.call)

    async def read(self) -> None:
        await self._jobs.get_job_record(GetJobRecordRequest(job_id="j"), self.call)

    async def store(self, job_id: str = "j") -> None:
        await self._results.store_result(StoreResultRequest(job_id=job_id), self.call)

    async def move(
        self, source: JobStatus.ValueType, target: JobStatus.ValueType, call: Call | None = None
    ) -> None:
        request = TransitionJobStatusRequest(job_id="j", expected_from_status=source, to_status=target)
        await self._jobs.transition_job_status(request, call or self.call)

    async def refused(self, source: JobStatus.ValueType, target: JobStatus.ValueType) -> str:
        """The message with which a transition is refused, before it is sent."""
        reached = len(self.recorder.reached)
        with pytest.raises(Failure) as caught:
            await self.move(source, target)
        assert caught.value.grpc == "PERMISSION_DENIED"
        assert len(self.recorder.reached) == reached
        return caught.value.message


async def test_a_transition_without_its_steps_is_refused() -> None:
    """None of them, or not all: what is missing is named, the callee hears nothing, and the log does."""
    gateway = Actor("gateway")
    assert "'withdraw' comes after QueueInternalService.RemoveJobIfPresent" in await gateway.refused(
        QUEUED, CANCELED
    )
    await gateway.remove()
    assert "'withdraw' comes after ResultInternalService.StoreResult" in await gateway.refused(
        QUEUED, CANCELED
    )
    denied = gateway.lines.read_back("call_denied")
    assert [line["method"] for line in denied] == ["JobInternalService.TransitionJobStatus"] * 2
    await gateway.store()
    await gateway.move(QUEUED, CANCELED)
    assert gateway.recorder.reached == ["RemoveJobIfPresent", "StoreResult", "TransitionJobStatus"]


async def test_the_order_counts() -> None:
    """The same steps the other way round are not the order."""
    gateway = Actor("gateway")
    await gateway.store()
    await gateway.remove()
    assert "StoreResult" in await gateway.refused(QUEUED, CANCELED)


async def test_the_steps_of_another_entity_do_not_count() -> None:
    gateway = Actor("gateway")
    await gateway.remove("other")
    await gateway.store("other")
    assert "RemoveJobIfPresent" in await gateway.refused(QUEUED, CANCELED)


async def test_the_steps_of_another_call_do_not_count() -> None:
    coordinator = Actor("coordinator")
    await coordinator.store()
    coordinator.call = make_call(HandWorld(), lines=coordinator.lines)
    assert "StoreResult" in await coordinator.refused(RUNNING, DONE)


async def test_a_step_that_failed_is_not_completed() -> None:
    coordinator = Actor("coordinator")
    coordinator.recorder.failing.add("StoreResult")
    with pytest.raises(CallFailed):
        await coordinator.store()
    assert "StoreResult" in await coordinator.refused(RUNNING, DONE)


async def test_a_step_may_learn_from_its_answer_what_it_is_about() -> None:
    """A dequeue asks for no job; the one that it is given is the one that may be dispatched."""
    coordinator = Actor("coordinator")
    await coordinator.dequeue()
    await coordinator.read()
    await coordinator.move(QUEUED, RUNNING)
    assert coordinator.recorder.reached[-1] == "TransitionJobStatus"


async def test_a_call_under_other_rules_is_the_same_call() -> None:
    """A compensation goes on where the call was that it belongs to."""
    coordinator = Actor("coordinator")
    under = coordinator.call.under(COMPENSATION)
    await coordinator.store()
    await coordinator.move(RUNNING, DONE, under)


async def test_a_transition_uses_its_steps_up() -> None:
    """The next one needs its own, and a call that goes on for ever remembers no more than it has to."""
    coordinator = Actor("coordinator")
    await coordinator.store()
    await coordinator.move(RUNNING, DONE)
    assert coordinator.call.steps == {}
    assert "StoreResult" in await coordinator.refused(RUNNING, DONE)


async def test_an_attempt_that_failed_uses_nothing_up() -> None:
    """The same transition may be asked for again."""
    coordinator = Actor("coordinator")
    await coordinator.store()
    coordinator.recorder.failing.add("TransitionJobStatus")
    with pytest.raises(CallFailed):
        await coordinator.move(RUNNING, DONE)
    coordinator.recorder.failing.clear()
    await coordinator.move(RUNNING, DONE)


def test_a_component_without_an_order_has_its_channel_as_it_is() -> None:
    recorder = Recorder()
    assert keep_step_order(SYSTEM, "worker", recorder) is recorder
