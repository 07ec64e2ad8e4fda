"""Layout of entities in a bucket: the place, and the keys of objects by their purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from runtime.model.lifecycles import Placed, Storage


class Shape(Struct, frozen=True):
    """A record, or a message in one, as JSON has it: every field is there, and null where it is unset."""

    made: type[Struct]
    """The class of it."""
    types: Mapping[str, str]
    """The type of each field as the spec has it, `enum` where it is one."""
    optional: frozenset[str] = frozenset()
    words: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """What the values of each enum field are called."""


class Shard(Struct, frozen=True):
    """The field that has the first hex digits of the key, by which entities are kept apart."""

    field: str
    digits: int


class Schema(Struct, frozen=True):
    """The field that tells by which layout an object was written."""

    field: str
    value: int


class KeyIndex(Struct, frozen=True):
    """Small objects that hint at entities in some states; a time in the key stands for its minute."""

    key: str
    states: frozenset[int]
    at: str | None = None
    """The time of the record that orders it."""


class Polling(Struct, frozen=True):
    """Where those who take leases look; all but the index are variables."""

    index: str
    mode: str
    page: str
    scan_page: str


class Repairing(Struct, frozen=True):
    """Who puts indexes right; pace and page are variables. Every 0 seconds is never."""

    by: str
    every: str
    page: str
    mark: str | None = None
    """The object that says when the last whole round began."""


class Large(Struct, frozen=True):
    """Fields that have an object of their own where their JSON has more bytes than `over`."""

    over: int
    refs: Mapping[str, str]
    """Each such field, and the field that then says where its value is."""
    object: str


class Retiring(Struct, frozen=True):
    """The tag of entities in some states, by which the bucket removes them after so many days."""

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
        """What it says of the meaning of entities."""
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
    """The field that the key is made from where an entity has one."""
    unversioned: str | None = None
    """The variable that says that there need be no versions; None where none are needed anyway."""
    skew: str | None = None
    indexes: Mapping[str, KeyIndex] = field(default_factory=dict)
    polls: Polling | None = None
    repairs: Repairing | None = None
    large: Large | None = None
    retires: Retiring | None = None
    journal: str | None = None
    """The member of an object that has its history; without one its versions are all that is known."""
    unique: str = "unique/{field}/{value}.json"
    """The object that says which entity has a unique value; `value` is the digest of it."""
    paused: str = "paused.json"
    """The object with the values that are not claimed."""

    @property
    def drivers(self) -> frozenset[str]:
        """The components that work for this engine by a clock of its own."""
        return frozenset((self.repairs.by,) if self.repairs is not None else ())

    @property
    def placed(self) -> Placed:
        """What it says of the meaning of entities."""
        keyed = {self.keyed_by: None} if self.keyed_by else {}
        return replace(self.words, unique={**self.words.unique, **keyed})
