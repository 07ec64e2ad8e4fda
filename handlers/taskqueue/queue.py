"""The queue of waiting jobs: first in, first out; every operation takes constant time."""

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
    """A queue of job ids; it knows nothing else of a job."""

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
        await self._wait_for_job(call)
        # A pop cannot be undone, so do not pop for a caller whose deadline has expired.
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

    async def _wait_for_job(self, call: Call) -> None:
        """Wait for a job, for at most half of the remaining deadline, so that the response is in time."""
        if self._waiting:
            return
        remaining = call.remaining()
        wait_s = IDLE_HOLD / 1000 if remaining is None else min(IDLE_HOLD / 1000, remaining / 2)
        # Add jitter, or idle workers would all ask and pause at the same moment.
        until = self._world.monotonic() + wait_s * self._world.uniform(0.6, 1.0)
        # Check again: another caller may have popped the job of this wake-up.
        while not self._waiting and (left := until - self._world.monotonic()) > 0:
            await self._wait_for_wakeup(left)

    async def _wait_for_wakeup(self, seconds: float) -> None:
        """Wait for the wake-up of an enqueue, or for a timeout."""
        loop = asyncio.get_running_loop()
        wakeup = loop.create_future()
        self._idle[wakeup] = None
        timer = loop.call_later(seconds, _wake, wakeup)
        try:
            await wakeup
        except asyncio.CancelledError:
            if wakeup.done() and not wakeup.cancelled():
                self._wake_one()  # Pass the wake-up of a cancelled caller on.
            raise
        finally:
            timer.cancel()
            self._idle.pop(wakeup, None)

    def _wake_one(self) -> None:
        while self._idle:
            wakeup, _ = self._idle.popitem(last=False)
            if _wake(wakeup):
                return


def _wake(wakeup: asyncio.Future[None]) -> bool:
    """Wake a waiting caller; return False if it no longer waits."""
    if wakeup.done():
        return False
    wakeup.set_result(None)
    return True
