"""Layout of entities in Redis: the server, and the keys by their purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field

from runtime.model.lifecycles import Index, Placed, Storage


class Remembered(Struct, frozen=True):
    """A field of which no two entities share a value, for some time or for ever."""

    key: str = ""
    """Empty where its name goes unsaid."""
    seconds: str | None = None


class Outbox(Struct, frozen=True):
    """A stream of all changes, and the tables that they are written to."""

    stream: str
    url: str
    table: str
    ended: str
    by: str
    expires: str | None = None
    """The variable with the seconds for which the history of what has ended is kept."""


class KeptInRedis(Storage, frozen=True):
    """Entities as hashes, and the names of all other keys."""

    engine: ClassVar[str] = "redis"

    url: str
    prefix: str | None
    hash: str = ""
    """Empty where no names are said; then there are none but those of the engine."""
    sequence: str = ""
    types: Mapping[str, str] = field(default_factory=dict)
    """The type of each field of the record as the spec has it, `enum` where it is one."""
    optional: frozenset[str] = frozenset()
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """What the values of each enum field are in the hash."""
    trace: str | None = None
    expires: str | None = None
    replicas: str | None = None
    """The variable with how many replicas must have what was created before anybody is told so."""
    unique: Mapping[str, Remembered] = field(default_factory=dict)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    paused: str | None = None
    """The set of values that are not claimed."""
    wake_up: str | None = None
    metrics: str | None = None
    outbox: Outbox | None = None

    @property
    def drivers(self) -> frozenset[str]:
        """The components that work for this engine by a clock of its own."""
        return frozenset((self.outbox.by,) if self.outbox is not None else ())

    @property
    def placed(self) -> Placed:
        """What it says of the meaning of entities."""
        unique = {name: each.seconds for name, each in self.unique.items()}
        return Placed(unique, self.indexes, self.expires, self.trace)
