"""A worker as the manager knows it: by which name, when it was last heard of, and what it says to run."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from generated.priority import errors
from generated.priority.events import WORKER_LOST
from generated.priority.messages import (
    ACTIVE,
    DRAINING,
    DeregisterWorkerRequest,
    HeartbeatRequest,
    RegisterWorkerRequest,
)
from generated.priority.services import WorkersService
from runtime.call import Call
from runtime.worker.config import Outcome

GIVEN_UP = (errors.WorkerDead, errors.WorkerNotFound)
_SURE = 0
_NOT_YET = 1 << 63


class Registration:
    """Where the manager has given the worker up, it registers anew.

    A heartbeat names what the worker runs, so that the manager gives to others what it believes to be run
    here and is not. What a request may just be bringing must not be taken for that. So a heartbeat says as of
    when it names everything: the time that an answer of the manager told before any of the requests was sent
    that are still under way.
    """

    def __init__(self, manager: WorkersService, request: RegisterWorkerRequest, call: Call) -> None:
        self._manager = manager
        self._request = request
        self._call = call
        self._anew = asyncio.Lock()
        self.worker_id = ""
        self.heartbeat_s = 30.0
        self.is_draining = False
        self.holds: dict[tuple[str, int], str] = {}
        """As whom each task was taken; the worker may have registered anew since."""
        self._last_beat = call.world.monotonic()
        self._told_at = 0
        """The manager's time of the last answer, in nanoseconds; 0 if there was none."""
        self._under_way: list[int] = []
        """The same for each request under way, as it was when that was sent."""
        self._doubts = 0
        self._sure_from = _SURE
        """A heartbeat that names everything as of this time ends the last doubt."""

    @property
    def quiet_until(self) -> float:
        """When it should be heard of again, on the monotonic clock."""
        return self._last_beat + (self.heartbeat_s if self._sure_from == _SURE else self.least_s)

    @property
    def least_s(self) -> float:
        """The time between two heartbeats at least."""
        return self.heartbeat_s / 10

    async def register(self, instead_of: str = "") -> None:
        """Registers, unless another part of the worker has already done so."""
        async with self._anew:
            if self.worker_id != instead_of:
                return
            given = await self._manager.register_worker(self._request, self._call)
            self.worker_id, self.heartbeat_s = given.worker_id, given.heartbeat_interval_seconds
            self._last_beat = self._call.world.monotonic()
        if instead_of:
            self._call.tell(WORKER_LOST, f"{instead_of} was given up", worker_id=self.worker_id)

    async def beat(self) -> None:
        """Lets itself be heard of, and forgets what is not its own any more."""
        worker_id, doubts = self.worker_id, self._doubts
        as_of = min([self._told_at, *self._under_way])
        request = HeartbeatRequest(
            worker_id=worker_id,
            current_load=len(self.holds),
            status=DRAINING if self.is_draining else ACTIVE,
            running=[key for key, _ in self.holds],
        )
        if as_of:
            request.running_as_of.FromNanoseconds(as_of)
        stop: Collection[str]
        try:
            answer = await self._manager.heartbeat(request, self._call)
        except GIVEN_UP:
            await self.register(instead_of=worker_id)
            stop = ()
        else:
            stop = answer.stop
            self._last_beat = self._call.world.monotonic()
            self._told_at = answer.at.ToNanoseconds()
            if doubts == self._doubts:
                self._resolve(as_of)
        if worker_id != self.worker_id:
            stop = {key for (key, _), owner in self.holds.items() if owner == worker_id}
        for each in [each for each in self.holds if each[0] in stop]:
            del self.holds[each]

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around a request that may bring tasks. What it brings has to be held when this is left."""
        sent_at = self._told_at
        self._under_way.append(sent_at)
        try:
            yield
        except BaseException:
            self._doubt()
            raise
        finally:
            self._under_way.remove(sent_at)

    async def leave(self) -> None:
        """Says goodbye, so that nobody takes the worker for dead."""
        await self._manager.deregister_worker(DeregisterWorkerRequest(worker_id=self.worker_id), self._call)

    # What becomes of tasks in the hands of the worker.

    def taken(self, key: str) -> None:
        """It is held from the moment at which it was brought."""

    def settled(self, key: str, outcome: Outcome) -> None:
        """It is held no more since the manager said so."""

    def lost(self, key: str, fence: int) -> None:
        """Names it no longer; if the manager still believes it to be run here, somebody else gets it."""
        if self.holds.pop((key, fence), None) is not None:
            self._doubt()

    def _doubt(self) -> None:
        """There may be something that the manager should hear of soon."""
        self._doubts += 1
        self._sure_from = _NOT_YET

    def _resolve(self, as_of: int) -> None:
        """The first heartbeat after a doubt learns the time; one that names everything as of then ends it."""
        if self._sure_from == _NOT_YET:
            self._sure_from = self._told_at
        elif as_of >= self._sure_from:
            self._sure_from = _SURE
