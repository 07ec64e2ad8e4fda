"""Differences of types.yaml on the wire. Rules of fields: field_rules.py, states: lifecycle/states.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codegen.language.types import MessageField
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.members import Held, enums, messages, state_enums
from codegen.review.kinds.pairs import added, gained, kept, turn
from codegen.source.spec import Spec


@kind("type.added", "There is one more enum or message.", Verdict.COMPATIBLE)
def type_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, paths in added(_types(old), _types(new)):
        yield Found(name, f"{name} is added to proto {_protos(paths)}", *paths)


@kind("type.removed", "An enum or message is gone.", Verdict.WIRE)
def type_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, paths in added(_types(new), _types(old)):
        yield Found(name, f"{name} is removed from proto {_protos(paths)}", *paths)


@kind("type.moved", "An enum or message is in another proto file.", Verdict.WIRE)
def type_moved(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(_types(old), _types(new)):
        if before != after:
            text = f"{name} moves from proto {_protos(before)} to {_protos(after)}"
            yield Found(name, text, *before, *after)


@kind("field.added", "A message has one more field.", Verdict.COMPATIBLE)
def field_added(old: Spec, new: Spec) -> Iterator[Found]:
    for held in messages(old, new):
        for name, field in held.came():
            text = f"field {held.name}.{name} = {field.number} is added"
            yield Found(f"{held.name}.{name}", text, (*held.new_at, "fields", name))


@kind("field.removed", "A message lacks a field, whose number and name have to be reserved.", Verdict.WIRE)
def field_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for held in messages(old, new):
        for name, field in held.went():
            text, verdict = held.deletion(name, field)
            yield Found(f"{held.name}.{name}", text, (*held.old_at, "fields", name), verdict=verdict)


@kind("field.renamed", "The number of a field has another name.", Verdict.WIRE)
def field_renamed(old: Spec, new: Spec) -> Iterator[Found]:
    for held in messages(old, new):
        yield from _renamed(held, "fields")


@kind("field.number", "A field has another number.", Verdict.WIRE)
def field_number(old: Spec, new: Spec) -> Iterator[Found]:
    for held in messages(old, new):
        yield from _renumbered(held, "fields")


@kind("field.type", "A field has another type.", Verdict.WIRE)
def field_type(old: Spec, new: Spec) -> Iterator[Found]:
    for held in messages(old, new):
        for name, was, now in kept(held.before, held.after):
            if isinstance(was, MessageField) and isinstance(now, MessageField) and was.type != now.type:
                text = f"{held.name}.{name} type {turn(was.type, now.type)}"
                yield Found(f"{held.name}.{name}", text, (*held.new_at, "fields", name, "type"))


@kind("field.optional", "A field may be absent that could not, or the other way.", Verdict.BEHAVIOUR)
def field_optional(old: Spec, new: Spec) -> Iterator[Found]:
    for held in messages(old, new):
        for name, was, now in kept(held.before, held.after):
            if (
                isinstance(was, MessageField)
                and isinstance(now, MessageField)
                and was.optional != now.optional
            ):
                text = f"{held.name}.{name} {'may now' if now.optional else 'can no longer'} be absent"
                yield Found(f"{held.name}.{name}", text, (*held.new_at, "fields", name, "optional"))


@kind("enum.prefix", "The values of an enum have other names in JSON.", Verdict.WIRE)
def enum_prefix(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _enum_words(old, new, "prefix")


@kind("enum.spelled", "The values of an enum are spelled otherwise in JSON, and in Redis.", Verdict.WIRE)
def enum_spelled(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _enum_words(old, new, "spelled")


def _enum_words(old: Spec, new: Spec, word: str) -> Iterator[Found]:
    for name, before, after in kept(old.enums, new.enums):
        was, now = getattr(before, word), getattr(after, word)
        if was != now:
            paths = _types(new)[name]
            yield Found(name, f"{name} {word} {turn(was, now)}", *((*path, word) for path in paths))


@kind("value.added", "An enum has one more value.", Verdict.COMPATIBLE)
def value_added(old: Spec, new: Spec) -> Iterator[Found]:
    for held in _stateless(old, new):
        for name, value in held.came():
            text = f"value {held.name}.{name} = {value.number} is added"
            yield Found(f"{held.name}.{name}", text, (*held.new_at, "values", name))


@kind("value.removed", "An enum lacks a value, whose number and name have to be reserved.", Verdict.WIRE)
def value_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for held in _stateless(old, new):
        for name, value in held.went():
            text, verdict = held.deletion(name, value)
            yield Found(f"{held.name}.{name}", text, (*held.old_at, "values", name), verdict=verdict)


@kind("value.renamed", "The number of an enum value has another name.", Verdict.WIRE)
def value_renamed(old: Spec, new: Spec) -> Iterator[Found]:
    for held in _stateless(old, new):
        yield from _renamed(held, "values")


@kind("value.number", "An enum value has another number.", Verdict.WIRE)
def value_number(old: Spec, new: Spec) -> Iterator[Found]:
    for held in enums(old, new):
        yield from _renumbered(held, "values")


@kind("reserved.added", "A number or name is set aside for good.", Verdict.COMPATIBLE)
def reserved_added(old: Spec, new: Spec) -> Iterator[Found]:
    for held in _all(old, new):
        for word in ("numbers", "names"):
            for entry in gained(getattr(held.reserved_before, word), getattr(held.reserved_after, word)):
                path = (*held.new_at, "reserved", word)
                yield Found(f"{held.name} {entry}", f"{held.name} reserves {entry}", path)


@kind("reserved.removed", "A number or name that was set aside is free again.", Verdict.WIRE)
def reserved_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for held in _all(old, new):
        for word in ("numbers", "names"):
            for entry in gained(getattr(held.reserved_after, word), getattr(held.reserved_before, word)):
                path = (*held.old_at, "reserved", word)
                yield Found(f"{held.name} {entry}", f"{held.name} no longer reserves {entry}", path)


@kind("reserved.reused", "A new member takes a number or name that was set aside.", Verdict.WIRE)
def reserved_reused(old: Spec, new: Spec) -> Iterator[Found]:
    for held in _all(old, new):
        for name, member in added(held.before, held.after):
            if member.number in held.reserved_before.numbers or name in held.reserved_before.names:
                text = f"{held.name}.{name} = {member.number} uses again what {held.name} had reserved"
                yield Found(f"{held.name}.{name}", text)


def _types(spec: Spec) -> dict[str, tuple[Path, ...]]:
    """Where each enum and message stands; in a sound spec that is one place."""
    found: dict[str, tuple[Path, ...]] = {}
    for proto, types in sorted(spec.types.root.items()):
        for section, names in (("enums", types.enums), ("messages", types.messages)):
            for name in names:
                found[name] = (*found.get(name, ()), ("types", proto, section, name))
    return found


def _protos(paths: Iterable[Path]) -> str:
    return ", ".join(path[1] for path in paths)


def _all(old: Spec, new: Spec) -> Iterator[Held]:
    yield from messages(old, new)
    yield from enums(old, new)


def _stateless(old: Spec, new: Spec) -> Iterator[Held]:
    """Enums that are not the states of an entity."""
    taken = set(state_enums(old, new).values())
    yield from (held for held in enums(old, new) if held.name not in taken)


def _renamed(held: Held, section: str) -> Iterator[Found]:
    for name, other, number in held.renamed():
        text = f"{held.name}.{name} = {number} gives its number to {held.name}.{other}"
        paths = (*held.old_at, section, name), (*held.new_at, section, other)
        yield Found(f"{held.name}.{name}", text, *paths)


def _renumbered(held: Held, section: str) -> Iterator[Found]:
    for name, was, now in kept(held.before, held.after):
        if was.number != now.number:
            text = f"{held.name}.{name} number {turn(was.number, now.number)}"
            yield Found(f"{held.name}.{name}", text, (*held.new_at, section, name, "number"))
