"""Layout of entities in a bucket: the location, and the keys of objects by their purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from runtime.model.lifecycles import Placed, Storage


class Shape(Struct, frozen=True):
    """The JSON form of a record, or of a message in one: every field is present, null where unset."""

    made: type[Struct]
    """Its class."""
    types: Mapping[str, str]
    """The type of each field as in the spec, `enum` for enums."""
    optional: frozenset[str] = frozenset()
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """The names of the values of each enum field."""


class Shard(Struct, frozen=True):
    """The field with the first hex digits of the key, which is the shard of an entity."""

    field: str
    digits: int


class Schema(Struct, frozen=True):
    """The field with the version of the layout of an object."""

    field: str
    value: int


class KeyIndex(Struct, frozen=True):
    """An index of small objects that hint at entities in some states; a time in the key is a minute."""

    key: str
    states: frozenset[int]
    at: str | None = None
    """The time of the record that orders it."""


class Polling(Struct, frozen=True):
    """The index that claims poll; its other settings are variables."""

    index: str
    mode: str
    page: str
    scan_page: str


class Repairing(Struct, frozen=True):
    """The component that repairs indexes; its interval and page size are variables, interval 0 is never."""

    by: str
    every: str
    page: str
    mark: str | None = None
    """The key of the checkpoint of the last complete repair."""


class Large(Struct, frozen=True):
    """Large fields: those with more than `over` bytes have an object of their own."""

    over: int
    refs: Mapping[str, str]
    """Each such field, and the field with the reference to its value."""
    object: str


class Retiring(Struct, frozen=True):
    """The tag of entities in some states, which the bucket expires after so many days."""

    tag: str
    value: str
    states: frozenset[int]
    days: str


class KeptInBucket(Storage, frozen=True):
    """Entities as objects of a bucket, in the layout of the engine. Its place is in variables."""

    engine: ClassVar[str] = "s3"

    endpoint: str
    bucket: str
    region: str
    prefix: str | None = None
    """The variable with what every key begins with, before a slash."""
    words: Placed = Placed()

    @property
    def placed(self) -> Placed:
        """The parts that affect the semantics of entities."""
        return self.words


class KeptInS3(KeptInBucket, frozen=True, kw_only=True):
    """Entities as objects of a bucket with a layout of their own. What is in upper case is a variable."""

    object: str
    shape: Shape
    messages: Mapping[str, Shape]
    """The messages that the record holds, by their names in `types`."""
    shard: Shard | None = None
    schema: Schema | None = None
    keyed_by: str | None = None
    """The field that the key is derived from where it is set."""
    unversioned: str | None = None
    """The variable that allows an unversioned bucket; None where versions are not needed anyway."""
    skew: str | None = None
    indexes: Mapping[str, KeyIndex] = field(default_factory=dict)
    polls: Polling | None = None
    repairs: Repairing | None = None
    large: Large | None = None
    retires: Retiring | None = None
    journal: str | None = None
    """The member of an object with its history; without one it is derived from the versions."""
    unique: str = "unique/{field}/{value}.json"
    """The key of the object that names the entity of a unique value; `value` is its digest."""
    paused: str = "paused.json"
    """The key of the object with the paused values."""

    @property
    def drivers(self) -> frozenset[str]:
        """The components that this engine needs for its own periodic work."""
        return frozenset((self.repairs.by,) if self.repairs is not None else ())

    @property
    def placed(self) -> Placed:
        """The parts that affect the semantics of entities."""
        keyed = {self.keyed_by: None} if self.keyed_by else {}
        return replace(self.words, unique={**self.words.unique, **keyed})
