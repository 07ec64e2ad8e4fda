"""Runs entities that a store leases out: takes them, runs them, keeps their leases, and writes the outcome.

A worker holds an entity only as long as the store would agree: it counts the lease from before it asked for
it, stops a run whose lease it could not keep, and drops what that run would have written.

One loop serves all slots. What ended meanwhile is written, and as many are taken for it, in one exchange with
the store; while that is under way, what the last one brought is run. So worker and store work at the same
time, and the more there is to do, the more of it goes together. A store that does several exchanges at a
time is given a second one as soon as there is enough for it. For a store that writes entities one by one
there may be many, each with the outcome of one run: nobody waits for the slowest.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Lease
from runtime.observe import log as events
from runtime.stores.store import Busy, Claimed, Held, LeaseStore, Unstorable
from runtime.worker.config import Outcome, Pace, Told, Watcher
from runtime.worker.in_flight import Holding, Holdings

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class LeaseWorker(Generic[Claimed]):
    """One worker: as many slots as its pace says, each of which holds at most one entity.

    `perform` runs one and says how it ended; it raises nothing but a cancel. `given_back` is how it ends when
    the worker is stopped, `unstorable` when the store cannot hold what came of it, and `overrun` when its
    lease ends before it does, be it that nobody renews it or that nobody could.
    """

    def __init__(
        self,
        store: LeaseStore[Claimed],
        lease: Lease,
        key: str,
        owner: str,
        pace: Pace,
        perform: Callable[[Claimed, Held], Coroutine[Any, Any, Outcome]],
        given_back: Outcome,
        unstorable: Outcome,
        told: Told,
        *,
        overrun: Callable[[Claimed], Outcome] | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self._store = store
        self._lease = lease
        self._key = key
        self._owner = owner
        self._pace = pace
        self._perform = perform
        self._given_back = given_back
        self._unstorable = unstorable
        self._told = told
        self._overrun = overrun
        self._watcher = watcher
        self._holdings: Holdings[Claimed] = Holdings(store, pace.lease_s, pace.renew_s)
        self._ready: deque[Holding[Claimed]] = deque()
        self._waited: list[Holding[Claimed]] = []
        self._ended: list[Holding[Claimed]] = []
        self._stirred = asyncio.Event()
        self._exchanging = self._asked_for = 0
        self._is_over = self._is_cut_off = False
        self._may_find = True
        self._pause = _FIRST_PAUSE_S
        self._at_work: tuple[Call, asyncio.Event] | None = None
        """While it works: on whose behalf, and what tells it to stop."""
        self._news: asyncio.Task[bool] | None = None
        self._rest: asyncio.Task[None] | None = None

    async def work(self, call: Call, stopping: asyncio.Event) -> None:
        """Works until it is told to stop; then lets runs go on for the grace, and gives the others back."""
        told = Call(world=call.world, log=call.log, caller=call.caller, method=call.method)
        told.note(worker_id=self._owner)
        told.tell(self._told.started, f"{self._pace.slots} slots")
        self._at_work = told, stopping
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(self._holdings.keep(told))
            ending = tasks.create_task(self._end(stopping))
            try:
                await self._pump(tasks, told, stopping)
            finally:
                self._at_work = None
                self._holdings.cancel_all()
                for task in (keeping, ending, self._news, self._rest):
                    if task is not None:
                        task.cancel()

    def hand(self, records: Sequence[Claimed]) -> bool:
        """Begins at once to run what the store gives of its own accord; False if it takes no more."""
        if self._at_work is None or self._at_work[1].is_set():
            return False
        call = self._at_work[0]
        now = call.world.monotonic()
        for record in records:
            self._take(record, now)
        self._begin(call)
        self._stirred.set()
        return True

    def give_up(self, key: str, fence: int) -> None:
        """Stops a run of which somebody found out that its lease is another's; nothing of it is written."""
        self._holdings.give_up(key, fence)

    async def _pump(self, tasks: asyncio.TaskGroup, call: Call, stopping: asyncio.Event) -> None:
        while len(self._holdings) or self._exchanging or not stopping.is_set():
            self._stirred.clear()
            self._collect(call)
            has_begun = self._exchange_while_due(tasks, call, stopping)
            if not self._ready:
                await self._stirred.wait()
                continue
            # Only after two turns of the loop has an exchange been sent, and there is time for runs. Without
            # one, a single turn is for the others in the process.
            for _ in range(1 + has_begun):
                await asyncio.sleep(0)
            self._begin(call)

    async def _end(self, stopping: asyncio.Event) -> None:
        """After the grace, ends what still runs, so that it is given back."""
        await stopping.wait()
        self._stirred.set()
        await asyncio.sleep(self._pace.grace_s)
        self._is_over = True
        self._holdings.cancel_all()

    # Running.

    def _begin(self, call: Call) -> None:
        """Begin a group of runs, each in a task and a context of its own."""
        now, loop = call.world.monotonic(), asyncio.get_running_loop()
        for _ in range(min(len(self._ready), self._pace.group)):
            holding = self._ready.popleft()
            if holding.is_lost:
                self._lose(holding, "its lease was over before its run began", call)
            elif self._is_over or now >= holding.ends:
                # The grace ended while it was on its way, or perhaps its lease did, which the store knows.
                self._finish(holding, self._given_back)
            else:
                holding.task = loop.create_task(self._perform(holding.record, holding.held))
                holding.task.add_done_callback(partial(self._wake, holding))

    def _wake(self, holding: Holding[Claimed], _task: object) -> None:
        self._waited.append(holding)
        self._stirred.set()

    def _collect(self, call: Call) -> None:
        """See how runs ended."""
        waited, self._waited = self._waited, []
        for holding in waited:
            assert holding.task is not None
            if not holding.task.cancelled():
                self._finish(holding, holding.task.result())
            elif holding.is_over and not holding.is_lost and self._overrun is not None:
                self._finish(holding, self._overrun(holding.record))
            elif holding.is_over:
                # It is not given back, which would count as no failure: a run that keeps its worker from
                # renewing would be tried without end.
                self._lose(holding, "its lease could not be kept; the run was stopped", call)
            else:
                self._finish(holding, self._given_back)

    def _finish(self, holding: Holding[Claimed], outcome: Outcome) -> None:
        holding.outcome = outcome
        self._ended.append(holding)

    def _lose(self, holding: Holding[Claimed], why: str, call: Call) -> None:
        self._holdings.drop(holding)
        known = {self._key: holding.key, self._lease.fence: holding.held.fence, "request_id": holding.key}
        call.tell(self._told.lease_lost, why, **known)
        if self._watcher is not None:
            self._watcher.lost(holding.key, holding.held.fence)

    # Exchanging.

    def _exchange_while_due(self, tasks: asyncio.TaskGroup, call: Call, stopping: asyncio.Event) -> bool:
        """Begins exchanges if there is a reason to, or waits for one; whether it has begun any."""
        begun = self._exchanging
        while self._rest is None and self._exchanging < self._pace.exchanges:
            if self._exchanging and len(self._ended) < self._pace.enough(bool(self._ready)):
                break  # What is under way comes back soon; then there is more to go together.
            held = len(self._holdings) + self._asked_for
            free = None if stopping.is_set() else max(self._pace.slots - held, 0)
            if self._ended or (free and self._may_find):
                most = self._pace.most or len(self._ended)
                sent, self._ended = self._ended[:most], self._ended[most:]
                self._exchanging += 1
                self._asked_for += free or 0
                tasks.create_task(self._exchange(sent, free, tasks, call))
                continue
            if free and self._news is None:
                self._news = tasks.create_task(self._store.awaited(self._pace.poll_s))
                self._news.add_done_callback(self._look)
            break
        return self._exchanging > begun

    def _look(self, _task: object) -> None:
        self._news, self._may_find = None, True
        self._stirred.set()

    async def _exchange(
        self, sent: Sequence[Holding[Claimed]], free: int | None, tasks: asyncio.TaskGroup, call: Call
    ) -> None:
        """Writes outcomes, and takes others unless `free` is None."""
        asked = call.world.monotonic()
        settling = [holding.sent() for holding in sent]
        taken: Sequence[Claimed] = ()
        outcomes: Sequence[int | Exception] = ()
        failure: Exception | None = None
        try:
            if free is None:
                outcomes = await self._store.settle_all(settling, call)
            else:
                taken, outcomes = await self._store.exchange(self._owner, settling, free, call)
        except Failure as error:
            failure = error
            outcomes = [error] * len(sent)
        settled = 0
        for holding, outcome in zip(sent, outcomes, strict=True):
            if isinstance(outcome, Exception):
                holding.is_sent = False
                failure = self._unsettled(holding, outcome, tasks, call) or failure
            else:
                self._settled(holding)
                settled += 1
        for record in taken:
            self._take(record, asked)
        self._may_find = free is not None and len(taken) >= free + settled
        self._exchanging -= 1
        self._asked_for -= free or 0
        if failure is None:
            self._pause, self._is_cut_off = _FIRST_PAUSE_S, False
        else:
            self._rest_after(failure, tasks, call)
        self._stirred.set()

    def _take(self, record: Claimed, asked: float) -> None:
        key, held = getattr(record, self._key), Held(self._owner, getattr(record, self._lease.fence))
        lease_s: float = self._pace.lease_s or getattr(record, self._lease.seconds)
        self._ready.append(self._holdings.add(key, held, record, asked, lease_s))
        if self._watcher is not None:
            self._watcher.taken(key)

    def _settled(self, holding: Holding[Claimed]) -> None:
        self._holdings.drop(holding)
        if self._watcher is not None:
            self._watcher.settled(holding.key, holding.outcome)

    def _unsettled(
        self, holding: Holding[Claimed], why: Exception, tasks: asyncio.TaskGroup, call: Call
    ) -> Exception | None:
        """What becomes of an outcome that was not written; the failure, if the store cannot be reached."""
        if isinstance(why, Busy) and not holding.is_put_off:
            holding.is_put_off = True
            self._ended.append(holding)
        elif isinstance(why, Busy):
            tasks.create_task(self._write_alone(holding, tasks, call))
        elif isinstance(why, Unstorable) and holding.outcome is not self._unstorable:
            self._finish(holding, self._unstorable)
        elif not isinstance(why, Failure):
            raise why
        elif why.grpc == "UNAVAILABLE" and call.world.monotonic() + self._pause < holding.ends:
            self._ended.append(holding)
            return why
        else:
            self._lose(holding, f"its outcome is dropped: {why.message}", call)
            return why if why.grpc == "UNAVAILABLE" else None
        return None

    async def _write_alone(self, holding: Holding[Claimed], tasks: asyncio.TaskGroup, call: Call) -> None:
        """Waits for whoever else has the entity, and holds up nobody meanwhile."""
        key, held, target, given, final, edge = holding.sent()
        holding.is_sent = False
        try:
            await self._store.settle(key, target, held, call, final, edge, **given)
        except (Failure, Unstorable) as error:
            self._unsettled(holding, error, tasks, call)
        else:
            self._settled(holding)
        self._stirred.set()

    def _rest_after(self, failure: Exception, tasks: asyncio.TaskGroup, call: Call) -> None:
        """Pauses, longer each time. An outage is told of when it begins."""
        if not self._is_cut_off and isinstance(failure, Failure):
            self._is_cut_off = True
            call.tell(events.ACQUIRE_FAILED, failure.message, grpc_code=failure.grpc)
        if self._rest is not None:
            return  # Another exchange has failed just before, of the same outage.
        # Workers must not all come back at the same moment.
        seconds = call.world.uniform(self._pause / 2, self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)
        self._rest = tasks.create_task(call.world.sleep(seconds))
        self._rest.add_done_callback(self._rested)

    def _rested(self, _task: object) -> None:
        self._rest = None
        self._stirred.set()
