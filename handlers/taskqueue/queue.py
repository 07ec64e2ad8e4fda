"""Which jobs wait. First in, first out; every operation takes the same time however many wait."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from generated.taskqueue.events import JOB_DEQUEUED
from generated.taskqueue.messages import (
    DequeueJobRequest,
    DequeueJobResponse,
    EnqueueJobRequest,
    EnqueueJobResponse,
    RemoveJobIfPresentRequest,
    RemoveJobIfPresentResponse,
)
from generated.taskqueue.policy import IDLE_HOLD
from runtime.call import Call
from runtime.world import World


class Queue:
    """Holds ids and nothing else of a job."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._idle: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    async def enqueue_job(self, request: EnqueueJobRequest, _call: Call) -> EnqueueJobResponse:
        if request.job_id in self._waiting:
            return EnqueueJobResponse(accepted=True, already_waiting=True)
        self._waiting[request.job_id] = None
        self._wake_one()
        return EnqueueJobResponse(accepted=True)

    async def dequeue_job(self, _request: DequeueJobRequest, call: Call) -> DequeueJobResponse:
        await self._job_or_timeout(call)
        # A pop is for good, so it is not made for someone who will not hear of it.
        if not self._waiting or call.expired:
            return DequeueJobResponse(found=False)
        job_id, _ = self._waiting.popitem(last=False)
        call.tell(JOB_DEQUEUED, "left the queue", job_id=job_id)
        return DequeueJobResponse(found=True, job_id=job_id)

    async def remove_job_if_present(
        self, request: RemoveJobIfPresentRequest, _call: Call
    ) -> RemoveJobIfPresentResponse:
        removed = request.job_id in self._waiting
        self._waiting.pop(request.job_id, None)
        return RemoveJobIfPresentResponse(removed=removed)

    async def _job_or_timeout(self, call: Call) -> None:
        """Waits for a job, but never so long that the answer could come too late."""
        if self._waiting:
            return
        remaining = call.remaining()
        hold = IDLE_HOLD / 1000 if remaining is None else min(IDLE_HOLD / 1000, remaining / 2)
        # Not all for equally long, or idle workers would come to ask, and to pause, all at once.
        until = self._world.monotonic() + hold * self._world.uniform(0.6, 1.0)
        # Whoever came between may have taken what the bell rang for.
        while not self._waiting and (left := until - self._world.monotonic()) > 0:
            await self._bell(left)

    async def _bell(self, seconds: float) -> None:
        """Returns when a job comes in, or after so many seconds."""
        loop = asyncio.get_running_loop()
        bell = loop.create_future()
        self._idle[bell] = None
        timer = loop.call_later(seconds, _ring, bell)
        try:
            await bell
        except asyncio.CancelledError:
            if bell.done() and not bell.cancelled():
                self._wake_one()  # It rang for someone who is gone.
            raise
        finally:
            timer.cancel()
            self._idle.pop(bell, None)

    def _wake_one(self) -> None:
        while self._idle:
            bell, _ = self._idle.popitem(last=False)
            if _ring(bell):
                return


def _ring(bell: asyncio.Future[None]) -> bool:
    """Whether somebody still waited for it."""
    if bell.done():
        return False
    bell.set_result(None)
    return True
