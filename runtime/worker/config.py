"""Configuration of a worker: its slots and timings, the outcome of a run, its log events and observer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from runtime.model.lifecycles import Transition
from runtime.model.system import Event

_SPLIT_SLOTS = 20
"""From so many slots on, one half runs while the other half is exchanged. With fewer, the exchanges would be
so small that they cost more than the waiting does."""


class Outcome(Struct, frozen=True):
    """The outcome of a run: its transition, the fields to write with it, and whether no retry may follow."""

    transition: Transition
    fields: Mapping[str, Any] = field(default_factory=dict)
    is_final: bool = False


class WorkerConfig(Struct, frozen=True):
    """Number of slots and all timings of a worker, in seconds."""

    slots: int
    poll_s: float
    lease_s: float | None
    """None where each record has a lease length of its own, and infinite for a lease that goes by `renewed`:
    it goes on until the store says that it was lost."""
    renew_s: float | None
    """None where leases are not renewed: a run is cancelled when its lease expires. A lease with a length of
    its own is renewed after a third of that length, if that is sooner."""
    grace_s: float
    exchanges: int = 1
    """Max exchanges in flight. More than one is for a store with concurrent exchanges: it writes one while
    another waits for the disk or for the worker."""
    settles_individually: bool = False
    """Whether each outcome is sent at once and alone: right for a store that writes entities one by one.
    Otherwise outcomes are sent in batches, and a concurrent exchange needs `min_outcomes`."""

    @property
    def batch_size(self) -> int:
        """Runs that are started one after the other, and then exchanged together."""
        return self.slots if self.slots < _SPLIT_SLOTS else -(-self.slots // 2)

    @property
    def max_outcomes(self) -> int | None:
        """Max outcomes in one exchange; None for no limit."""
        if self.settles_individually:
            return 1
        return self.batch_size if self.exchanges > 1 else None

    def min_outcomes(self, has_more: bool) -> int:
        """Min outcomes that make a second, concurrent exchange worth its cost.

        While more runs are ready, it is a whole batch. With less, claimed entities would run while outcomes
        wait to be sent: three parts instead of two halves, and the fixed cost of a part is that of a half.
        """
        if self.settles_individually:
            return 0
        return self.batch_size if has_more else max(_SPLIT_SLOTS // 2, self.batch_size // 2)


class WorkerEvents(Struct, frozen=True):
    """The log events of a worker."""

    started: Event
    lease_lost: Event


class WorkerObserver(Protocol):
    """Callbacks for the entities that a worker has in flight."""

    def on_claimed(self, key: str) -> None: ...

    def on_settled(self, key: str, outcome: Outcome) -> None:
        """Called when the store has written the outcome of the run."""
        ...

    def on_lost(self, key: str, fence: int, /) -> None:
        """Called when the run is abandoned; nothing of its outcome will be written."""
        ...
