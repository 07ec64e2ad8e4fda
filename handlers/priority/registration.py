"""The registration of a worker with the manager: its id, its heartbeats, and the tasks that it runs."""

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

WORKER_GONE = (errors.WorkerDead, errors.WorkerNotFound)
_CERTAIN = 0
_UNKNOWN_TIME = 1 << 63


class Registration:
    """A registration that is renewed where the manager has declared the worker dead.

    A heartbeat names the tasks that the worker runs, so that the manager requeues the tasks that it believes
    to be here and are not. Tasks that a request in flight may be bringing must not count as such. So a
    heartbeat says as of which time its list is complete: the manager's time of the last response before any
    of the requests in flight was sent.
    """

    def __init__(self, manager: WorkersService, request: RegisterWorkerRequest, call: Call) -> None:
        self._manager = manager
        self._request = request
        self._call = call
        self._register_lock = asyncio.Lock()
        self.worker_id = ""
        self.heartbeat_s = 30.0
        self.is_draining = False
        self.leases: dict[tuple[str, int], str] = {}
        """The worker id under which each task was claimed; the worker may have re-registered since."""
        self._last_heartbeat = call.world.monotonic()
        self._manager_time_ns = 0
        """The manager's time of the last response, in nanoseconds; 0 if there was none."""
        self._in_flight: list[int] = []
        """The same for each request in flight, as it was when that was sent."""
        self._uncertainties = 0
        self._certain_from = _CERTAIN
        """A heartbeat whose list is complete as of this time ends the uncertainty."""

    @property
    def next_heartbeat_at(self) -> float:
        """The time of the next heartbeat, on the monotonic clock."""
        return self._last_heartbeat + (
            self.heartbeat_s if self._certain_from == _CERTAIN else self.min_interval_s
        )

    @property
    def min_interval_s(self) -> float:
        """The minimum interval between two heartbeats."""
        return self.heartbeat_s / 10

    async def register(self, instead_of: str = "") -> None:
        """Register, unless a concurrent task of the worker has already done so."""
        async with self._register_lock:
            if self.worker_id != instead_of:
                return
            response = await self._manager.register_worker(self._request, self._call)
            self.worker_id, self.heartbeat_s = response.worker_id, response.heartbeat_interval_seconds
            self._last_heartbeat = self._call.world.monotonic()
        if instead_of:
            self._call.tell(WORKER_LOST, f"{instead_of} was given up", worker_id=self.worker_id)

    async def send_heartbeat(self) -> None:
        """Send a heartbeat, and drop the leases that the worker has lost."""
        worker_id, uncertainties = self.worker_id, self._uncertainties
        as_of = min([self._manager_time_ns, *self._in_flight])
        request = HeartbeatRequest(
            worker_id=worker_id,
            current_load=len(self.leases),
            status=DRAINING if self.is_draining else ACTIVE,
            running=[key for key, _ in self.leases],
        )
        if as_of:
            request.running_as_of.FromNanoseconds(as_of)
        stop: Collection[str]
        try:
            response = await self._manager.heartbeat(request, self._call)
        except WORKER_GONE:
            await self.register(instead_of=worker_id)
            stop = ()
        else:
            stop = response.stop
            self._last_heartbeat = self._call.world.monotonic()
            self._manager_time_ns = response.at.ToNanoseconds()
            if uncertainties == self._uncertainties:
                self._resolve_uncertainty(as_of)
        if worker_id != self.worker_id:
            stop = {key for (key, _), owner in self.leases.items() if owner == worker_id}
        for each in [each for each in self.leases if each[0] in stop]:
            del self.leases[each]

    @contextmanager
    def track_request(self) -> Iterator[None]:
        """Track a request that may bring tasks, which have to be in `leases` when this exits."""
        sent_at = self._manager_time_ns
        self._in_flight.append(sent_at)
        try:
            yield
        except BaseException:
            self._mark_uncertain()
            raise
        finally:
            self._in_flight.remove(sent_at)

    async def deregister(self) -> None:
        """Deregister, so that the manager does not take the worker for dead."""
        await self._manager.deregister_worker(DeregisterWorkerRequest(worker_id=self.worker_id), self._call)

    # The watcher of the lease worker.

    def on_claimed(self, key: str) -> None:
        """Do nothing: a lease is recorded when its task arrives."""

    def on_settled(self, key: str, outcome: Outcome) -> None:
        """Do nothing: a lease is removed when the manager has accepted its outcome."""

    def on_lost(self, key: str, fence: int) -> None:
        """Drop a lease; if the manager still has it here, the next heartbeats requeue the task."""
        if self.leases.pop((key, fence), None) is not None:
            self._mark_uncertain()

    def _mark_uncertain(self) -> None:
        """Note that the manager may have tasks here unknown to the worker, so that heartbeats come sooner."""
        self._uncertainties += 1
        self._certain_from = _UNKNOWN_TIME

    def _resolve_uncertainty(self, as_of: int) -> None:
        """End the uncertainty: the first heartbeat learns the time, one complete as of then ends it."""
        if self._certain_from == _UNKNOWN_TIME:
            self._certain_from = self._manager_time_ns
        elif as_of >= self._certain_from:
            self._certain_from = _CERTAIN
