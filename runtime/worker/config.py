"""What a worker is told: how fast it may be, how a run may end, and who wants to hear of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field

from runtime.model.lifecycles import Transition
from runtime.model.system import Event

_MANY = 20
"""With so many slots a half of them is run while the other half is exchanged; with fewer, exchanges would
become so small that they cost more than the waiting does."""


class Outcome(Struct, frozen=True):
    """How a run ended: the edge to take, what it takes along, and whether it is the end for good."""

    transition: Transition
    given: Mapping[str, str | None] = field(default_factory=dict)
    final: bool = False


class Pace(Struct, frozen=True):
    """How many run at a time, and all the times of a worker, in seconds."""

    slots: int
    poll_s: float
    lease_s: float | None
    """None where each record says how long its lease is."""
    renew_s: float | None
    """None where leases are not renewed: a run is stopped when its lease ends. A record that has a lease of
    its own length is renewed when a third of that is over, if that is sooner."""
    grace_s: float
    exchanges: int = 1
    """How many exchanges with the store may be under way: more than one for a store that does several at the
    same time, so that it writes the one while another waits for the disk or for the worker."""
    apart: bool = False
    """Whether an outcome is sent as soon as there is one, and waits for no other: right for a store that
    writes entities one by one. Otherwise all that have ended go together, and an exchange is begun beside
    another only if there are `enough`."""

    @property
    def group(self) -> int:
        """How many runs are begun one after the other, and then exchanged."""
        return self.slots if self.slots < _MANY else -(-self.slots // 2)

    @property
    def most(self) -> int | None:
        """How many outcomes go into one exchange; None for all that there are."""
        if self.apart:
            return 1
        return self.group if self.exchanges > 1 else None

    def enough(self, has_more: bool) -> int:
        """How many outcomes make it worth while to begin an exchange beside another.

        Where more are about to be run it waits for a whole group. Otherwise those that came back would be
        run while others wait to be sent, in three parts instead of two halves, and each part costs as much as
        a half before its first row.
        """
        if self.apart:
            return 0
        return self.group if has_more else max(_MANY // 2, self.group // 2)


class Told(Struct, frozen=True):
    """The events that a worker tells of."""

    started: Event
    lease_lost: Event


class Watcher(Protocol):
    """Hears what becomes of the entities in the hands of a worker."""

    def taken(self, key: str) -> None: ...

    def settled(self, key: str, outcome: Outcome) -> None:
        """The store has written how the run ended."""
        ...

    def lost(self, key: str, fence: int, /) -> None:
        """It is given up; nothing that came of the run will be written."""
        ...
