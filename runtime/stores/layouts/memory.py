"""Layout of entities in memory: nothing but what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from runtime.model.lifecycles import Index, Placed, Storage


class KeptInMemory(Storage, frozen=True):
    """Entities that a process keeps as long as it runs."""

    engine: ClassVar[str] = "memory"

    unique: tuple[str, ...] = ()
    unique_for: Mapping[str, str] = field(default_factory=dict)
    """Fields that no two entities share for some time, and the variable with the seconds."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    expires: str | None = None

    @property
    def placed(self) -> Placed:
        """The parts that affect the semantics of entities."""
        unique = {**dict.fromkeys(self.unique), **self.unique_for}
        return Placed(unique, self.indexes, self.expires)
