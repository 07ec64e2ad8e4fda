"""What all work on the entities of a bucket shares: keys, writes, the clock, and the meaning of failures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.model.lifecycles import Due
from runtime.model.system import Event
from runtime.stores.bucket_store import NotReadable
from runtime.stores.contract import Record
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.client.errors import ObjectError, Refused
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.codec import Unreadable
from runtime.stores.s3.conditional_writes import ConditionalWrites
from runtime.stores.s3.indexes.index_writer import IndexWriter
from runtime.stores.s3.keys import Keys
from runtime.stores.semantics.clocks import delay
from runtime.stores.semantics.creation import changed_at
from runtime.stores.semantics.leases import free_at, is_free
from runtime.stores.semantics.rules import EPOCH, Rules, to_microseconds
from runtime.stores.store import StoreUnusable
from runtime.world import World

Item = TypeVar("Item")
Answer = TypeVar("Answer")
AT_ONCE = 16
"""Requests of one piece of work that are in flight together."""

OBJECT_UNREADABLE = Event("object_unreadable", "WARNING")
CLOCK_OFF = Event("clock_off", "ERROR", always=True)
_REPEATED_S = 60.0
"""How often a trouble that lasts is logged."""


class BucketContext(Generic[Record]):
    """The entities of one kind, and the bucket that has them."""

    def __init__(
        self,
        roles: Mapping[str, Any],
        rules: Rules,
        layout: KeptInS3,
        objects: Objects,
        world: World,
        values: Mapping[str, Any],
    ) -> None:
        self.roles = roles
        self.rules = rules
        self.lifecycle = rules.lifecycle
        self.layout = layout
        self.objects = objects
        self.world = world
        self.values = values
        self.keys = Keys(self.lifecycle, layout)
        self.indexes = IndexWriter(self.lifecycle, self.keys, objects)
        self.writes: ConditionalWrites[Record] = ConditionalWrites(
            self.lifecycle, layout, self.keys, objects, self.indexes, world
        )
        self._logged: dict[str, float] = {}

    # Times.

    @property
    def skew_s(self) -> float:
        """How far clocks may be apart."""
        return float(self.values[self.layout.skew]) / 1000 if self.layout.skew else 0.0

    def now(self) -> datetime:
        """Return the time by the clock of this process."""
        return to_time(self.moment())

    def moment(self) -> int:
        """Return the same as a moment of the semantics."""
        return self.world.now_ms() * 1000

    def written_at(self, record: Record) -> datetime:
        """Return when a record was last written, as far as it says so."""
        return to_time(changed_at(self.rules, record))

    def free_at(self, record: Record) -> datetime:
        """Return from when on a lease of a record can be claimed."""
        return to_time(free_at(self.rules, record))

    def is_claimable(self, record: Record, now: int) -> bool:
        """Whether a lease of a record can be claimed by an owner that is able to."""
        return is_free(self.rules, record) and free_at(self.rules, record) <= now

    def abandoned_at(self, record: Record) -> datetime | None:
        """Return from when on the lease of a record is over by every clock; None where it is not leased."""
        lease = self.rules.lease
        if lease is None or not lease.expires or self.rules.state(record) != lease.state:
            return None
        ends = self.rules.moment_at(record, lease.expires)
        return None if ends is None else to_time(ends) + timedelta(seconds=self.skew_s)

    def latest_due(self, due: Due) -> datetime:
        """Return the time of a record after which a change is not due yet by every clock."""
        return to_time(self.due_moment() - delay(self.rules, due))

    def due_moment(self) -> int:
        """Return the moment that it is by the clock of whoever is behind the most."""
        return self.moment() - to_microseconds(self.skew_s)

    # Failures.

    @contextmanager
    def failures(self, key: str = "") -> Iterator[None]:
        """Raise the conditions that callers know for the failures of the bucket."""
        try:
            yield
        except Unreadable as error:
            raise NotReadable(key, str(error)) from None
        except Refused as error:
            raise self._condition("store_refused", problem=str(error)) from None
        except ObjectError:
            raise self._condition("store_unavailable") from None

    @contextmanager
    def outages(self) -> Iterator[None]:
        """Raise the same for work that goes on by itself; what no retry would mend ends it."""
        try:
            yield
        except ObjectError as error:
            raise self.explain(error) from None
        except Unreadable:
            # Overwritten while it was being changed. The next look finds it so from the beginning.
            raise self._condition("store_unavailable") from None

    def explain(self, error: ObjectError) -> Exception:
        """Return what a failure of the bucket is for work that goes on by itself."""
        return (
            StoreUnusable(str(error)) if isinstance(error, Refused) else self._condition("store_unavailable")
        )

    def _condition(self, role: str, **fields: object) -> Condition:
        make: Callable[..., Condition] = self.roles[role]
        return make(**fields)

    # Clocks.

    def clock_problem(self) -> str | None:
        """Return why times of this process must not be compared with those of others; None where they may."""
        known, most = self.objects.clock_offset_s, self.skew_s
        if not self.layout.skew or known is None:
            return None
        # The client compares with the clock of the machine, which need not be the one that we go by.
        offset = known + time.time() - self.world.now_ms() / 1000
        if abs(offset) <= most + _RESOLUTION_S:
            return None
        return (
            f"the clock of this machine is {abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} that "
            f"of the store; {self.layout.skew} allows {most:g} s. Nothing is taken until the clocks agree."
        )

    async def is_clock_off(self, call: Call) -> bool:
        """Whether this process must not act by its clock, which it then logs."""
        if self.clock_problem() is None:
            return False
        # Whoever does nothing hears nothing of the store's clock either.
        await self.objects.page(self.keys.prefix(None), most=1)
        problem = self.clock_problem()
        if problem is not None:
            self.log_sometimes(call, CLOCK_OFF, "clock", problem)
        return problem is not None

    def log_sometimes(self, call: Call, event: Event, about: str, message: str, /, **fields: object) -> None:
        """Log a trouble, and again only if it lasts."""
        now = self.world.monotonic()
        if now - self._logged.get(about, -_REPEATED_S) >= _REPEATED_S:
            if len(self._logged) > 10_000:
                self._logged.clear()
            self._logged[about] = now
            call.tell(event, message, **fields)

    def log_unreadable(self, call: Call, where: str, error: Exception) -> None:
        """Log an object that is no entity."""
        self.log_sometimes(
            call, OBJECT_UNREADABLE, where, f"{where} is skipped: {error}", entity=self.lifecycle.entity
        )


_RESOLUTION_S = 0.5
"""What is known of the store's clock: its answers name whole seconds."""


def to_time(moment: int) -> datetime:
    """Return a moment of the semantics as a time."""
    return EPOCH + timedelta(microseconds=moment)


async def run_together(
    items: Iterable[Item], act: Callable[[Item], Awaitable[Answer]], at_once: int = AT_ONCE
) -> Sequence[Answer]:
    """Do something to each, several at a time; return the answers in order. The first failure is raised."""
    room = asyncio.Semaphore(at_once)

    async def one(item: Item) -> Answer:
        async with room:
            return await act(item)

    begun = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return await asyncio.gather(*begun)
    except BaseException:
        for each in begun:
            each.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        raise
