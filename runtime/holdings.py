"""What a worker holds, and the leases by which it does: they are renewed in time, or given up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic

from runtime.call import Call
from runtime.conditions import Failure
from runtime.store import Held, LeaseStore, Record


@dataclass(slots=True, eq=False)
class Holding(Generic[Record]):
    """One entity in the hands of a worker, from its taking until its outcome is written or dropped."""

    key: str
    held: Held
    record: Record
    ends: float
    """When the lease is over at the latest, on the monotonic clock."""
    task: asyncio.Task[Any] | None = None
    """Its run, if that has to wait for something."""
    outcome: Any = None
    """How the run ended, once it has."""
    is_sent: bool = False
    """Whether the store is just being told of the outcome."""
    is_over: bool = False
    """Whether nobody tries to keep the lease any more: the clock says that it is over, or the store."""
    is_lost: bool = False
    """Whether it was the store."""


class Holdings(Generic[Record]):
    """All that one worker holds."""

    def __init__(self, store: LeaseStore[Record], lease_s: float, renew_s: float) -> None:
        self._store = store
        self._lease_s = lease_s
        self._renew_s = renew_s
        # A run that does not let itself be stopped may still be there when the same key is taken again.
        self._all: dict[tuple[str, int], Holding[Record]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, key: str, held: Held, record: Record, asked: float) -> Holding[Record]:
        """Holds an entity; its lease is counted from before it was asked for."""
        made = self._all[key, held.fence] = Holding(key, held, record, asked + self._lease_s)
        return made

    def drop(self, holding: Holding[Record]) -> None:
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

    async def keep(self, call: Call) -> None:
        """Renews all leases in time, and stops the runs whose leases are gone."""
        while True:
            await call.world.sleep(min(self._renew_s, self._soonest_end(call) or self._renew_s))
            # What is just being written needs no renewal; the two would only stand in each other's way.
            if held := [each for each in self._all.values() if not each.is_sent and not each.is_over]:
                await self._renew(held, call)

    def _soonest_end(self, call: Call) -> float:
        """Seconds until the first lease is over; 0 if there is none."""
        ends = [each.ends for each in self._all.values() if not each.is_over]
        return max(0.01, min(ends) - call.world.monotonic()) if ends else 0.0

    async def _renew(self, held: Sequence[Holding[Record]], call: Call) -> None:
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
                each.ends = asked + self._lease_s
            elif is_renewed is False:
                each.is_lost = True
        now = call.world.monotonic()
        for each in held:
            if each.is_lost or each.ends <= now:
                each.is_over = True
                if each.task is not None:
                    each.task.cancel()
