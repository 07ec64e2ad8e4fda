"""What the scripts are handed that create entities: all values of a record, as they stand in a hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic

import orjson

from runtime.redis.entities import Entities
from runtime.redis.given import is_packed, kept_apart
from runtime.redis.rows import Write, signature
from runtime.store import Record

Filled = tuple[list[Any], dict[str, Any]]
"""The values of a record with all that stands in for what was not given, and what the script is handed."""
_New = tuple[str, int, Write | None]
"""An argument of a script, the place of its value, and how that is written."""


class Filling(Generic[Record]):
    """Fills in what scripts want to know of the entities of one kind."""

    def __init__(self, entities: Entities[Record]) -> None:
        self._entities = entities
        lifecycle, kept, rows = entities.lifecycle, entities.kept, entities.rows
        many, one = entities.scripts["create"], entities.scripts["create_one"]
        decided = {
            each for index in kept.indexes.values() for each in (index.only_if, index.only_unless) if each
        }
        written = {lifecycle.status, kept.sequence, *lifecycle.creation_stamps, *decided}
        self._given = [
            (place, name, rows.writers[name]) for place, name in enumerate(rows.names) if name not in written
        ]
        place = {name: place for place, name in enumerate(rows.names)}
        self._key = place[lifecycle.key]
        self._fills = [(place[name], place[fill.by], fill.of) for name, fill in lifecycle.fills.items()]
        self._copies = [(place[name], place[other]) for name, other in lifecycle.copies.items()]
        self._new, self._new_alone = (
            [
                (name, place[name[4:]], rows.writers[name[4:]])
                for name in script.each_arguments
                if name.startswith("new.")
            ]
            for script in (many, one)
        )
        self._chosen = [(name, place[name], kept.words[name]) for name in one.chosen & {*kept.words}]
        parted = next((index.parts.by for index in kept.indexes.values() if index.parts), None)
        self._parted = place[parted] if parted else None
        self._is_packed = is_packed(entities.system, lifecycle)
        self._apart = kept_apart(lifecycle)
        self._special = [place[name] for name in {*kept.unique, *decided, *self._apart}]
        ceiling = lifecycle.refuses
        self._is_bounded = bool(ceiling and int(entities.variables.get(ceiling.most) or 0))

    def values(self, record: Any) -> list[Any]:
        """The values of a record, with all that stands in for what was not given."""
        values = list(self._entities.rows.values_of(record))
        for at, by, of in self._fills:
            if values[at] is None:
                values[at] = self._entities.variables[of[values[by]]]
        for at, other in self._copies:
            values[at] = values[other]
        return values

    def is_plain(self, values: Sequence[Any]) -> bool:
        """Whether nothing can stand in the way of an entity, so that the shorter script does."""
        for at in self._special:
            if values[at] is not None:
                return False
        return not self._is_bounded

    def alone(self, values: Sequence[Any]) -> dict[str, Any]:
        """What the script for one is handed. Nothing that would be kept apart is set there."""
        fields = self._fields(values)
        handed: dict[str, Any] = {
            "key": values[self._key],
            "fields": _packed(fields if self._is_packed else _popped(fields, fields)),
        }
        for name, at, words in self._chosen:
            handed[name] = words[values[at]]
        self._hand(handed, values, self._new_alone)
        return handed

    def filled(self, record: Any) -> Filled:
        """The values, and what the script for many is handed."""
        values = self.values(record)
        fields = self._fields(values)
        handed: dict[str, Any] = {"key": values[self._key]}
        if self._is_packed:
            handed["apart"] = _packed(_popped(fields, self._apart)) if self._apart & fields.keys() else ""
            handed["fields"] = _packed(fields)
        else:
            handed["fields"] = _packed(_popped(fields, fields))
        self._hand(handed, values, self._new)
        return values, handed

    def _fields(self, values: Sequence[Any]) -> dict[str, str]:
        """What is set, as it stands in a hash."""
        fields: dict[str, str] = {}
        for at, name, write in self._given:
            value = values[at]
            if value is not None:
                fields[name] = str(value if write is None else write(value))
        return fields

    def _hand(self, handed: dict[str, Any], values: Sequence[Any], new: Sequence[_New]) -> None:
        """Adds what a script has to know by itself."""
        for argument, at, write in new:
            value = values[at]
            handed[argument] = "" if value is None else value if write is None else write(value)
        if self._parted is not None:
            handed["believed.signature"] = signature(values[self._parted])


def _packed(texts: Mapping[str, str] | Sequence[str]) -> bytes:
    """Names and values as one text, which costs client and server less than as many arguments."""
    try:
        return orjson.dumps(texts)
    except TypeError:
        "".join(texts.values() if isinstance(texts, Mapping) else texts).encode()  # It says what is wrong.
        raise


def _popped(fields: dict[str, str], names: Iterable[str]) -> list[str]:
    """Some fields, which are no longer where they were: names and values in turn."""
    return [text for name in [*names] if name in fields for text in (name, fields.pop(name))]
