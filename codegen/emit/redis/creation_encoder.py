"""Encoders of new entities for Redis: from a record to the keys and arguments of the script for one alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from codegen.emit.artefact import Artefact, render_template, to_camel_case
from codegen.emit.python.lifecycle import describe_fields
from codegen.emit.python.records import select_redis_entities
from codegen.emit.redis.lua_files import scripts
from codegen.emit.redis.redis_entity import SIGNATURE, RedisEntity
from codegen.emit.redis.script_arguments import Layout
from codegen.source.spec import Spec

_ALONE = ("create_one", "create_for")
"""The scripts that create an entity by itself, and that hand it to a holder that waits."""
_OWNER = "owner"
_TEXTS = ("string", "json")


def emit(spec: Spec) -> Iterator[Artefact]:
    encoders = [Encoder(RedisEntity(spec, name, row)) for name, row in select_redis_entities(spec).items()]
    if encoders:
        tables = [table for each in encoders for table in each.constants.values()]
        text = render_template(
            "redis/creation.py.j2",
            spec,
            encoders=encoders,
            values=sorted({value for table in tables for value in table}),
            records=[each.record for each in encoders],
        )
        yield Artefact(f"generated/{spec.name}/creation.py", text)


@dataclass(frozen=True)
class Call:
    """The keys and arguments of one script for one entity, as expressions of Python."""

    script: str
    keys: list[str]
    arguments: list[str]

    @property
    def needs_signature(self) -> bool:
        """Whether the signature of a set of texts is in it."""
        return self._has(SIGNATURE)

    @property
    def needs_owner(self) -> bool:
        """Whether a holder is in it."""
        return self._has(_OWNER)

    def _has(self, name: str) -> bool:
        return name in self.arguments or any(f"{{{name}}}" in key for key in self.keys)


@dataclass(frozen=True)
class Encoder:
    """What the module has to say of one kind of entity."""

    entity: RedisEntity

    @property
    def name(self) -> str:
        return self.entity.name

    @property
    def record(self) -> str:
        return f"{to_camel_case(self.entity.name)}Record"

    @cached_property
    def words(self) -> dict[str, dict[str, str]]:
        """The words of each enum that is encoded, by the constant that has them."""
        found = describe_fields(self.entity.spec, self.entity.row.record).words
        return {self._constant(name): found[name] for name in self._given if name in found}

    @cached_property
    def variables(self) -> dict[str, dict[str, str]]:
        """The variable for each value of an enum, by the constant that has them."""
        return {
            f"_{self.name}_{field}_by_{render_template.by}".upper(): dict(render_template.of)
            for field, render_template in self.entity.row.create.fills.items()
        }

    @property
    def constants(self) -> dict[str, dict[str, str]]:
        """Tables by the values of an enum."""
        return {**self.words, **self.variables}

    @property
    def defaults(self) -> list[tuple[str, str]]:
        """What stands for each field that may have a default, and the default."""
        fills = self.entity.row.create.fills
        of = zip(fills, fills.values(), self.variables, strict=True)
        return [
            (field, f"variables[{constant}[{self._value(render_template.by, copied=False)}]]")
            for field, render_template, constant in of
        ]

    @property
    def special(self) -> list[str]:
        """Values that the script knows nothing of: unique, holding back, or stored by themselves."""
        return [self._value(name) for name in self.entity.fields if name in self._special]

    @property
    def always(self) -> dict[str, str]:
        """The text of each field that is always set."""
        return {name: self._text(name) for name in self._given if not self.entity.optional(name)}

    @property
    def optional(self) -> dict[str, tuple[str, str]]:
        """The value, and the text, of each field that may be unset."""
        found = [name for name in self._given if self.entity.optional(name)]
        return {name: (self._value(name), self._text(name)) for name in found}

    @property
    def parted(self) -> str | None:
        """The value whose texts have a signature."""
        return self._value(self.entity.parted) if self.entity.parted else None

    @cached_property
    def calls(self) -> list[Call]:
        """The calls of the scripts for one alone."""
        return [
            Call(each.name, [*self._keys(each.layout)], [*self._arguments(each.layout)])
            for each in scripts(self.entity)
            if each.name in _ALONE
        ]

    def _keys(self, layout: Layout) -> Iterator[str]:
        for pattern in layout.each_keys.values():
            pieces = re.split(r"\{(\w+)\}", pattern)
            texts = [json.dumps(each)[1:-1].replace("{", "{{").replace("}", "}}") for each in pieces[0::2]]
            places = [f"{{{self._part(name)}}}" for name in pieces[1::2]]
            yield 'f"{prefix}' + "".join(map("".join, zip(texts, [*places, ""], strict=True))) + '"'

    def _part(self, name: str) -> str:
        if name == self.entity.key:
            return f"record.{name}"
        return {SIGNATURE: SIGNATURE, _OWNER: _OWNER}.get(name) or self._encoded(name)

    def _arguments(self, layout: Layout) -> Iterator[str]:
        own = {
            "key": f"record.{self.entity.key}",
            # Names and values in turn, where they become fields of the hash.
            "fields": "packed(fields)" if self.entity.packed else "packed([*chain(*fields.items())])",
            f"believed.{self.entity.signature_field}": SIGNATURE,
            f"believed.{_OWNER}": _OWNER,
        }
        for name in layout.each_arguments:
            yield own.get(name) or self._encoded(name.removeprefix("new."))

    def _encoded(self, name: str) -> str:
        """A field as it was encoded; empty if it is unset."""
        if name in self._special:
            return "''"
        return f"fields.get('{name}', '')" if self.entity.optional(name) else f"fields['{name}']"

    @cached_property
    def _given(self) -> list[str]:
        """The fields that come from whoever creates; the script sets the others."""
        row = self.entity.row
        own = {row.status, self.entity.kept.sequence, *row.create.stamps, *self._special}
        return [name for name in self.entity.fields if name not in own]

    @cached_property
    def _special(self) -> set[str]:
        kept = self.entity.kept
        decided = {name for each in kept.indexes.values() for name in (each.only_if, each.only_unless)}
        return {name for name in (*kept.unique, *decided, *self.entity.apart) if name}

    def _value(self, name: str, *, copied: bool = True) -> str:
        """The value of a field in Python, with its default; a field may begin as another."""
        create = self.entity.row.create
        if copied and name in create.copies:
            return self._value(create.copies[name])
        return f"new_{name}" if name in create.fills else f"record.{name}"

    def _text(self, name: str) -> str:
        """A field that is set, as it is stored in a hash."""
        kind, value = self.entity.fields[name].type, self._value(name)
        if self.entity.is_enum(name):
            return f"{self._constant(name)}[{value}]"
        if kind == "timestamp":
            return f"str(microseconds({value}))"
        if kind == "bool":
            return f'"true" if {value} else "false"'
        if kind == "repeated string":
            return f"listed({value})"
        return value if kind in _TEXTS else f"str({value})"

    def _constant(self, name: str) -> str:
        return f"_{self.name}_{name}_words".upper()
