"""What a worker is told: how fast it may be, how a run may end, and who wants to hear of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from runtime.frozen import dataclass
from runtime.lifecycles import Transition
from runtime.tables import Event


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
    lease_s: float | None
    """None where each record says how long its lease is."""
    renew_s: float | None
    """None where leases are not renewed: a run is stopped when its lease ends. A record that has a lease of
    its own length is renewed when a third of that is over, if that is sooner."""
    grace_s: float
    exchanges: int = 1
    """How many exchanges with the store may be under way. With more than one, an outcome is sent as soon as
    there is one, and waits for no other: right for a store that writes entities one by one."""


@dataclass(frozen=True, slots=True)
class Told:
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
