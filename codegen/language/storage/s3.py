"""Layout of entities in a bucket: object keys, index objects (hints), repair and expiry."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from codegen.language.base import LowerName, Part, Positive, UpperName

ObjectKey = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-z][a-z0-9_-]*(/([a-z0-9_-]+|\{[a-z][a-z0-9_]*\})(\.[a-z0-9]+)?)+$",
    ),
]
"""Key of an object; each `{name}` is a field of the record."""
PlainKey = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*(/[a-z0-9_-]+(\.[a-z0-9]+)?)+$")]
"""Key of the only object of its kind."""
TagText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/=+@-]{1,128}$")]


class Shard(Part):
    """Shards of entities, by the first hex digits of their keys."""

    field: LowerName = Field(description="Record field that has the digits.")
    digits: Annotated[int, Field(ge=1, le=3)] = Field(
        default=1, description="Number of hex digits: 1 makes 16 shards, 3 make 4096."
    )


class Schema(Part):
    """The version of the layout in every object."""

    field: LowerName = Field(description="Record field, a number, with the version.")
    value: Positive = Field(description="The version that is written.")


class KeyIndex(Part):
    """Hints: small objects whose keys point to entities in some states. The entity itself is the truth."""

    key: ObjectKey = Field(
        description="Key of a hint; each `{name}` is a record field, a time as minutes since the epoch in "
        "10 digits, and the last part is the key of the entity."
    )
    in_: Annotated[tuple[UpperName, ...], Field(min_length=1)] = Field(
        alias="in", description="States whose entities have a hint."
    )


class Polling(Part):
    """How a claim finds entities."""

    index: LowerName = Field(description="Index of the entities that can be claimed.")
    mode: UpperName = Field(
        description="Variable with `index-only`, `hybrid` (objects are listed after the hints, so that an "
        "entity without a hint is found) or `log-scan` (objects alone)."
    )
    page: UpperName = Field(description="Variable with the hints of one listing.")
    scan_page: UpperName = Field(description="Variable with the objects of one listing.")


class Repairing(Part):
    """Repair of hints: missing ones are added, wrong ones removed. Entities are not changed."""

    by: LowerName = Field(description="Component whose nodes repair.")
    every: UpperName = Field(description="Variable with the seconds between two repairs; 0 is never.")
    page: UpperName = Field(description="Variable with the objects of one listing.")
    mark: PlainKey | None = Field(
        default=None,
        description="Object with the checkpoint of the last complete repair, so that `hybrid` lists only "
        "objects that changed after it; without it all objects are listed.",
    )


class Large(Part):
    """Large JSON fields in objects of their own."""

    over: LowerName = Field(
        description="Limit, in bytes, above which the JSON of a field has its own object."
    )
    refs: Annotated[dict[LowerName, LowerName], Field(min_length=1)] = Field(
        description="JSON fields, and for each the field that refers to its object: an optional message "
        "with the texts `key` and, optional, `version`."
    )
    object: ObjectKey = Field(
        description="Key of such an object; `{field}` is the name of the field, each other `{name}` a "
        "record field."
    )


class Retiring(Part):
    """A tag on entities in some states, by which a life-cycle rule of the bucket removes them."""

    tag: TagText = Field(description="Key of the tag.")
    value: TagText = Field(description="Value of the tag.")
    in_: Annotated[tuple[UpperName, ...], Field(min_length=1)] = Field(
        alias="in", description="States whose entities have the tag."
    )
    days: UpperName = Field(
        description="Variable with the days after which the bucket removes them; unset is never."
    )


class Layout(Part):
    """The objects of an entity."""

    object: ObjectKey | None = Field(
        default=None,
        description="Key of the object of an entity; each `{name}` is a record field, its key is one of "
        "them; `<entity>/{key}.json` by default.",
    )
    revision: LowerName | None = Field(
        default=None,
        description="Record field, a number, that counts the writes, so that no two versions have one ETag; "
        "that of `revision` in `lifecycle.yaml` by default.",
    )
    shard: Shard | None = Field(default=None, description="Shards of the keys; without them there is one.")
    schema_: Schema | None = Field(
        default=None, alias="schema", description="Version of the layout; without it objects have none."
    )
    keyed_by: LowerName | None = Field(
        default=None,
        description="Optional record field of `unique`, a text, that the key is derived from; a handler that "
        "finds other content under it raises the condition of role `key_reused`.",
    )
    unversioned: UpperName | None = Field(
        default=None,
        description="Variable of type bool that allows a bucket without versioning. Without this key the "
        "entities need no versions.",
    )
    skew: UpperName | None = Field(
        default=None,
        description="Variable with the milliseconds by which clocks may differ: a process whose clock is "
        "further from that of the store claims nothing, and changes are due so much later.",
    )
    indexes: dict[LowerName, KeyIndex] = Field(
        default={}, description="Hints by name; claims and clocks need one in the order of their time."
    )
    polls: Polling | None = Field(
        default=None, description="How claims find entities; required with a lease."
    )
    repairs: Repairing | None = Field(
        default=None, description="Repair of hints; without it a missing hint stays missing."
    )
    large: Large | None = Field(
        default=None, description="Large JSON fields; without it everything is in the object of the entity."
    )
    retires: Retiring | None = Field(
        default=None, description="Removal by a rule of the bucket; without it entities stay."
    )


class S3Storage(Part):
    """Entities as JSON objects of a bucket, each change one conditional PUT; versions are the history."""

    endpoint: UpperName = Field(
        default="S3_ENDPOINT",
        description="Variable with the address of the server; unset is that of the provider.",
    )
    bucket: UpperName = Field(default="S3_BUCKET", description="Variable with the name of the bucket.")
    region: UpperName = Field(default="S3_REGION", description="Variable with the region.")
    prefix: UpperName | None = Field(
        default=None,
        description="Variable with the folder of all objects, so that one bucket holds several systems; "
        "unset is none.",
    )
    entities: dict[LowerName, Layout] = Field(
        default={}, description="Entities whose objects have a layout of their own; others have the default."
    )
