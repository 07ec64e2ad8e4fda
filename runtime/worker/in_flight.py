"""Runs in flight of a worker: renew their leases in time, or abandon the runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.stores.contract import Claimed, LeaseProof, LeaseSettlement, LeaseStore


@dataclass(slots=True, eq=False)
class InFlightRun(Generic[Claimed]):
    """One claimed entity and its run, from the claim until its outcome is settled or dropped."""

    key: str
    lease: LeaseProof
    record: Claimed
    lease_s: float
    expires_at: float
    """When the lease expires at the latest, on the monotonic clock."""
    renew_at: float
    """When to renew the lease, or to cancel the run."""
    task: asyncio.Task[Any] | None = None
    """The task of the run, once it has started."""
    outcome: Any = None
    """The `Outcome` of the run, once it has ended."""
    is_settling: bool = False
    """Whether the outcome is on its way to the store."""
    is_deferred: bool = False
    """Whether the entity was locked when its outcome was to be settled. Mostly the lock is that of another
    exchange, which has ended by the next one; a lock that is there even then is waited for."""
    is_abandoned: bool = False
    """Whether the lease is no longer renewed: it has expired by the clock, or the store says so."""
    is_lost: bool = False
    """Whether the store says so: the lease has another owner."""

    def begin_settling(self) -> LeaseSettlement:
        """Mark the outcome as on its way; return the request that settles it."""
        outcome = self.outcome
        self.is_settling = True
        return LeaseSettlement(
            self.key, self.lease, outcome.transition.name, outcome.fields, outcome.is_final
        )


class InFlightRuns(Generic[Claimed]):
    """All runs in flight of one worker, by key and fence."""

    def __init__(self, store: LeaseStore[Claimed], lease_s: float | None, renew_s: float | None) -> None:
        self._store = store
        self._has_fixed_length = lease_s is not None
        self._renew_s = renew_s
        self._next_round = self._wakes_at = 0.0
        self._wakeup = asyncio.Event()
        # A run that ignores its cancellation may still be there when the same key is claimed again.
        self._runs: dict[tuple[str, int], InFlightRun[Claimed]] = {}

    def __len__(self) -> int:
        return len(self._runs)

    def add(
        self, key: str, lease: LeaseProof, record: Claimed, asked: float, lease_s: float
    ) -> InFlightRun[Claimed]:
        """Add a claimed entity; its lease counts from the moment before the claim was sent."""
        run = InFlightRun(key, lease, record, lease_s, asked + lease_s, self._renewal_time(asked, lease_s))
        self._runs[key, lease.fence] = run
        if run.renew_at < self._wakes_at:
            self._wakeup.set()
        return run

    def remove(self, run: InFlightRun[Claimed]) -> None:
        """Remove a run; one that is not there is no error."""
        key = run.key, run.lease.fence
        # A store that lost its last writes at a failover may hand out the same fence a second time.
        if self._runs.get(key) is run:
            del self._runs[key]

    def cancel_all(self) -> None:
        """Cancel all runs."""
        for run in self._runs.values():
            if run.task is not None:
                run.task.cancel()

    def abandon(self, key: str, fence: int) -> None:
        """Cancel a run whose lease is known to have another owner."""
        if (run := self._runs.get((key, fence))) is not None:
            run.is_lost = True
            _stop(run)

    async def renew_leases(self, call: Call) -> None:
        """Renew all leases in time, and cancel the runs whose leases have expired; runs until cancelled."""
        while True:
            await self._wait_until_due(call)
            now = call.world.monotonic()
            # What is just being settled needs no renewal: the two would only wait for each other's locks.
            kept = [each for each in self._runs.values() if not each.is_settling and not each.is_abandoned]
            if kept:
                due = [each for each in kept if each.renew_at <= now]
                if due and self._renew_s is not None:
                    await self._renew(due, call)
                _stop_expired(due, call)

    def _renewal_time(self, asked: float, lease_s: float) -> float:
        if self._renew_s is None:
            return asked + lease_s
        if not self._has_fixed_length:
            return asked + min(self._renew_s, lease_s / 3)
        # Leases of one length are renewed in one batch, whenever each of them was claimed.
        if self._next_round <= asked:
            self._next_round = asked + self._renew_s
        return min(self._next_round, asked + lease_s)

    async def _wait_until_due(self, call: Call) -> None:
        """Wait until a renewal is due; a run that is added meanwhile may bring it forward."""
        self._wakeup.clear()
        times = (each.renew_at for each in self._runs.values() if not each.is_abandoned)
        self._wakes_at = min(times, default=float("inf"))
        seconds = max(0.01, self._wakes_at - call.world.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if seconds < float("inf") else None):
                await self._wakeup.wait()

    async def _renew(self, runs: Sequence[InFlightRun[Claimed]], call: Call) -> None:
        asked = call.world.monotonic()
        alive = [each for each in runs if asked < each.expires_at]
        renewed: Sequence[object] = ()
        try:
            if alive:
                async with asyncio.timeout(min(each.expires_at for each in alive) - asked):
                    renewed = await self._store.renew([(each.key, each.lease) for each in alive])
        except (Failure, TimeoutError):
            pass  # The next round tries again, as long as the leases hold.
        for each, answer in zip(alive, renewed, strict=False):
            if answer is None:
                each.is_lost = True
            elif not isinstance(answer, Exception):
                each.expires_at = asked + each.lease_s
        now = call.world.monotonic()
        for each in alive:
            each.renew_at = min(self._renewal_time(now, each.lease_s), each.expires_at)


def _stop_expired(runs: Sequence[InFlightRun[Any]], call: Call) -> None:
    now = call.world.monotonic()
    for each in runs:
        if each.is_lost or each.expires_at <= now:
            _stop(each)


def _stop(run: InFlightRun[Any]) -> None:
    run.is_abandoned = True
    if run.task is not None:
        run.task.cancel()
