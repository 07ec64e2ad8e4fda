"""Lease worker: claim entities, run them, renew their leases and settle the outcomes.

A worker never believes in a lease longer than the store does: it counts the lease from before the claim was
sent, cancels a run whose lease it could not renew, and drops the outcome of that run.

One loop serves all slots. One exchange with the store settles the outcomes and claims as many entities; while
it is in flight, those of the last exchange run. So worker and store work at the same time, and batches grow
with the load. A store with concurrent exchanges gets a second one as soon as there are enough outcomes. For a
store that writes entities one by one there may be many, each with the outcome of one run, so that no outcome
waits for the slowest run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from math import inf
from typing import Any, Generic

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Lease
from runtime.observe import log as events
from runtime.stores.contract import Claimed, LeaseProof, LeaseStore
from runtime.stores.store import Busy, Unstorable
from runtime.worker.config import Outcome, WorkerConfig, WorkerEvents, WorkerObserver
from runtime.worker.in_flight import InFlightRun, InFlightRuns

_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0
_SPLIT_SLOTS = 20
"""From so many slots on, one half runs while the other half is exchanged. With fewer, the exchanges would be
so small that they cost more than the waiting does."""


class LeaseWorker(Generic[Claimed]):
    """A worker with a fixed number of slots, each for one run in flight.

    `perform` runs one entity and returns its outcome; it raises nothing but a cancellation. `released` is the
    outcome when the worker is stopped, `unstorable` when the store cannot hold the result, and `overrun` when
    the lease expires before the run ends, because it is not renewed or could not be.
    """

    def __init__(
        self,
        store: LeaseStore[Claimed],
        lease: Lease,
        key: str,
        owner: str,
        config: WorkerConfig,
        perform: Callable[[Claimed, LeaseProof], Coroutine[Any, Any, Outcome]],
        released: Outcome,
        unstorable: Outcome,
        log_events: WorkerEvents,
        *,
        overrun: Callable[[Claimed], Outcome] | None = None,
        observer: WorkerObserver | None = None,
        noted_as: str = "worker_id",
    ) -> None:
        self._store = store
        self._lease = lease
        self._key = key
        self._owner = owner
        self._config = config
        self._batch_size = config.slots if config.slots < _SPLIT_SLOTS else -(-config.slots // 2)
        """Runs that are started one after the other, and then exchanged together."""
        self._perform = perform
        self._released = released
        self._unstorable = unstorable
        self._log_events = log_events
        self._overrun = overrun
        self._observer = observer
        self._noted_as = noted_as
        """The name that log lines have for the owner."""
        self._in_flight: InFlightRuns[Claimed] = InFlightRuns(store, config.lease_s, config.renew_s)
        self._ready: deque[InFlightRun[Claimed]] = deque()
        self._done_runs: list[InFlightRun[Claimed]] = []
        self._outcomes: list[InFlightRun[Claimed]] = []
        self._wakeup = asyncio.Event()
        self._exchanges = self._claiming = 0
        self._is_grace_over = self._is_store_down = False
        self._may_have_work = True
        self._backoff_s = _FIRST_BACKOFF_S
        self._active: tuple[Call, asyncio.Event] | None = None
        """While it works: its call context, and the event that stops it."""
        self._store_wakeup: asyncio.Task[bool] | None = None
        self._backoff: asyncio.Task[None] | None = None

    async def work(self, call: Call, stopping: asyncio.Event) -> None:
        """Work until `stopping` is set; then drain for the grace, and release what is left."""
        call = Call(world=call.world, log=call.log, caller=call.caller, method=call.method)
        call.note(**{self._noted_as: self._owner})
        call.tell(self._log_events.started, f"{self._config.slots} slots")
        self._active = call, stopping
        async with asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(self._in_flight.renew_leases(call))
            stopper = tasks.create_task(self._stop_after_grace(stopping))
            try:
                await self._run_loop(tasks, call, stopping)
            finally:
                self._active = None
                self._in_flight.cancel_all()
                for task in (renewing, stopper, self._store_wakeup, self._backoff):
                    if task is not None:
                        task.cancel()

    def push(self, records: Sequence[Claimed]) -> bool:
        """Start to run claimed entities that the store pushes; False if none are accepted."""
        if self._active is None or self._active[1].is_set():
            return False
        call = self._active[0]
        now = call.world.monotonic()
        for record in records:
            self._add_claimed(record, now)
        self._start_runs(call)
        self._wakeup.set()
        return True

    def abandon(self, key: str, fence: int) -> None:
        """Cancel a run whose lease is known to have another owner; its outcome is dropped."""
        self._in_flight.abandon(key, fence)

    async def _run_loop(self, tasks: asyncio.TaskGroup, call: Call, stopping: asyncio.Event) -> None:
        while len(self._in_flight) or self._exchanges or not stopping.is_set():
            self._wakeup.clear()
            self._collect_outcomes(call)
            has_started = self._start_exchanges(tasks, call, stopping)
            if not self._ready:
                await self._wakeup.wait()
                continue
            # An exchange is sent only after two turns of the loop; then there is time for runs. Without one,
            # a single turn is for the other tasks of the process.
            for _ in range(1 + has_started):
                await asyncio.sleep(0)
            self._start_runs(call)

    async def _stop_after_grace(self, stopping: asyncio.Event) -> None:
        """Cancel the runs that are left after the shutdown grace, so that they are released."""
        await stopping.wait()
        self._wakeup.set()
        await asyncio.sleep(self._config.grace_s)
        self._is_grace_over = True
        self._in_flight.cancel_all()

    # Runs.

    def _start_runs(self, call: Call) -> None:
        """Start a batch of runs, each in a task and a context of its own."""
        now, loop = call.world.monotonic(), asyncio.get_running_loop()
        for _ in range(min(len(self._ready), self._batch_size)):
            run = self._ready.popleft()
            if run.is_lost:
                self._drop_lost(run, "its lease was over before its run began", call)
            elif self._is_grace_over or now >= run.expires_at:
                # The grace ended while it was on its way, or its lease may have expired, as the store knows.
                self._finish(run, self._released)
            else:
                run.task = loop.create_task(self._perform(run.record, run.lease))
                run.task.add_done_callback(partial(self._on_run_done, run))

    def _on_run_done(self, run: InFlightRun[Claimed], _task: object) -> None:
        self._done_runs.append(run)
        self._wakeup.set()

    def _collect_outcomes(self, call: Call) -> None:
        """Turn the ends of runs into outcomes to be settled."""
        done, self._done_runs = self._done_runs, []
        for run in done:
            assert run.task is not None
            if not run.task.cancelled():
                self._finish(run, run.task.result())
            elif run.is_abandoned and not run.is_lost and self._overrun is not None:
                self._finish(run, self._overrun(run.record))
            elif run.is_abandoned:
                # It is not released, which would count as no failure: a run that keeps its worker from
                # renewing would be tried without end.
                self._drop_lost(run, "its lease could not be kept; the run was stopped", call)
            else:
                self._finish(run, self._released)

    def _finish(self, run: InFlightRun[Claimed], outcome: Outcome) -> None:
        run.outcome = outcome
        self._outcomes.append(run)

    def _drop_lost(self, run: InFlightRun[Claimed], why: str, call: Call) -> None:
        self._in_flight.remove(run)
        known = {self._key: run.key, self._lease.fence: run.lease.fence, "request_id": run.key}
        call.tell(self._log_events.lease_lost, why, **known)
        if self._observer is not None:
            self._observer.on_lost(run.key, run.lease.fence)

    # Exchanges.

    def _start_exchanges(self, tasks: asyncio.TaskGroup, call: Call, stopping: asyncio.Event) -> bool:
        """Start the exchanges that are due, else wait for a wake-up; return whether any was started."""
        before = self._exchanges
        while self._backoff is None and self._exchanges < self._config.exchanges:
            if self._exchanges and len(self._outcomes) < self._min_outcomes():
                break  # The exchange in flight ends soon; then the batch is larger.
            used = len(self._in_flight) + self._claiming
            free = None if stopping.is_set() else max(self._config.slots - used, 0)
            if self._outcomes or (free and self._may_have_work):
                count = self._max_outcomes()
                outgoing, self._outcomes = self._outcomes[:count], self._outcomes[count:]
                self._exchanges += 1
                self._claiming += free or 0
                tasks.create_task(self._exchange(outgoing, free, tasks, call))
                continue
            if free and self._store_wakeup is None:
                self._store_wakeup = tasks.create_task(self._store.wait(self._config.poll_s))
                self._store_wakeup.add_done_callback(self._on_store_wakeup)
            break
        return self._exchanges > before

    def _min_outcomes(self) -> int:
        """Return how many outcomes make a second, concurrent exchange worth its cost.

        While more runs are ready, it is a whole batch. With less, claimed entities would run while outcomes
        wait to be sent: three parts instead of two halves, and the fixed cost of a part is that of a half.
        """
        if self._config.settles_individually:
            return 0
        return self._batch_size if self._ready else max(_SPLIT_SLOTS // 2, self._batch_size // 2)

    def _max_outcomes(self) -> int:
        """Return how many outcomes one exchange may have."""
        if self._config.settles_individually:
            return 1
        return self._batch_size if self._config.exchanges > 1 else len(self._outcomes)

    def _on_store_wakeup(self, _task: object) -> None:
        self._store_wakeup, self._may_have_work = None, True
        self._wakeup.set()

    async def _exchange(
        self, outgoing: Sequence[InFlightRun[Claimed]], free: int | None, tasks: asyncio.TaskGroup, call: Call
    ) -> None:
        """Settle outcomes, and claim others unless `free` is None."""
        asked = call.world.monotonic()
        settlements = [run.begin_settling() for run in outgoing]
        claimed: Sequence[Claimed] = ()
        outcomes: Sequence[int | Exception] = ()
        failure: Exception | None = None
        try:
            if free is None:
                outcomes = await self._store.settle_many(settlements, call)
            else:
                claimed, outcomes = await self._store.exchange(self._owner, settlements, free, call)
        except Failure as error:
            failure = error
            outcomes = [error] * len(outgoing)
        settled = 0
        for run, outcome in zip(outgoing, outcomes, strict=True):
            if isinstance(outcome, Exception):
                run.is_settling = False
                failure = self._handle_unsettled(run, outcome, tasks, call) or failure
            else:
                self._on_settled(run)
                settled += 1
        for record in claimed:
            self._add_claimed(record, asked)
        self._may_have_work = free is not None and len(claimed) >= free + settled
        self._exchanges -= 1
        self._claiming -= free or 0
        if failure is None:
            self._backoff_s, self._is_store_down = _FIRST_BACKOFF_S, False
        else:
            self._back_off(failure, tasks, call)
        self._wakeup.set()

    def _add_claimed(self, record: Claimed, asked: float) -> None:
        key, lease = getattr(record, self._key), LeaseProof(self._owner, getattr(record, self._lease.fence))
        lease_s: float = self._config.lease_s or getattr(record, self._lease.seconds)
        self._ready.append(self._in_flight.add(key, lease, record, asked, lease_s))
        if self._observer is not None:
            self._observer.on_claimed(key)

    def _on_settled(self, run: InFlightRun[Claimed]) -> None:
        self._in_flight.remove(run)
        if self._observer is not None:
            self._observer.on_settled(run.key, run.outcome)

    def _handle_unsettled(
        self, run: InFlightRun[Claimed], why: Exception, tasks: asyncio.TaskGroup, call: Call
    ) -> Exception | None:
        """Retry, replace or drop an outcome that was not settled; return the failure if the store is down."""
        if isinstance(why, Busy) and not run.is_deferred:
            run.is_deferred = True
            self._outcomes.append(run)
        elif isinstance(why, Busy):
            tasks.create_task(self._settle_alone(run, tasks, call))
        elif isinstance(why, Unstorable) and run.outcome is not self._unstorable:
            self._finish(run, self._unstorable)
        elif not isinstance(why, Failure):
            raise why
        elif why.grpc == "UNAVAILABLE" and self._may_retry(run, call):
            self._outcomes.append(run)
            return why
        else:
            self._drop_lost(run, f"its outcome is dropped: {why.message}", call)
            return why if why.grpc == "UNAVAILABLE" else None
        return None

    def _may_retry(self, run: InFlightRun[Claimed], call: Call) -> bool:
        """Whether the lease goes on until the next try; without an end, until the grace is over."""
        if run.expires_at == inf:
            return not self._is_grace_over
        return call.world.monotonic() + self._backoff_s < run.expires_at

    async def _settle_alone(self, run: InFlightRun[Claimed], tasks: asyncio.TaskGroup, call: Call) -> None:
        """Settle one outcome alone, so that only this one waits for the lock of its entity."""
        settlement = run.begin_settling()
        run.is_settling = False
        try:
            await self._store.settle(settlement, call)
        except (Failure, Unstorable) as error:
            self._handle_unsettled(run, error, tasks, call)
        else:
            self._on_settled(run)
        self._wakeup.set()

    def _back_off(self, failure: Exception, tasks: asyncio.TaskGroup, call: Call) -> None:
        """Pause with exponential backoff and jitter. An outage is logged when it begins."""
        if not self._is_store_down and isinstance(failure, Failure):
            self._is_store_down = True
            call.tell(events.ACQUIRE_FAILED, failure.message, grpc_code=failure.grpc)
        if self._backoff is not None:
            return  # Another exchange has failed just before, of the same outage.
        # Jitter: workers must not all come back at the same moment.
        seconds = call.world.uniform(self._backoff_s / 2, self._backoff_s)
        self._backoff_s = min(2 * self._backoff_s, _MAX_BACKOFF_S)
        self._backoff = tasks.create_task(call.world.sleep(seconds))
        self._backoff.add_done_callback(self._on_backoff_over)

    def _on_backoff_over(self, _task: object) -> None:
        self._backoff = None
        self._wakeup.set()
