"""Fields of messages and values of enums, seen alike: members with a number that is theirs for good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from codegen.language.types import EnumValue, MessageField, Reserved
from codegen.review.difference import Verdict
from codegen.review.form import Path
from codegen.review.kinds.pairs import added, kept
from codegen.source.spec import Spec, type_ref

Member = EnumValue | MessageField


class Held(NamedTuple):
    """The members of one enum or message before and after."""

    name: str
    before: Mapping[str, Member]
    after: Mapping[str, Member]
    reserved_before: Reserved
    reserved_after: Reserved
    old_at: Path
    new_at: Path

    def came(self) -> Iterator[tuple[str, Member]]:
        """New names with numbers that no lost member had."""
        lost = {member.number for _, member in added(self.after, self.before)}
        yield from (
            (name, member) for name, member in added(self.before, self.after) if member.number not in lost
        )

    def went(self) -> Iterator[tuple[str, Member]]:
        """Lost names with numbers that no new member has."""
        fresh = {member.number for _, member in added(self.before, self.after)}
        yield from (
            (name, member) for name, member in added(self.after, self.before) if member.number not in fresh
        )

    def renamed(self) -> Iterator[tuple[str, str, int]]:
        """A lost name, the new name that has its number, and that number."""
        fresh = {member.number: name for name, member in added(self.before, self.after)}
        for name, member in added(self.after, self.before):
            if member.number in fresh:
                yield name, fresh[member.number], member.number

    def deletion(self, name: str, member: Member) -> tuple[str, Verdict]:
        """The sentence and verdict for a member that went."""
        what = f"{self.name}.{name} = {member.number} is deleted"
        if member.number in self.reserved_after.numbers and name in self.reserved_after.names:
            return f"{what}; its number and name are reserved", Verdict.BEHAVIOUR
        return f"{what} without being reserved", Verdict.WIRE


def messages(old: Spec, new: Spec) -> Iterator[Held]:
    """The messages that both have."""
    for name, before, after in kept(old.messages, new.messages):
        places = type_path(old, "messages", name), type_path(new, "messages", name)
        yield Held(name, before.fields, after.fields, before.reserved, after.reserved, *places)


def enums(old: Spec, new: Spec) -> Iterator[Held]:
    """The enums that both have."""
    for name, before, after in kept(old.enums, new.enums):
        places = type_path(old, "enums", name), type_path(new, "enums", name)
        yield Held(name, before.values, after.values, before.reserved, after.reserved, *places)


def type_path(spec: Spec, section: str, name: str) -> Path:
    """Where an enum or message stands."""
    return ("types", spec.proto_of[name], section, name)


def status_enum(spec: Spec, entity: str) -> str:
    """The enum that holds the states of an entity; empty if its record has none."""
    row = spec.lifecycle.entities[entity]
    message = spec.messages.get(row.record)
    field = message.fields.get(row.status) if message else None
    name = type_ref(field.type).name if field else ""
    return name if name in spec.enums else ""


def state_enums(old: Spec, new: Spec) -> dict[str, str]:
    """Each entity that both have with its enum, where that is the same in both."""
    found = {
        name: status_enum(old, name) for name, _, _ in kept(old.lifecycle.entities, new.lifecycle.entities)
    }
    return {name: enum for name, enum in found.items() if enum and enum == status_enum(new, name)}
