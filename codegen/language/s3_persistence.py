"""Persistence of entities in a bucket: object keys, index objects (hints), repair and expiry."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from codegen.language.base import LowerName, Part, Positive, UpperName

ObjectKey = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-z][a-z0-9_-]*(/([a-z0-9_-]+|\{[a-z][a-z0-9_]*\})(\.[a-z0-9]+)?)+$",
    ),
    Field(
        description="Key of an object; each {name} is a field of the record.",
        examples=["tasks/{shard}/{id}.json", "ready/{shard}/{available_at}/{id}"],
    ),
]
PlainKey = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_-]*(/[a-z0-9_-]+(\.[a-z0-9]+)?)+$"),
    Field(description="Key of the only object of its kind.", examples=["sweeps/last.json"]),
]
TagText = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/=+@-]{1,128}$")]


class Shard(Part):
    """By what entities are kept apart: the first hex digits of their keys."""

    field: LowerName = Field(description="Record field that has the digits.")
    digits: Annotated[int, Field(ge=1, le=3)] = 1


class Schema(Part):
    """By which layout an object was written."""

    field: LowerName = Field(description="Record field with the number.")
    value: Positive


class KeyIndex(Part):
    """Small objects that hint at entities in some states. A hint is never trusted without a look."""

    key: ObjectKey = Field(
        description="A time of the record stands for minutes since the epoch, in 10 digits; the last part is "
        "the key of the entity."
    )
    in_: Annotated[tuple[UpperName, ...], Field(alias="in", min_length=1)]


class Polling(Part):
    """Where those who take leases look for what is free."""

    index: LowerName
    mode: UpperName = Field(
        description="The variable with index-only, hybrid (all objects are looked at where hints are "
        "missing) or log-scan (hints are not looked at)."
    )
    page: UpperName = Field(description="The variable with how many hints a listing has.")
    scan_page: UpperName = Field(description="The variable with how many objects a listing has.")


class Repairing(Part):
    """Who adds hints that are missing and removes those that are wrong. Entities stay as they are."""

    by: LowerName = Field(description="The component whose node does it.")
    every: UpperName = Field(description="The variable with the seconds between two rounds; 0 is never.")
    page: UpperName = Field(description="The variable with how many objects a listing has.")
    mark: PlainKey | None = Field(
        default=None,
        description="The object that says when the last whole round began. While it is fresh, those who look "
        "in mode hybrid leave alone what is older; without the word they look at everything.",
    )


class Large(Part):
    """JSON of the record that has an object of its own where it is long."""

    over: LowerName = Field(description="The limit; what is longer goes there.")
    refs: Annotated[dict[LowerName, LowerName], Field(min_length=1)] = Field(
        description="JSON fields, and for each the field that says where its value is: an optional message "
        "with the texts `key` and, optional, `version`."
    )
    object: ObjectKey = Field(description="Here {field} stands for the name of the field.")


class Retiring(Part):
    """The tag of entities in some states, so that a rule of the bucket can remove them."""

    tag: TagText
    value: TagText
    in_: Annotated[tuple[UpperName, ...], Field(alias="in", min_length=1)]
    days: UpperName = Field(description="The variable with the days after which they go; unset is never.")


class KeptInS3(Part):
    """Entities as JSON objects of a bucket, each change one conditional PUT; versions are the history."""

    store: Literal["s3"]
    endpoint: UpperName = Field(
        description="The variable that says where the server is; unset is where the provider has it."
    )
    bucket: UpperName = Field(description="The variable with the name of the bucket.")
    region: UpperName = Field(description="The variable with the region.")
    prefix: UpperName | None = Field(
        default=None, description="The variable with what every key begins with, before a slash."
    )
    object: ObjectKey
    shard: Shard | None = None
    revision: LowerName = Field(description="Record field that counts the writes: no two bodies are alike.")
    schema_: Schema | None = Field(default=None, alias="schema")
    keyed_by: LowerName | None = Field(
        default=None,
        description="Optional text of the record. The key of an entity that has one is made from it, so that "
        "no two have the same; the condition of the same text with other content has role key_reused.",
    )
    unversioned: UpperName | None = Field(
        default=None,
        description="The variable that lets a bucket without versions pass. Without this word the entities "
        "need no versions.",
    )
    skew: UpperName | None = Field(
        default=None, description="The variable with the most milliseconds that clocks may differ."
    )
    indexes: dict[LowerName, KeyIndex] = {}
    polls: Polling | None = None
    repairs: Repairing | None = None
    large: Large | None = None
    retires: Retiring | None = None
