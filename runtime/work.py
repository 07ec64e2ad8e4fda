"""Runs entities that a store leases out: takes them, runs them, keeps their leases, and writes the outcome.

A worker holds an entity only as long as the store would agree: it counts the lease from before it asked for
it, stops a run whose lease it could not keep, and drops what that run would have written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from runtime import log as events
from runtime.call import Call
from runtime.conditions import Failure
from runtime.eager import detached
from runtime.store import Held, KeptStore, Record, Unstorable
from runtime.tables import Event, Lease, Transition

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: the edge to take, what it takes along, and whether it is the end for good."""

    transition: Transition
    given: Mapping[str, str | None] = field(default_factory=dict)
    final: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How many run at a time, and all the times of a worker, in seconds."""

    slots: int
    poll_s: float
    lease_s: float
    renew_s: float
    grace_s: float


@dataclass(frozen=True, slots=True)
class Told:
    """The events that a worker tells of."""

    started: Event
    lease_lost: Event


@dataclass(slots=True)
class _Holding:
    held: Held
    ends: float
    """When the lease is over at the latest, on the monotonic clock."""
    task: asyncio.Task[Outcome] | None = None
    lost: bool = False


class LeaseWorker(Generic[Record]):
    """One worker: independent slots, each of which holds at most one entity.

    `perform` runs one and says how it ended; it raises nothing but a cancel. `given_back` is how it ends when
    the worker is stopped, and `unstorable` when the store cannot hold what came of it.
    """

    def __init__(
        self,
        store: KeptStore[Record],
        lease: Lease,
        key: str,
        owner: str,
        pace: Pace,
        perform: Callable[[Record, Held], Coroutine[Any, Any, Outcome]],
        given_back: Outcome,
        unstorable: Outcome,
        told: Told,
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
        # A run that does not let itself be stopped may still be there when the same key is taken again.
        self._holdings: dict[tuple[str, int], _Holding] = {}
        self._next_look = 0.0
        self._is_over = False
        self._is_cut_off = False

    async def work(self, call: Call, stopping: asyncio.Event) -> None:
        """Works until it is told to stop; then lets runs go on for the grace, and gives the others back."""
        call.tell(self._told.started, f"{self._pace.slots} slots", worker_id=self._owner)
        async with asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(self._keep_leases(call))
            draining = tasks.create_task(self._drain(stopping))
            stopped = tasks.create_task(stopping.wait())
            async with asyncio.TaskGroup() as slots:
                for _ in range(self._pace.slots):
                    slots.create_task(self._slot(call, stopped))
            for task in (renewing, draining, stopped):
                task.cancel()

    async def _slot(self, call: Call, stopped: asyncio.Task[Any]) -> None:
        pause = _FIRST_PAUSE_S
        while not stopped.done():
            asked = call.world.monotonic()
            try:
                record = await self._store.acquire(self._owner, call)
            except Failure as failure:
                self._tell_once(failure, call)
                # Slots and workers must not all come back at the same moment.
                await call.world.sleep(call.world.uniform(pause / 2, pause))
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                continue
            pause, self._is_cut_off = _FIRST_PAUSE_S, False
            if record is None:
                news = asyncio.ensure_future(self._store.awaited(self._until_next_look(call)))
                await asyncio.wait({news, stopped}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
            else:
                await self._hold(record, asked + self._pace.lease_s, call)

    def _tell_once(self, failure: Failure, call: Call) -> None:
        """Tells of an outage when the first slot meets it; the others would only say the same."""
        if not self._is_cut_off:
            self._is_cut_off = True
            call.tell(events.ACQUIRE_FAILED, failure.message, worker_id=self._owner, grpc_code=failure.grpc)

    def _until_next_look(self, call: Call) -> float:
        """Seconds to wait. Slots that are idle look together, so that many of them ask no more than one."""
        now = call.world.monotonic()
        if self._next_look <= now:
            self._next_look = now + self._pace.poll_s
        return self._next_look - now

    async def _hold(self, record: Record, ends: float, call: Call) -> None:
        """Runs what was acquired and writes its outcome, unless its lease was lost meanwhile."""
        key: str = getattr(record, self._key)
        fence: int = getattr(record, self._lease.fence)
        holding = self._holdings[key, fence] = _Holding(Held(self._owner, fence), ends)
        noted = Call(world=call.world, log=call.log, caller=call.caller, method=call.method, request_id=key)
        noted.fields = {self._key: key, self._lease.fence: fence, "worker_id": self._owner}
        try:
            outcome = await self._outcome(record, holding)
            if outcome is None:
                noted.tell(self._told.lease_lost, "its lease could not be kept; the run was stopped")
            else:
                await self._settle(key, holding, outcome, noted)
        finally:
            del self._holdings[key, fence]

    async def _outcome(self, record: Record, holding: _Holding) -> Outcome | None:
        """How the run ended; None if its lease was lost."""
        if self._is_over:
            return self._given_back  # It was on its way while the grace ended.
        begun = detached(self._perform(record, holding.held))
        if not isinstance(begun, asyncio.Task):
            return begun
        holding.task = begun
        try:
            await asyncio.wait({begun})
        except asyncio.CancelledError:
            begun.cancel()
            raise
        if not begun.cancelled():
            return begun.result()
        return None if holding.lost else self._given_back

    async def _settle(self, key: str, holding: _Holding, outcome: Outcome, call: Call) -> None:
        """Writes an outcome, again and again through an outage, until the lease is over."""
        pause = _FIRST_PAUSE_S
        while True:
            try:
                await self._store.settle(
                    key,
                    outcome.transition.target,
                    holding.held,
                    call,
                    final=outcome.final,
                    **outcome.given,
                )
                return
            except Unstorable:
                if outcome is self._unstorable:
                    raise
                outcome = self._unstorable
                continue
            except Failure as failure:
                if failure.grpc != "UNAVAILABLE" or call.world.monotonic() + pause >= holding.ends:
                    call.tell(self._told.lease_lost, f"its outcome is dropped: {failure.message}")
                    return
            await call.world.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _keep_leases(self, call: Call) -> None:
        """Renews all leases in time, and stops the runs whose leases are gone."""
        while True:
            await call.world.sleep(min(self._pace.renew_s, self._soonest_end(call) or self._pace.renew_s))
            await asyncio.gather(
                *(self._keep(key, holding, call) for (key, _), holding in list(self._holdings.items()))
            )

    def _soonest_end(self, call: Call) -> float:
        """Seconds until the first lease is over; 0 if there is none."""
        ends = [each.ends for each in self._holdings.values()]
        return max(0.01, min(ends) - call.world.monotonic()) if ends else 0.0

    async def _keep(self, key: str, holding: _Holding, call: Call) -> None:
        asked = call.world.monotonic()
        if asked < holding.ends:
            try:
                async with asyncio.timeout(holding.ends - asked):
                    if await self._store.renew(key, holding.held):
                        holding.ends = asked + self._pace.lease_s
                        return
            except (Failure, TimeoutError):
                if call.world.monotonic() < holding.ends:
                    return  # The next round tries again; the lease still holds.
        if holding.task is not None:
            holding.lost = True
            holding.task.cancel()

    async def _drain(self, stopping: asyncio.Event) -> None:
        """After the grace, ends what still runs, so that it is given back."""
        await stopping.wait()
        await asyncio.sleep(self._pace.grace_s)
        self._is_over = True
        for holding in self._holdings.values():
            if holding.task is not None:
                holding.task.cancel()
