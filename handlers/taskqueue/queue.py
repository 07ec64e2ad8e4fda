"""Which jobs wait. First in, first out; every operation takes the same time however many wait."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

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
        self._idle: deque[asyncio.Future[None]] = deque()

    async def enqueue_job(self, request: EnqueueJobRequest, _call: Call) -> EnqueueJobResponse:
        if request.job_id not in self._waiting:
            self._waiting[request.job_id] = None
            self._wake_one()
        return EnqueueJobResponse(accepted=True)

    async def dequeue_job(self, request: DequeueJobRequest, call: Call) -> DequeueJobResponse:
        if not self._waiting:
            await self._job_or_timeout(call)
        if not self._waiting:
            return DequeueJobResponse(found=False)
        job_id, _ = self._waiting.popitem(last=False)
        call.tell(JOB_DEQUEUED, "left the queue", job_id=job_id, worker_id=request.worker_id)
        return DequeueJobResponse(found=True, job_id=job_id)

    async def remove_job_if_present(
        self, request: RemoveJobIfPresentRequest, _call: Call
    ) -> RemoveJobIfPresentResponse:
        removed = request.job_id in self._waiting
        self._waiting.pop(request.job_id, None)
        return RemoveJobIfPresentResponse(removed=removed)

    async def _job_or_timeout(self, call: Call) -> None:
        """Waits for a job, but never so long that its answer could come too late: a pop is for good."""
        remaining = call.remaining()
        hold = IDLE_HOLD / 1000 if remaining is None else min(IDLE_HOLD / 1000, remaining / 2)
        if hold <= 0:
            return
        bell = asyncio.get_running_loop().create_future()
        self._idle.append(bell)
        try:
            # Not all for equally long, or idle workers would come to ask, and to pause, all at once.
            async with asyncio.timeout(hold * self._world.uniform(0.6, 1.0)):
                await bell
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            if bell.done() and not bell.cancelled():
                self._wake_one()  # It rang for someone who is gone.
            raise
        finally:
            if not bell.done():
                bell.cancel()

    def _wake_one(self) -> None:
        while self._idle:
            bell = self._idle.popleft()
            if not bell.done():
                bell.set_result(None)
                return
