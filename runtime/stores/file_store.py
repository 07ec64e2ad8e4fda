"""What handlers know of entities that are in a file, whichever library reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from runtime.call.context import Call
from runtime.stores.store import Held, KeptStore, Moved, Record


class FileStore(KeptStore[Record], Protocol[Record]):
    """Entities in a file that one process owns. What is not said of a lease is not compared."""

    async def leave(self, key: str, target: int, held: Held, call: Call, /, **given: str | None) -> Moved:
        """Leaves the leased state.

        Raises the condition of role lease_lost where the lease is another's, and lease_stale where it is from
        an earlier time.
        """
        ...

    async def follow(self, key: str, path: Sequence[int], call: Call, /, **given: str | None) -> Moved:
        """Moves an entity along several edges in one step: all of them, or none."""
        ...

    async def extend(self, key: str, held: Held) -> Record | None:
        """Makes a lease longer; None where nobody has it. Raises as `leave` does."""
        ...

    async def counts(self) -> dict[int, int]:
        """How many there are in each state."""
        ...

    async def changed(self, timeout_s: float) -> bool:
        """Waits; True as soon as an entity changes its state."""
        ...
