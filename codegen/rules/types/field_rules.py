"""Rules of types.yaml about the rules of fields: each must apply to the type of its field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from codegen.language.types import FieldRules, ItemRules, MessageField
from codegen.rules.lookup import RANGES, find_misfit
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import SCALARS, Spec, type_ref
from codegen.source.yaml_reader import Path

_TEXT = ("string",)
_INTEGERS = tuple(RANGES)
_NUMBERS = (*_INTEGERS, "double", "float")
_GIVEN = ("string", "bytes", "json", "bool", "enum", "message", "timestamp", "list", "map", *_NUMBERS)
_FITS: dict[str, tuple[str, ...]] = {
    "non_empty": ("string", "bytes", "json", "list", "map"),
    "min_length": _TEXT,
    "max_length": _TEXT,
    "max_bytes": ("string", "bytes", "json"),
    "min": _NUMBERS,
    "max": _NUMBERS,
    "pattern": _TEXT,
    "uuid": _TEXT,
    "uuid4": _TEXT,
    "defined": ("enum",),
    "specified": ("enum",),
    "one_of": ("enum", "string"),
    "storable": ("string", "json", "map"),
    "json_object": ("json",),
    "required": ("message", "timestamp"),
    "required_when": ("string", "bytes", "json", "bool", "enum", "message", "timestamp", *_NUMBERS),
    "required_unless": _GIVEN,
    "must_be": ("bool",),
    "max_items": ("list", "map"),
    "items": ("list",),
    "sha256_of": _TEXT,
    "default": ("enum", "string", *_INTEGERS),
    "absent": ("enum", "string", "json", "bool", *_NUMBERS),
    "filled": ("message",),
    "clamp": _INTEGERS,
    "cut": _TEXT,
    "upper": _TEXT,
    "page_size": ("uint32", "uint64"),
    "page_token": _TEXT,
}
"""The kinds of field that each rule applies to."""

_UNITS = {"max_length": "characters", "max_bytes": "bytes", "max_items": "items", "cut": "bytes"}


@dataclass(frozen=True, slots=True)
class _RuledField:
    """A field, or the elements of a list, with its rules."""

    path: Path
    type: str
    rules: ItemRules

    @property
    def name(self) -> str:
        """The field's name, also for the rules of its elements."""
        return str(self.path[self.path.index("fields") + 1])


@rule(
    "E121",
    "A rule does not fit the type of its field.",
    wrong="cancel_requested: {number: 1, type: bool, rules: {non_empty: true}}",
    right="cancel_requested: {number: 1, type: bool, rules: {must_be: true}}",
)
def check_rule_kinds(spec: Spec) -> Iterator[Finding]:
    for ruled in _iter_ruled_fields(spec):
        kind = _find_kind(spec, ruled.type)
        for name in _list_used_rules(ruled.rules):
            if kind and kind not in _FITS[name]:
                message = f"The rule '{name}' does not fit '{ruled.name}', which is of type {ruled.type}."
                matching = [each for each, kinds in _FITS.items() if kind in kinds]
                hint = f"For this type there are: {', '.join(matching)}." if matching else ""
                yield Finding(spec.place("types", *ruled.path, name, key=True), message, hint)


@rule(
    "E122",
    "A rule names a value that its field cannot have.",
    wrong="sort: {number: 1, type: JobSort, rules: {default: NEWEST}}",
    right="sort: {number: 1, type: JobSort, rules: {default: CREATED_AT_DESC}}",
)
def check_rule_values(spec: Spec) -> Iterator[Finding]:
    for ruled in _iter_ruled_fields(spec):
        named: list[tuple[Path, object]] = [
            (("one_of", index), value) for index, value in enumerate(ruled.rules.one_of or ())
        ]
        for word in ("default", "absent") if isinstance(ruled.rules, FieldRules) else ():
            if (value := getattr(ruled.rules, word)) is not None:
                named.append(((word,), value))
        for path, value in named:
            if _find_kind(spec, ruled.type) in _FITS[str(path[0])] and (
                wrong := find_misfit(spec, ruled.type, value)
            ):
                place = spec.place("types", *ruled.path, *path)
                yield Finding(place, f"'{ruled.name}' {wrong.problem}.", wrong.hint)


@rule(
    "E123",
    "A pattern is no regular expression.",
    wrong='code: {number: 1, type: string, rules: {pattern: "[0-9"}}',
    right='code: {number: 1, type: string, rules: {pattern: "[0-9]+"}}',
)
def check_patterns(spec: Spec) -> Iterator[Finding]:
    for ruled in _iter_ruled_fields(spec):
        if ruled.rules.pattern is not None:
            try:
                re.compile(ruled.rules.pattern)
            except (re.error, OverflowError, RecursionError) as error:
                place = spec.place("types", *ruled.path, "pattern")
                yield Finding(place, f"The pattern of '{ruled.name}' is no regular expression: {error}.")


@rule(
    "E124",
    "No value can be within the bounds.",
    wrong="size: {number: 1, type: uint32, rules: {min: 10, max: 1}}",
    right="size: {number: 1, type: uint32, rules: {min: 1, max: 10}}",
)
def check_bounds(spec: Spec) -> Iterator[Finding]:
    for ruled in _iter_ruled_fields(spec):
        rules = ruled.rules
        longest = rules.max_length if isinstance(rules.max_length, int) else None
        pairs = [
            ("min", rules.min, "max", rules.max),
            ("min_length", rules.min_length, "max_length", longest),
        ]
        if isinstance(rules, FieldRules) and rules.clamp:
            pairs.append(("clamp", rules.clamp.min, "max", rules.clamp.max))
        for low_name, low, high_name, high in pairs:
            place = spec.place("types", *ruled.path, low_name)
            if low is not None and high is not None and low > high:
                yield Finding(
                    place, f"'{ruled.name}' has {low_name} {low}, above {high_name} {high}.", "Swap them."
                )
            yield from _check_range(spec, ruled, (low_name, low), (high_name, high))


