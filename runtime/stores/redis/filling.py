"""What the scripts are handed that create entities: all values of a record, as they stand in a hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic

import orjson

from runtime.stores.redis.entities import Entities
from runtime.stores.redis.given import is_packed, kept_apart
from runtime.stores.redis.rows import signature
from runtime.stores.store import Record

Filled = tuple[list[Any], dict[str, Any]]
"""The values of a record with all that stands in for what was not given, and what the script is handed."""


class Filling(Generic[Record]):
    """Fills in what scripts want to know of the entities of one kind."""

    def __init__(self, entities: Entities[Record]) -> None:
        self._entities = entities
        lifecycle, rows = entities.lifecycle, entities.rows
        many, written = entities.scripts["create"], written_fields(entities)
        self._given = [
            (place, name, rows.writers[name]) for place, name in enumerate(rows.names) if name not in written
        ]
        place = {name: place for place, name in enumerate(rows.names)}
        self._key = place[lifecycle.key]
        self._fills = [(place[name], place[fill.by], fill.of) for name, fill in lifecycle.fills.items()]
        self._copies = [(place[name], place[other]) for name, other in lifecycle.copies.items()]
        new = [name for name in many.each_arguments if name.startswith("new.")]
        self._new = [(name, place[name[4:]], rows.writers[name[4:]]) for name in new]
        parted = parted_by(entities)
        self._parted = place[parted] if parted else None
        self._is_packed = is_packed(entities.system, lifecycle)
        self._apart = kept_apart(lifecycle)

    def values(self, record: Any) -> list[Any]:
        """The values of a record, with all that stands in for what was not given."""
        values = list(self._entities.rows.values_of(record))
        for at, by, of in self._fills:
            if values[at] is None:
                values[at] = self._entities.variables[of[values[by]]]
        for at, other in self._copies:
            values[at] = values[other]
        return values

    def filled(self, record: Any) -> Filled:
        """The values, and what the script for many is handed."""
        values = self.values(record)
        fields = self._fields(values)
        handed: dict[str, Any] = {"key": values[self._key]}
        if self._is_packed:
            handed["apart"] = packed(_popped(fields, self._apart)) if self._apart & fields.keys() else ""
            handed["fields"] = packed(fields)
        else:
            handed["fields"] = packed(_popped(fields, fields))
        for argument, at, write in self._new:
            value = values[at]
            handed[argument] = "" if value is None else value if write is None else write(value)
        if self._parted is not None:
            handed["believed..signature"] = signature(values[self._parted])
        return values, handed

    def _fields(self, values: Sequence[Any]) -> dict[str, str]:
        """What is set, as it stands in a hash."""
        fields: dict[str, str] = {}
        for at, name, write in self._given:
            value = values[at]
            if value is not None:
                fields[name] = str(value if write is None else write(value))
        return fields


def written_fields(entities: Entities[Any]) -> set[str]:
    """What the scripts that create write themselves."""
    lifecycle = entities.lifecycle
    return {lifecycle.status, entities.kept.sequence, *lifecycle.creation_stamps, *_decided(entities)}


def parted_by(entities: Entities[Any]) -> str | None:
    """The field whose texts say in which part of an index an entity is."""
    return next((index.parts.by for index in entities.kept.indexes.values() if index.parts), None)


def _decided(entities: Entities[Any]) -> set[str]:
    indexes = entities.kept.indexes.values()
    return {each for index in indexes for each in (index.only_if, index.only_unless) if each}


def packed(texts: Mapping[str, str] | Sequence[str]) -> bytes:
    """Names and values as one text, which costs client and server less than as many arguments."""
    try:
        return orjson.dumps(texts)
    except TypeError:
        "".join(texts.values() if isinstance(texts, Mapping) else texts).encode()  # It says what is wrong.
        raise


def _popped(fields: dict[str, str], names: Iterable[str]) -> list[str]:
    """Some fields, which are no longer where they were: names and values in turn."""
    return [text for name in [*names] if name in fields for text in (name, fields.pop(name))]
