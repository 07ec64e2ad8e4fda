"""Shared context of all operations on the entities of a bucket: keys, writes, clock and failures."""

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
Result = TypeVar("Result")
AT_ONCE = 16
"""Concurrent requests of one operation."""

OBJECT_UNREADABLE = Event("object_unreadable", "WARNING")
CLOCK_OFF = Event("clock_off", "ERROR", always=True)
_REPEATED_S = 60.0
"""Log interval of a lasting problem."""


class BucketContext(Generic[Record]):
    """The context of one kind of entity."""

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
        """Allowed clock skew."""
        return float(self.values[self.layout.skew]) / 1000 if self.layout.skew else 0.0

    def now(self) -> datetime:
        """Return the time by the clock of this process."""
        return to_time(self.moment())

    def moment(self) -> int:
        """Return the same time as microseconds, as in the semantics."""
        return self.world.now_ms() * 1000

    def written_at(self, record: Record) -> datetime:
        """Return the time of the last write of a record, as far as it has one."""
        return to_time(changed_at(self.rules, record))

    def free_at(self, record: Record) -> datetime:
        """Return the time from which a record is claimable."""
        return to_time(free_at(self.rules, record))

    def is_claimable(self, record: Record, now: int) -> bool:
        """Whether a record is claimable by an owner with its capabilities."""
        return is_free(self.rules, record) and free_at(self.rules, record) <= now

    def abandoned_at(self, record: Record) -> datetime | None:
        """Return when the lease of a record has expired by every clock; None where it is not leased."""
        lease = self.rules.lease
        if lease is None or not lease.expires or self.rules.state(record) != lease.state:
            return None
        ends = self.rules.moment_at(record, lease.expires)
        return None if ends is None else to_time(ends) + timedelta(seconds=self.skew_s)

    def latest_due(self, due: Due) -> datetime:
        """Return the latest time of a record at which a change is due by every clock."""
        return to_time(self.due_moment() - delay(self.rules, due))

    def due_moment(self) -> int:
        """Return the time by the slowest clock within the allowed skew."""
        return self.moment() - to_microseconds(self.skew_s)

    # Failures.

    @contextmanager
    def failures(self, key: str = "") -> Iterator[None]:
        """Convert failures of the bucket to the conditions of the spec."""
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
        """Convert failures for background work; a permanent one ends it."""
        try:
            yield
        except ObjectError as error:
            raise self.explain(error) from None
        except Unreadable:
            # Overwritten during the change; the next sweep finds it unreadable from the beginning.
            raise self._condition("store_unavailable") from None

    def explain(self, error: ObjectError) -> Exception:
        """Convert a failure of the bucket to the exception for background work."""
        return (
            StoreUnusable(str(error)) if isinstance(error, Refused) else self._condition("store_unavailable")
        )

    def _condition(self, role: str, **fields: object) -> Condition:
        make: Callable[..., Condition] = self.roles[role]
        return make(**fields)

    # Clocks.

    def clock_problem(self) -> str | None:
        """Return why the clock of this process cannot be relied on; None where it can."""
        known, most = self.objects.clock_offset_s, self.skew_s
        if not self.layout.skew or known is None:
            return None
        # The client compares with the clock of the machine, which may differ from that of the world.
        offset = known + time.time() - self.world.now_ms() / 1000
        if abs(offset) <= most + _RESOLUTION_S:
            return None
        return (
            f"the clock of this machine is {abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} that "
            f"of the store; {self.layout.skew} allows {most:g} s. Nothing is taken until the clocks agree."
        )

    async def is_clock_off(self, call: Call) -> bool:
        """Whether the clock of this process is off, which is then logged."""
        if self.clock_problem() is None:
            return False
        # An idle process gets no responses, and so no new time of the store.
        await self.objects.page(self.keys.prefix(None), most=1)
        problem = self.clock_problem()
        if problem is not None:
            self.log_sometimes(call, CLOCK_OFF, "clock", problem)
        return problem is not None

    def log_sometimes(self, call: Call, event: Event, about: str, message: str, /, **fields: object) -> None:
        """Log a problem, and again only after an interval."""
        now = self.world.monotonic()
        if now - self._logged.get(about, -_REPEATED_S) >= _REPEATED_S:
            if len(self._logged) > 10_000:
                self._logged.clear()
            self._logged[about] = now
            call.tell(event, message, **fields)

    def log_unreadable(self, call: Call, where: str, error: Exception) -> None:
        """Log an object that cannot be decoded as an entity."""
        self.log_sometimes(
            call, OBJECT_UNREADABLE, where, f"{where} is skipped: {error}", entity=self.lifecycle.entity
        )


_RESOLUTION_S = 0.5
"""Resolution of the store's clock: `Date` headers have whole seconds."""


def to_time(moment: int) -> datetime:
    """Convert microseconds of the semantics to a time."""
    return EPOCH + timedelta(microseconds=moment)


async def run_together(
    items: Iterable[Item], act: Callable[[Item], Awaitable[Result]], at_once: int = AT_ONCE
) -> Sequence[Result]:
    """Map items concurrently with a bound; return ordered results, or raise the first failure."""
    room = asyncio.Semaphore(at_once)

    async def one(item: Item) -> Result:
        async with room:
            return await act(item)

    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
