"""Where entities live. A state changes through `move` and in no other way, whatever the store is made of."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol, TypeVar

from runtime.call import Call

Record = TypeVar("Record")


class Moved(NamedTuple):
    """How a transition ended: whether it applied, and the state that holds now."""

    applied: bool
    state: int


class NoSuchEntity(Exception):
    """Nothing has this key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class GuardBreach(Exception):
    """A handler tried to change what only a transition may change. This is a fault in the handler."""


class Store(Protocol[Record]):
    """The entities of one kind. Records are immutable; a change makes a new one."""

    async def create(self, record: Record, call: Call) -> Record:
        """Adds an entity in its initial state, stamped; the actor is the proven caller."""
        ...

    async def get(self, key: str) -> Record | None:
        """The record as it is now."""
        ...

    async def move(self, key: str, source: int, target: int, call: Call, **given: str) -> Moved:
        """Moves an entity if it is in `source`; of what is given, the transition takes what the spec says."""
        ...

    async def update(self, key: str, **changes: Any) -> Record:
        """Changes what is neither key nor state nor a stamp."""
        ...

    async def delete(self, key: str, expected: int, call: Call) -> Moved:
        """Takes an entity back if it is in the expected state."""
        ...

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        """A part of the listing, and whether there is more after it; no states means all of them."""
        ...
