"""Layout of entities in a SQLite file: the file and the name of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from runtime.model.lifecycles import Index, Placed, Storage


class KeptInSqlite(Storage, frozen=True):
    """The variable with the path of the file, and the table in it."""

    engine: ClassVar[str] = "sqlite"
    path: str
    table: str
    unique: tuple[str, ...]
    words: Mapping[int, str]
    """The stored names of states."""
    unique_for: Mapping[str, str] = field(default_factory=dict)
    """Fields that are unique for some time, and the variable with the seconds."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    expires: str | None = None

    @property
    def placed(self) -> Placed:
        """The parts that affect the semantics of entities."""
        unique = {**dict.fromkeys(self.unique), **self.unique_for}
        return Placed(unique, self.indexes, self.expires)
