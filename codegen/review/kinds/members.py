"""Members of types: fields of messages and values of enums, with numbers that are never reused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from codegen.language.types import EnumValue, MessageField, Reserved
from codegen.review.difference import Verdict
from codegen.review.form import Path
from codegen.review.kinds.pairs import iter_added, iter_common
from codegen.source.spec import Spec, type_ref

Member = EnumValue | MessageField


class TypePair(NamedTuple):
    """The members of one enum or message before and after."""

    name: str
    before: Mapping[str, Member]
    after: Mapping[str, Member]
    reserved_before: Reserved
    reserved_after: Reserved
    old_at: Path
    new_at: Path

    def iter_added_members(self) -> Iterator[tuple[str, Member]]:
        """Iterate over new names with numbers that no removed member had."""
        removed = {member.number for _, member in iter_added(self.after, self.before)}
        yield from (
            (name, member)
            for name, member in iter_added(self.before, self.after)
            if member.number not in removed
        )

    def iter_removed_members(self) -> Iterator[tuple[str, Member]]:
        """Iterate over removed names with numbers that no new member has."""
        fresh = {member.number for _, member in iter_added(self.before, self.after)}
        yield from (
            (name, member)
            for name, member in iter_added(self.after, self.before)
            if member.number not in fresh
        )

    def iter_renamed_members(self) -> Iterator[tuple[str, str, int]]:
        """Iterate over removed names, each with the new name of its number, and that number."""
        fresh = {member.number: name for name, member in iter_added(self.before, self.after)}
        for name, member in iter_added(self.after, self.before):
            if member.number in fresh:
                yield name, fresh[member.number], member.number

    def describe_removal(self, name: str, member: Member) -> tuple[str, Verdict]:
        """Describe a removed member: sentence and verdict."""
        what = f"{self.name}.{name} = {member.number} is deleted"
        if member.number in self.reserved_after.numbers and name in self.reserved_after.names:
            return f"{what}; its number and name are reserved", Verdict.BEHAVIOUR
        return f"{what} without being reserved", Verdict.WIRE


def iter_message_pairs(old: Spec, new: Spec) -> Iterator[TypePair]:
    """Iterate over the messages that both specs have."""
    for name, before, after in iter_common(old.messages, new.messages):
        places = get_type_path(old, "messages", name), get_type_path(new, "messages", name)
        yield TypePair(name, before.fields, after.fields, before.reserved, after.reserved, *places)


def iter_enum_pairs(old: Spec, new: Spec) -> Iterator[TypePair]:
    """Iterate over the enums that both specs have."""
    for name, before, after in iter_common(old.enums, new.enums):
        places = get_type_path(old, "enums", name), get_type_path(new, "enums", name)
        yield TypePair(name, before.values, after.values, before.reserved, after.reserved, *places)


def get_type_path(spec: Spec, section: str, name: str) -> Path:
    """Get the path of an enum or message."""
    return ("types", spec.proto_of[name], section, name)


def find_status_enum(spec: Spec, entity: str) -> str:
    """Find the enum of an entity's states; empty if its record has none."""
    row = spec.lifecycle.entities[entity]
    message = spec.messages.get(row.record)
    field = message.fields.get(row.status) if message else None
    name = type_ref(field.type).name if field else ""
    return name if name in spec.enums else ""


def find_state_enums(old: Spec, new: Spec) -> dict[str, str]:
    """Find the entities that both specs have with the same enum of states."""
    found = {
        name: find_status_enum(old, name)
        for name, _, _ in iter_common(old.lifecycle.entities, new.lifecycle.entities)
    }
    return {name: enum for name, enum in found.items() if enum and enum == find_status_enum(new, name)}
