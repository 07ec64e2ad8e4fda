"""Differences of types.yaml on the wire. Rules of fields: field_rules.py, states: lifecycle/states.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codegen.language.types import MessageField
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.members import TypePair, find_state_enums, iter_enum_pairs, iter_message_pairs
from codegen.review.kinds.pairs import format_change, iter_added, iter_common, list_gained
from codegen.source.spec import Spec


@kind("type.added", "There is one more enum or message.", Verdict.COMPATIBLE)
def find_type_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, paths in iter_added(_map_types(old), _map_types(new)):
        yield SpecChange(name, f"{name} is added to proto {_format_protos(paths)}", *paths)


@kind("type.removed", "An enum or message is gone.", Verdict.WIRE)
def find_type_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, paths in iter_added(_map_types(new), _map_types(old)):
        yield SpecChange(name, f"{name} is removed from proto {_format_protos(paths)}", *paths)


@kind("type.moved", "An enum or message is in another proto file.", Verdict.WIRE)
def find_type_moved(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(_map_types(old), _map_types(new)):
        if before != after:
            text = f"{name} moves from proto {_format_protos(before)} to {_format_protos(after)}"
            yield SpecChange(name, text, *before, *after)


@kind("field.added", "A message has one more field.", Verdict.COMPATIBLE)
def find_field_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in iter_message_pairs(old, new):
        for name, field in pair.iter_added_members():
            text = f"field {pair.name}.{name} = {field.number} is added"
            yield SpecChange(f"{pair.name}.{name}", text, (*pair.new_at, "fields", name))


@kind("field.removed", "A message lacks a field, whose number and name have to be reserved.", Verdict.WIRE)
def find_field_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in iter_message_pairs(old, new):
        for name, field in pair.iter_removed_members():
            text, verdict = pair.describe_removal(name, field)
            yield SpecChange(f"{pair.name}.{name}", text, (*pair.old_at, "fields", name), verdict=verdict)


@kind("field.renamed", "The number of a field has another name.", Verdict.WIRE)
def find_field_renamed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in iter_message_pairs(old, new):
        yield from _iter_renamed(pair, "fields")


@kind("field.number", "A field has another number.", Verdict.WIRE)
def find_field_number(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in iter_message_pairs(old, new):
        yield from _iter_renumbered(pair, "fields")


@kind("field.type", "A field has another type.", Verdict.WIRE)
def find_field_type(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in iter_message_pairs(old, new):
        for name, was, now in iter_common(pair.before, pair.after):
            if isinstance(was, MessageField) and isinstance(now, MessageField) and was.type != now.type:
                text = f"{pair.name}.{name} type {format_change(was.type, now.type)}"
                yield SpecChange(f"{pair.name}.{name}", text, (*pair.new_at, "fields", name, "type"))


@kind("field.optional", "A field becomes optional, or no longer is.", Verdict.BEHAVIOUR)
def find_field_optional(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in iter_message_pairs(old, new):
        for name, was, now in iter_common(pair.before, pair.after):
            if (
                isinstance(was, MessageField)
                and isinstance(now, MessageField)
                and was.optional != now.optional
            ):
                text = f"{pair.name}.{name} {'may now' if now.optional else 'can no longer'} be absent"
                yield SpecChange(f"{pair.name}.{name}", text, (*pair.new_at, "fields", name, "optional"))


@kind("enum.prefix", "The values of an enum have other names in JSON.", Verdict.WIRE)
def find_enum_prefix(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _iter_enum_changes(old, new, "prefix")


@kind("enum.spelled", "The values of an enum are spelled otherwise in JSON, and in Redis.", Verdict.WIRE)
def find_enum_spelled(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _iter_enum_changes(old, new, "spelled")


def _iter_enum_changes(old: Spec, new: Spec, word: str) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.enums, new.enums):
        was, now = getattr(before, word), getattr(after, word)
        if was != now:
            paths = _map_types(new)[name]
            yield SpecChange(
                name, f"{name} {word} {format_change(was, now)}", *((*path, word) for path in paths)
            )


@kind("value.added", "An enum has one more value.", Verdict.COMPATIBLE)
def find_value_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in _iter_stateless_enums(old, new):
        for name, value in pair.iter_added_members():
            text = f"value {pair.name}.{name} = {value.number} is added"
            yield SpecChange(f"{pair.name}.{name}", text, (*pair.new_at, "values", name))


@kind("value.removed", "An enum lacks a value, whose number and name have to be reserved.", Verdict.WIRE)
def find_value_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in _iter_stateless_enums(old, new):
        for name, value in pair.iter_removed_members():
            text, verdict = pair.describe_removal(name, value)
            yield SpecChange(f"{pair.name}.{name}", text, (*pair.old_at, "values", name), verdict=verdict)


@kind("value.renamed", "The number of an enum value has another name.", Verdict.WIRE)
def find_value_renamed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in _iter_stateless_enums(old, new):
        yield from _iter_renamed(pair, "values")


@kind("value.number", "An enum value has another number.", Verdict.WIRE)
def find_value_number(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in iter_enum_pairs(old, new):
        yield from _iter_renumbered(pair, "values")


@kind("reserved.added", "A number or name is reserved.", Verdict.COMPATIBLE)
def find_reserved_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in _iter_type_pairs(old, new):
        for word in ("numbers", "names"):
            for entry in list_gained(getattr(pair.reserved_before, word), getattr(pair.reserved_after, word)):
                path = (*pair.new_at, "reserved", word)
                yield SpecChange(f"{pair.name} {entry}", f"{pair.name} reserves {entry}", path)


@kind("reserved.removed", "A number or name is no longer reserved.", Verdict.WIRE)
def find_reserved_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in _iter_type_pairs(old, new):
        for word in ("numbers", "names"):
            for entry in list_gained(getattr(pair.reserved_after, word), getattr(pair.reserved_before, word)):
                path = (*pair.old_at, "reserved", word)
                yield SpecChange(f"{pair.name} {entry}", f"{pair.name} no longer reserves {entry}", path)


@kind("reserved.reused", "A new member uses a reserved number or name.", Verdict.WIRE)
def find_reserved_reused(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for pair in _iter_type_pairs(old, new):
        for name, member in iter_added(pair.before, pair.after):
            if member.number in pair.reserved_before.numbers or name in pair.reserved_before.names:
                text = f"{pair.name}.{name} = {member.number} uses again what {pair.name} had reserved"
                yield SpecChange(f"{pair.name}.{name}", text)


def _map_types(spec: Spec) -> dict[str, tuple[Path, ...]]:
    """Map each enum and message to its paths; in a valid spec that is one."""
    found: dict[str, tuple[Path, ...]] = {}
    for proto, types in sorted(spec.types.root.items()):
        for section, names in (("enums", types.enums), ("messages", types.messages)):
            for name in names:
                found[name] = (*found.get(name, ()), ("types", proto, section, name))
    return found


def _format_protos(paths: Iterable[Path]) -> str:
    return ", ".join(path[1] for path in paths)


def _iter_type_pairs(old: Spec, new: Spec) -> Iterator[TypePair]:
    yield from iter_message_pairs(old, new)
    yield from iter_enum_pairs(old, new)


def _iter_stateless_enums(old: Spec, new: Spec) -> Iterator[TypePair]:
    """Iterate over the enums that are not the states of an entity."""
    of_states = set(find_state_enums(old, new).values())
    yield from (pair for pair in iter_enum_pairs(old, new) if pair.name not in of_states)


def _iter_renamed(pair: TypePair, section: str) -> Iterator[SpecChange]:
    for name, other, number in pair.iter_renamed_members():
        text = f"{pair.name}.{name} = {number} gives its number to {pair.name}.{other}"
        paths = (*pair.old_at, section, name), (*pair.new_at, section, other)
        yield SpecChange(f"{pair.name}.{name}", text, *paths)


def _iter_renumbered(pair: TypePair, section: str) -> Iterator[SpecChange]:
    for name, was, now in iter_common(pair.before, pair.after):
        if was.number != now.number:
            text = f"{pair.name}.{name} number {format_change(was.number, now.number)}"
            yield SpecChange(f"{pair.name}.{name}", text, (*pair.new_at, section, name, "number"))
