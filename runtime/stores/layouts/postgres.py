"""Layout of entities in PostgreSQL: the server and the names of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from runtime.model.lifecycles import Index, Placed, Storage


class KeptInPostgres(Storage, frozen=True):
    """The server of the entities, and the names of their tables."""

    engine: ClassVar[str] = "postgres"

    store: str
    url: str
    table: str
    history: str
    unique: tuple[str, ...] = ()
    folder: str = "sql"
    """The folder of the generated SQL, which has its own series of migrations."""
    unique_for: Mapping[str, str] = field(default_factory=dict)
    """Fields that are unique for some time, and the variable with the seconds."""
    indexes: Mapping[str, Index] = field(default_factory=dict)
    expires: str | None = None

    @property
    def placed(self) -> Placed:
        """The parts that affect the semantics of entities."""
        unique = {**dict.fromkeys(self.unique), **self.unique_for}
        return Placed(unique, self.indexes, self.expires)
