"""What all that is done to entities in a bucket shares: their keys and changes, and how failures are told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import Event, System
from runtime.observe.metrics import Metrics
from runtime.stores.audit import TransitionAudit
from runtime.stores.object_store import NotReadable
from runtime.stores.s3.changes import Changes
from runtime.stores.s3.client.errors import ObjectError, Refused
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.guarded import Guarded
from runtime.stores.s3.indexes.indexes import Indexes
from runtime.stores.s3.keys import Keys
from runtime.stores.s3.rows import Unreadable
from runtime.stores.store import Record, StoreUnusable
from runtime.world import World

Item = TypeVar("Item")
Answer = TypeVar("Answer")
AT_ONCE = 16
"""Requests of one piece of work that are under way together."""

OBJECT_UNREADABLE = Event("object_unreadable", "WARNING")
CLOCK_OFF = Event("clock_off", "ERROR", always=True)
_REPEATED_S = 60.0
"""How often a trouble that lasts is told of."""


class Entities(Generic[Record]):
    """The entities of one kind, and the bucket that has them."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        objects: Objects,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
    ) -> None:
        assert lifecycle.in_s3 is not None
        self.kept = lifecycle.in_s3
        self.roles = system.roles
        self.lifecycle = lifecycle
        self.objects = objects
        self.world = world
        self.values = values
        self.keys = Keys(lifecycle, self.kept)
        self.changes: Changes[Record] = Changes(lifecycle, self.kept, self.keys, values, world)
        self.indexes = Indexes(lifecycle, self.kept, self.keys, objects)
        self.guarded: Guarded[Record] = Guarded(lifecycle, self.kept, self.keys, objects, self.indexes, world)
        self.telling = TransitionAudit(lifecycle, metrics)
        self._told: dict[str, float] = {}

    # Failures.

    @contextmanager
    def failures(self, key: str = "") -> Iterator[None]:
        """Turns what the bucket answers to a caller's wish into what callers know."""
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
        """The same for work that goes on by itself: what no repeat would mend ends it."""
        try:
            yield
        except ObjectError as error:
            raise self.meaning(error) from None
        except Unreadable:
            # Overwritten while it was being changed. The next look finds it so from the beginning.
            raise self._condition("store_unavailable") from None

    def meaning(self, error: ObjectError) -> Exception:
        """What a failure of the bucket is for work that goes on by itself."""
        return (
            StoreUnusable(str(error)) if isinstance(error, Refused) else self._condition("store_unavailable")
        )

    def denied(self, call: Call, problem: str) -> Condition:
        return self._condition("permission_denied", caller=call.caller, method=call.method, problem=problem)

    def lost(self, key: str, holder: str) -> Condition:
        return self._condition("lease_lost", holder=holder, key=key)

    def key_reused(self, key: str) -> Condition:
        return self._condition("key_reused", entity=self.lifecycle.entity, field=self.kept.keyed_by, key=key)

    def _condition(self, role: str, **fields: object) -> Condition:
        make: Callable[..., Condition] = self.roles[role]
        return make(**fields)

    def edge(self, source: int, target: int, call: Call, name: str = "") -> Transition:
        """The edge between two states, or the one of a name; raises unless the caller may take it."""
        return require_edge(self.roles, self.lifecycle, call.caller, call.method, source, target, name)

    # Clocks.

    def clock_problem(self) -> str | None:
        """Why times of this process must not be compared with those of others; None where they may."""
        known, most = self.objects.clock_offset_s, self.changes.skew_s
        if not self.kept.skew or known is None:
            return None
        # The client compares with the clock of the machine, which need not be the one that we go by.
        offset = known + time.time() - self.world.now_ms() / 1000
        if abs(offset) <= most + _RESOLUTION_S:
            return None
        return (
            f"the clock of this machine is {abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} that "
            f"of the store; {self.kept.skew} allows {most:g} s. Nothing is taken until the clocks agree."
        )

    async def is_clock_off(self, call: Call) -> bool:
        """Whether this process must not act by its clock, of which it then tells."""
        if self.clock_problem() is None:
            return False
        # Whoever does nothing hears nothing of the store's clock either.
        await self.objects.page(self.keys.prefix(None), most=1)
        problem = self.clock_problem()
        if problem is not None:
            self.tell_sometimes(call, CLOCK_OFF, "clock", problem)
        return problem is not None

    def tell_sometimes(self, call: Call, event: Event, about: str, message: str, /, **fields: object) -> None:
        """Tells of a trouble, and again only if it lasts."""
        now = self.world.monotonic()
        if now - self._told.get(about, -_REPEATED_S) >= _REPEATED_S:
            if len(self._told) > 10_000:
                self._told.clear()
            self._told[about] = now
            call.tell(event, message, **fields)

    def unreadable(self, call: Call, where: str, error: Exception) -> None:
        """Tells of an object that is no entity."""
        self.tell_sometimes(
            call, OBJECT_UNREADABLE, where, f"{where} is skipped: {error}", entity=self.lifecycle.entity
        )


_RESOLUTION_S = 0.5
"""What is known of the store's clock: its answers name whole seconds."""


async def together(
    items: Iterable[Item], act: Callable[[Item], Awaitable[Answer]], at_once: int = AT_ONCE
) -> Sequence[Answer]:
    """Does something to each, several at a time; the answers in their order. The first failure is raised."""
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
