"""The registry of workers: which are alive, what each is assigned, and which jobs it has lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.call import Call
from runtime.world import World


@dataclass(slots=True)
class WorkerEntry:
    """The state of one worker."""

    worker_id: str
    last_heartbeat: float
    slots: int = 0
    available: bool = False
    assigned: dict[str, float | None] = field(default_factory=dict)
    """Its assigned jobs, oldest first, and since when a job is known to be in no slot."""
    open_fetches: set[Call] = field(default_factory=set)
    """Its FetchWork calls in flight."""
    running: frozenset[str] | None = None
    """The jobs in its slots by its last heartbeat; None where its heartbeats do not name them."""

    def is_running(self, job_id: str) -> bool:
        """Whether the worker runs a job: by its heartbeats, or its assignments where those name no jobs."""
        return job_id in (self.assigned if self.running is None else self.running)

    def count_idle_slots(self) -> int:
        """Count the idle slots: every slot that fetches work has no job."""
        return sum(not (each.gone or each.expired) for each in self.open_fetches)


class ExpiredWorker(NamedTuple):
    """A worker whose heartbeats have been missing for too long, and the jobs that were assigned to it."""

    worker_id: str
    silence_ms: float
    jobs: tuple[str, ...]
    was_available: bool


class WorkerRegistry:
    """All known workers. Only heartbeats make one available, and only missing heartbeats end that."""

    def __init__(self, world: World, timeout_ms: int) -> None:
        self._world = world
        self._timeout_ms = timeout_ms
        self._workers: dict[str, WorkerEntry] = {}

    def record_heartbeat(self, worker_id: str, slots: int, running: Iterable[str] | None = None) -> bool:
        """Record a heartbeat; return whether the worker is newly available."""
        now = self._world.monotonic()
        worker = self._workers.setdefault(worker_id, WorkerEntry(worker_id, now))
        is_new = not worker.available
        worker.last_heartbeat, worker.slots, worker.available = now, slots, True
        worker.running = None if running is None else frozenset(running)
        if worker.running is not None:
            for job_id, since in worker.assigned.items():
                absent_since = now if since is None else since
                worker.assigned[job_id] = None if job_id in worker.running else absent_since
        return is_new

    def find_available(self, worker_id: str) -> WorkerEntry | None:
        """Find a worker whose last heartbeat is within the timeout; None otherwise."""
        worker = self._workers.get(worker_id)
        return None if worker is None or self._measure_silence_ms(worker) > self._timeout_ms else worker

    def is_assigned(self, job_id: str, worker_id: str | None = None) -> bool:
        """Whether a job is assigned to any worker, or to the named one."""
        return any(
            job_id in worker.assigned and worker_id in (None, worker.worker_id)
            for worker in self._workers.values()
        )

    def is_running(self, job_id: str) -> bool:
        """Whether any worker that counts as alive runs a job."""
        return any(worker.is_running(job_id) for worker in self._workers.values())

    def all_report_running(self) -> bool:
        """Whether the heartbeats of all workers name their running jobs, so that all of those are known."""
        return all(worker.running is not None for worker in self._workers.values())

    def release(self, job_id: str) -> None:
        """Remove a job that is over from its worker."""
        for worker in self._workers.values():
            worker.assigned.pop(job_id, None)

    def expire_silent(self) -> Iterator[ExpiredWorker]:
        """Expire silent workers: remove their jobs, and forget workers without open fetches."""
        for worker in list(self._workers.values()):
            silence_ms = self._measure_silence_ms(worker)
            if silence_ms > self._timeout_ms:
                yield ExpiredWorker(worker.worker_id, silence_ms, tuple(worker.assigned), worker.available)
                worker.available = False
                worker.assigned.clear()
                worker.running = frozenset()
                if not worker.open_fetches:
                    del self._workers[worker.worker_id]

    def mark_unaccounted(self, worker: WorkerEntry) -> Iterable[str]:
        """Mark jobs that a worker may have lost by its slots; yield each job once.

        A response to it was lost, a report from it was lost, or it was restarted under the same name before
        its heartbeats were missed. Heartbeats that name its jobs show that. Where they do not, its slots do:
        a slot runs a job or fetches one, so a worker that fetches for more than its free slots does not know
        of all its jobs.
        """
        missing = worker.count_idle_slots() + len(worker.assigned) - worker.slots
        if not worker.slots or missing <= 0:
            return
        now = self._world.monotonic()
        for job_id in list(worker.assigned)[:missing]:
            if worker.assigned[job_id] is None:
                worker.assigned[job_id] = now
                yield job_id

    def remove_abandoned(self, worker: WorkerEntry) -> list[str]:
        """Remove the jobs that a worker has been without for its timeout, and is without now."""
        all_idle = bool(worker.slots) and worker.count_idle_slots() >= worker.slots
        if worker.running is None and not all_idle:
            return []
        now = self._world.monotonic()
        abandoned = [
            job_id
            for job_id, since in worker.assigned.items()
            if since is not None and (now - since) * 1000 > self._timeout_ms
        ]
        for job_id in abandoned:
            del worker.assigned[job_id]
        return abandoned

    def _measure_silence_ms(self, worker: WorkerEntry) -> float:
        return round((self._world.monotonic() - worker.last_heartbeat) * 1000, 3)
