"""Which workers are alive, what each was given, and what it can no longer be running."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.call import Call
from runtime.world import World


@dataclass(slots=True)
class WorkerEntry:
    """What is known of a worker."""

    worker_id: str
    heard_at: float
    slots: int = 0
    available: bool = False
    assigned: dict[str, float | None] = field(default_factory=dict)
    """Its jobs, oldest first, and since when it is known that no slot has one."""
    asking: set[Call] = field(default_factory=set)
    """Its requests for work that are open."""
    running: frozenset[str] | None = None
    """The jobs in its slots by its last heartbeat; None where its heartbeats do not name them."""

    def has(self, job_id: str) -> bool:
        """Whether it runs a job: by its own word, or by what it was assigned where it does not say."""
        return job_id in (self.assigned if self.running is None else self.running)

    def idle_slots(self) -> int:
        """Every slot that asks for work has none."""
        return sum(not (each.gone or each.expired) for each in self.asking)


class Silent(NamedTuple):
    """A worker that has not been heard of for too long, and what it leaves behind."""

    worker_id: str
    silence_ms: float
    jobs: tuple[str, ...]
    newly: bool


class WorkerRegistry:
    """Only heartbeats make a worker available, and only their absence ends that."""

    def __init__(self, world: World, timeout_ms: int) -> None:
        self._world = world
        self._timeout_ms = timeout_ms
        self._known: dict[str, WorkerEntry] = {}

    def heard(self, worker_id: str, slots: int, running: Iterable[str] | None = None) -> bool:
        """Notes a heartbeat. Whether the worker was not available before."""
        now = self._world.monotonic()
        worker = self._known.setdefault(worker_id, WorkerEntry(worker_id, now))
        newly = not worker.available
        worker.heard_at, worker.slots, worker.available = now, slots, True
        worker.running = None if running is None else frozenset(running)
        return newly

    def available(self, worker_id: str) -> WorkerEntry | None:
        """The worker, if it has been heard of within its timeout."""
        worker = self._known.get(worker_id)
        return None if worker is None or self._silence_ms(worker) > self._timeout_ms else worker

    def runs(self, job_id: str, worker_id: str | None = None) -> bool:
        """Whether a job is assigned, to whomever or to one worker."""
        return any(
            job_id in worker.assigned and worker_id in (None, worker.worker_id)
            for worker in self._known.values()
        )

    def has(self, job_id: str) -> bool:
        """Whether some worker that counts as alive runs a job."""
        return any(worker.has(job_id) for worker in self._known.values())

    def all_report_running(self) -> bool:
        """Whether the heartbeats of all workers name their jobs, so that no job of a worker is unknown."""
        return all(worker.running is not None for worker in self._known.values())

    def release(self, job_id: str) -> None:
        """Notes that a job is over."""
        for worker in self._known.values():
            worker.assigned.pop(job_id, None)

    def silent(self) -> Iterator[Silent]:
        """Takes away what silent workers had, and forgets those that nothing is left of."""
        for worker in list(self._known.values()):
            silence_ms = self._silence_ms(worker)
            if silence_ms > self._timeout_ms:
                yield Silent(worker.worker_id, silence_ms, tuple(worker.assigned), worker.available)
                worker.available = False
                worker.assigned.clear()
                worker.running = frozenset()
                if not worker.asking:
                    del self._known[worker.worker_id]

    def unaccounted(self, worker: WorkerEntry) -> Iterable[str]:
        """Jobs of a worker that may have got lost, each told once.

        A worker has so many slots, and a slot runs a job or asks for one. If it asks for more than the slots
        that are left over, it does not know of all its jobs: an answer was lost on the way to it, a report on
        the way from it, or it was started anew under its name before it was missed.
        """
        missing = worker.idle_slots() + len(worker.assigned) - worker.slots
        if not worker.slots or missing <= 0:
            return
        now = self._world.monotonic()
        for job_id in list(worker.assigned)[:missing]:
            if worker.assigned[job_id] is None:
                worker.assigned[job_id] = now
                yield job_id

    def abandoned(self, worker: WorkerEntry) -> list[str]:
        """Takes away the jobs that a worker has been without for its timeout, if all its slots ask now."""
        if not worker.slots or worker.idle_slots() < worker.slots:
            return []
        now = self._world.monotonic()
        found = [
            job_id
            for job_id, since in worker.assigned.items()
            if since is not None and (now - since) * 1000 > self._timeout_ms
        ]
        for job_id in found:
            del worker.assigned[job_id]
        return found

    def _silence_ms(self, worker: WorkerEntry) -> float:
        return round((self._world.monotonic() - worker.heard_at) * 1000, 3)
