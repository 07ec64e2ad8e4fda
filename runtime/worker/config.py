"""Configuration of a worker: its slots and timings, the outcome of a run, its log events and observer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from runtime.model.lifecycles import Transition
from runtime.model.system import Event


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
    Otherwise outcomes are sent in batches, and a concurrent exchange needs enough of them."""


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
