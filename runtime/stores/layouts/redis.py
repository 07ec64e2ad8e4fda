"""Layout of entities in Redis: the server, and the keys by their purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field

from runtime.model.lifecycles import Index, Placed, Storage


class Remembered(Struct, frozen=True):
    """A unique field, for some time or for ever."""

    key: str = ""
    """Empty for the default of the engine."""
    seconds: str | None = None


class Outbox(Struct, frozen=True):
    """A stream of all changes, and the tables that they are written to."""

    stream: str
    url: str
    table: str
    ended: str
    by: str
    expires: str | None = None
    """The variable with the retention of the history of ended entities in seconds."""


class KeptInRedis(Storage, frozen=True):
    """Entities as hashes, and the names of all other keys."""

    engine: ClassVar[str] = "redis"

    url: str
    prefix: str | None
    hash: str = ""
    """Empty where the spec has no names; then all are those of the engine."""
    sequence: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    """The type of each field of the record as in the spec, `enum` for enums."""
    optional: frozenset[str] = frozenset()
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """The stored names of the values of each enum field."""
    trace: str | None = None
    expires: str | None = None
    replicas: str | None = None
    """The variable with the number of replicas that must have a new entity before the response."""
    unique: Mapping[str, Remembered] = field(default_factory=dict)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    paused: str | None = None
    """The set of values that are not claimed."""
    wake_up: str | None = None
    metrics: str | None = None
    outbox: Outbox | None = None

    @property
    def drivers(self) -> frozenset[str]:
        """The components that this engine needs for its own periodic work."""
        return frozenset((self.outbox.by,) if self.outbox is not None else ())

    @property
    def placed(self) -> Placed:
        """The parts that affect the semantics of entities."""
        unique = {name: each.seconds for name, each in self.unique.items()}
        return Placed(unique, self.indexes, self.expires, self.trace)
