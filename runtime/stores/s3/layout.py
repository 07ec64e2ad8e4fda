"""The default layout of entities without one in the spec: object keys and types of fields."""

from __future__ import annotations

from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from runtime.model.lifecycles import Lifecycle
from runtime.stores.layouts.s3 import KeptInBucket, KeptInS3, Shape
from runtime.stores.semantics.placement import read_placement

_TYPES = {str: "string", bool: "bool", int: "int64", float: "double", datetime: "timestamp"}

_PLACE = KeptInBucket("S3_ENDPOINT", "S3_BUCKET", "S3_REGION")


def default_layout(lifecycle: Lifecycle, record: type[Any], folder: str = "") -> KeptInS3:
    """Return a layout without indexes: the history is in the object, and claims scan all objects.

    `folder` is the prefix of every key, its last slash included.
    """
    messages: dict[str, Shape] = {}
    entity, place = lifecycle.entity, lifecycle.stored_as(KeptInBucket) or _PLACE
    return KeptInS3(
        endpoint=place.endpoint,
        bucket=place.bucket,
        region=place.region,
        prefix=place.prefix,
        words=read_placement(lifecycle),
        object=f"{folder}{entity}/{{{lifecycle.key}}}.json",
        shape=_shape(record, messages),
        messages=messages,
        journal="_journal",
        unique=f"{folder}unique/{entity}/{{field}}/{{value}}.json",
        paused=f"{folder}paused/{entity}.json",
    )


def _shape(made: type[Any], messages: dict[str, Shape]) -> Shape:
    hints = get_type_hints(made, localns={})
    types = {name: _type_name(hints[name], messages) for name in made.__struct_fields__}
    optional = frozenset(name for name in types if NoneType in get_args(hints[name]))
    return Shape(made=made, types=types, optional=optional)


def _type_name(hint: Any, messages: dict[str, Shape]) -> str:
    """Return the spec's name of a field type."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    origin, of = get_origin(hint), get_args(hint)
    if origin in (tuple, list):
        return f"repeated {_type_name(of[0], messages)}"
    if origin is dict:
        return f"map<string, {_type_name(of[1], messages)}>"
    if isinstance(hint, type) and issubclass(hint, Struct):
        if hint.__name__ not in messages:
            messages[hint.__name__] = _shape(hint, messages)
        return hint.__name__
    if hint not in _TYPES:
        raise TypeError(f"{hint} cannot be stored in a bucket")
    return _TYPES[hint]
