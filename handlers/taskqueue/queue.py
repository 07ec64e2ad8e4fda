"""The queue of waiting jobs: first in, first out; every operation takes constant time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from generated.taskqueue.events import JOB_DEQUEUED
from generated.taskqueue.messages import (
    PRESENCE_PRESENT,
    DequeueJobRequest,
    DequeueJobResponse,
    EnqueueJobRequest,
    EnqueueJobResponse,
    RemoveJobIfPresentRequest,
    RemoveJobIfPresentResponse,
)
from generated.taskqueue.policy import IDLE_HOLD
from generated.taskqueue.records import EntryRecord
from handlers.taskqueue.single_writer import Arrivals, Turns, create_or_find
from runtime.call import Call
from runtime.stores.contract import EntityStore
from runtime.stores.store import NoSuchEntity
from runtime.world import World


class Queue:
    """A queue of job ids; it knows nothing else of a job. What waits is read from its store once."""

    def __init__(self, entries: EntityStore[EntryRecord], world: World) -> None:
        self._entries = entries
        self._world = world
        self._arrivals = Arrivals(entries, "enqueued_at_ms", world)
        self._turns = Turns()
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._idle: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    async def enqueue_job(self, request: EnqueueJobRequest, call: Call) -> EnqueueJobResponse:
        job_id = request.job_id
        await self._load()
        async with self._turns.of(job_id):
            if job_id in self._waiting:
                return EnqueueJobResponse(accepted=True, already_waiting=True)
            entry = EntryRecord(job_id=job_id, enqueued_at_ms=self._arrivals.next_ms())
            await create_or_find(self._entries, entry, job_id, call)
            self._waiting[job_id] = None
        self._wake_one()
        return EnqueueJobResponse(accepted=True)

    async def dequeue_job(self, _request: DequeueJobRequest, call: Call) -> DequeueJobResponse:
        await self._load()
        await self._wait_for_job(call)
        # A pop cannot be undone, so do not pop for a caller whose deadline has expired.
        while self._waiting and not call.expired:
            job_id, _ = self._waiting.popitem(last=False)
            if await self._pop(job_id, call):
                call.tell(JOB_DEQUEUED, "left the queue", job_id=job_id)
                return DequeueJobResponse(found=True, job_id=job_id)
        return DequeueJobResponse(found=False)

    async def remove_job_if_present(
        self, request: RemoveJobIfPresentRequest, call: Call
    ) -> RemoveJobIfPresentResponse:
        job_id = request.job_id
        await self._load()
        removed = job_id in self._waiting and await self._delete(job_id, call)
        return RemoveJobIfPresentResponse(removed=removed)

    async def _load(self) -> None:
        """Read what waits in the store, at the first call."""
        for entry in await self._arrivals.load():
            self._waiting[entry.job_id] = None

    async def _pop(self, job_id: str, call: Call) -> bool:
        """Delete the entry of a job; it is the first again if that fails."""
        try:
            return await self._delete(job_id, call)
        except BaseException:
            self._waiting[job_id] = None
            self._waiting.move_to_end(job_id, last=False)
            self._wake_one()
            raise

    async def _delete(self, job_id: str, call: Call) -> bool:
        """Delete the entry of a job; return False if another call was faster."""
        async with self._turns.of(job_id):
            try:
                deletion = await self._entries.delete(job_id, PRESENCE_PRESENT, call)
            except NoSuchEntity:
                return False
            self._waiting.pop(job_id, None)
            return deletion.applied

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