def _check_range(spec: Spec, ruled: _RuledField, *bounds: tuple[str, int | None]) -> Iterator[Finding]:
    least, greatest = RANGES.get(ruled.type, (None, None))
    for name, bound in bounds:
        if (
            bound is not None
            and least is not None
            and greatest is not None
            and not least <= bound <= greatest
        ):
            message = f"'{ruled.name}' is a {ruled.type}, which {bound} is not."
            hint = f"It holds numbers from {least} to {greatest}."
            yield Finding(spec.place("types", *ruled.path, name), message, hint)


@rule(
    "E125",
    "A rule names a limit that does not exist or counts something else.",
    wrong="reason: {number: 1, type: string, rules: {cut: stored_txt}}",
    right="reason: {number: 1, type: string, rules: {cut: stored_text}}",
)
def check_limits(spec: Spec) -> Iterator[Finding]:
    limits = spec.system.policies.limits
    for ruled in _iter_ruled_fields(spec):
        for rule_name, unit in _UNITS.items():
            limit = getattr(ruled.rules, rule_name, None)
            if limit is None:
                continue
            if isinstance(limit, int):
                if limit < 1:
                    place = spec.place("types", *ruled.path, rule_name)
                    yield Finding(place, f"The {rule_name} of '{ruled.name}' is {limit}.", "Give at least 1.")
                continue
            place = spec.place("types", *ruled.path, rule_name)
            yield from report_unknown(
                spec, place, f"The {rule_name} of '{ruled.name}' is the limit", limit, limits
            )
            if limit in limits and limits[limit].unit != unit:
                message = f"{rule_name} counts {unit}, and the limit '{limit}' is in {limits[limit].unit}."
                yield Finding(place, message, f"Name a limit in {unit}.")


@rule(
    "E126",
    "A rule names a pagination policy that does not exist.",
    wrong="page_size: {number: 1, type: uint32, rules: {page_size: ofset}}",
    right="page_size: {number: 1, type: uint32, rules: {page_size: offset}}",
)
def check_pagination_exists(spec: Spec) -> Iterator[Finding]:
    for ruled in _iter_ruled_fields(spec):
        if isinstance(ruled.rules, FieldRules):
            for name in ("page_size", "page_token"):
                if policy := getattr(ruled.rules, name):
                    place = spec.place("types", *ruled.path, name)
                    known = spec.system.policies.pagination
                    yield from report_unknown(
                        spec, place, f"'{ruled.name}' is under the pagination policy", policy, known
                    )


@rule(
    "E127",
    "A checksum is taken of something that is not a bytes field beside it.",
    wrong="checksum: {number: 2, type: string, rules: {sha256_of: output}}",
    right="output: {number: 1, type: bytes}\nchecksum: {number: 2, type: string, rules: {sha256_of: output}}",
)
def check_checksums(spec: Spec) -> Iterator[Finding]:
    for ruled in _iter_ruled_fields(spec):
        if isinstance(ruled.rules, FieldRules) and (other := ruled.rules.sha256_of):
            place = spec.place("types", *ruled.path, "sha256_of")
            siblings = spec.types.root[str(ruled.path[0])].messages[str(ruled.path[2])].fields
            of_bytes = [name for name, field in siblings.items() if field.type == "bytes"]
            if other not in siblings:
                yield from report_unknown(spec, place, f"'{ruled.name}' is a checksum of", other, of_bytes)
            elif other not in of_bytes:
                message = (
                    f"'{ruled.name}' is a checksum of '{other}', which is of type {siblings[other].type}."
                )
                yield Finding(place, message, "Only a bytes field has one.")


def _iter_ruled_fields(spec: Spec) -> Iterator[_RuledField]:
    """Iterate over all fields with rules, the elements of lists included."""
    for proto, types in spec.types.root.items():
        for message_name, message in types.messages.items():
            for name, field in message.fields.items():
                yield from _iter_field_rules(
                    (proto, "messages", message_name, "fields", name, "rules"), field
                )


def _iter_field_rules(path: Path, field: MessageField) -> Iterator[_RuledField]:
    if not field.rules.model_fields_set:
        return
    yield _RuledField(path, field.type, field.rules)
    if field.rules.items and type_ref(field.type).kind == "repeated":
        yield _RuledField((*path, "items"), type_ref(field.type).name, field.rules.items)


def _list_used_rules(rules: ItemRules) -> list[str]:
    """List the rules that differ from their defaults."""
    return [name for name, field in type(rules).model_fields.items() if getattr(rules, name) != field.default]


def _find_kind(spec: Spec, type_text: str) -> str:
    """Find the kind of a type in the table; empty if it is not defined."""
    ref = type_ref(type_text)
    if ref.kind != "single":
        return "list" if ref.kind == "repeated" else "map"
    if ref.name in SCALARS:
        return ref.name
    return "enum" if ref.name in spec.enums else "message" if ref.name in spec.messages else ""
