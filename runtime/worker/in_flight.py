"""What a worker holds, and the leases by which it does: they are renewed in time, or given up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.stores.store import Claimed, Held, LeaseStore, Settling


@dataclass(slots=True, eq=False)
class Holding(Generic[Claimed]):
    """One entity in the hands of a worker, from its taking until its outcome is written or dropped."""

    key: str
    held: Held
    record: Claimed
    lease_s: float
    ends: float
    """When the lease is over at the latest, on the monotonic clock."""
    due: float
    """When the lease is to be renewed, or the run to be stopped."""
    task: asyncio.Task[Any] | None = None
    """Its run, once that has begun."""
    outcome: Any = None
    """How the run ended, once it has; an `Outcome`."""
    is_sent: bool = False
    """Whether the store is just being told of the outcome."""
    is_put_off: bool = False
    """Whether somebody else had the entity when the store was told of the outcome. Mostly that is another
    exchange, which has ended by the next; who has it even then is waited for."""
    is_over: bool = False
    """Whether nobody tries to keep the lease any more: the clock says that it is over, or the store."""
    is_lost: bool = False
    """Whether it was the store."""

    def sent(self) -> Settling:
        """What the store is told of the outcome, from now on."""
        edge = self.outcome.transition
        self.is_sent = True
        return Settling(self.key, self.held, edge.target, self.outcome.given, self.outcome.final, edge.name)


class Holdings(Generic[Claimed]):
    """All that one worker holds."""

    def __init__(self, store: LeaseStore[Claimed], lease_s: float | None, renew_s: float | None) -> None:
        self._store = store
        self._has_one_length = lease_s is not None
        self._renew_s = renew_s
        self._tick = self._wakes = 0.0
        self._sooner = asyncio.Event()
        # A run that does not let itself be stopped may still be there when the same key is taken again.
        self._all: dict[tuple[str, int], Holding[Claimed]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, key: str, held: Held, record: Claimed, asked: float, lease_s: float) -> Holding[Claimed]:
        """Holds an entity; its lease is counted from before it was asked for."""
        made = Holding(key, held, record, lease_s, asked + lease_s, self._due(asked, lease_s))
        self._all[key, held.fence] = made
        if made.due < self._wakes:
            self._sooner.set()
        return made

    def drop(self, holding: Holding[Claimed]) -> None:
        """Holds it no longer."""
        place = holding.key, holding.held.fence
        # A store that lost its last writes may hand out the same run a second time.
        if self._all.get(place) is holding:
            del self._all[place]

    def cancel_all(self) -> None:
        """Stops all runs."""
        for holding in self._all.values():
            if holding.task is not None:
                holding.task.cancel()

    def give_up(self, key: str, fence: int) -> None:
        """Stops a run whose lease is known to be another's."""
        if (holding := self._all.get((key, fence))) is not None:
            holding.is_lost = True
            _stop(holding)

    async def keep(self, call: Call) -> None:
        """Renews all leases in time, and stops the runs whose leases are gone."""
        while True:
            await self._wait(call)
            now = call.world.monotonic()
            # What is just being written needs no renewal; the two would only stand in each other's way.
            if held := [each for each in self._all.values() if not each.is_sent and not each.is_over]:
                due = [each for each in held if each.due <= now]
                if due and self._renew_s is not None:
                    await self._renew(due, call)
                _stop_ended(due, call)

    def _due(self, asked: float, lease_s: float) -> float:
        if self._renew_s is None:
            return asked + lease_s
        if not self._has_one_length:
            return asked + min(self._renew_s, lease_s / 3)
        # Leases of one length are renewed together, whenever each of them was taken.
        if self._tick <= asked:
            self._tick = asked + self._renew_s
        return min(self._tick, asked + lease_s)

    async def _wait(self, call: Call) -> None:
        """Waits until something is due, whatever is taken meanwhile."""
        self._sooner.clear()
        self._wakes = min((each.due for each in self._all.values() if not each.is_over), default=float("inf"))
        seconds = max(0.01, self._wakes - call.world.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if seconds < float("inf") else None):
                await self._sooner.wait()

    async def _renew(self, held: Sequence[Holding[Claimed]], call: Call) -> None:
        asked = call.world.monotonic()
        alive = [each for each in held if asked < each.ends]
        renewed: Sequence[bool | Exception] = ()
        try:
            if alive:
                async with asyncio.timeout(min(each.ends for each in alive) - asked):
                    renewed = await self._store.renew_all([(each.key, each.held) for each in alive])
        except (Failure, TimeoutError):
            pass  # The next round tries again, as long as the leases hold.
        for each, is_renewed in zip(alive, renewed, strict=False):
            if is_renewed is True:
                each.ends = asked + each.lease_s
            elif is_renewed is False:
                each.is_lost = True
        now = call.world.monotonic()
        for each in alive:
            each.due = min(self._due(now, each.lease_s), each.ends)


def _stop_ended(held: Sequence[Holding[Any]], call: Call) -> None:
    now = call.world.monotonic()
    for each in held:
        if each.is_lost or each.ends <= now:
            _stop(each)


def _stop(holding: Holding[Any]) -> None:
    holding.is_over = True
    if holding.task is not None:
        holding.task.cancel()
