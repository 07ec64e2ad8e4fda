"""Rules of types.yaml about the numbers of fields and enum values, and the reserved ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.language.types import EnumType, MessageType
from codegen.rules.lookup import Members, format_enum_prefix, iter_types
from codegen.rules.rule import Finding, rule
from codegen.source.spec import Spec


@rule(
    "E103",
    "Two members of a type have the same number.",
    wrong="job_id: {number: 1, type: string}\nstatus: {number: 1, type: JobStatus}",
    right="job_id: {number: 1, type: string}\nstatus: {number: 2, type: JobStatus}",
)
def check_numbers_unique(spec: Spec) -> Iterator[Finding]:
    for path, type_, members in iter_types(spec):
        names: dict[int, str] = {}
        for name, member in members.items():
            if other := names.get(member.number):
                message = f"'{name}' has the number {member.number}, which is that of '{other}'."
                hint = f"The next free number is {_find_next_number(type_, members)}."
                yield Finding(spec.place("types", *path, name, "number"), message, hint)
            names.setdefault(member.number, name)


@rule(
    "E104",
    "A number or a name of a deleted member is used again, so that old and new messages would be mixed up.",
    wrong="fields: {job_id: {number: 1, type: string}}\nreserved: {numbers: [1]}",
    right="fields: {job_id: {number: 2, type: string}}\nreserved: {numbers: [1]}",
)
def check_reserved(spec: Spec) -> Iterator[Finding]:
    for path, type_, members in iter_types(spec):
        for name, member in members.items():
            if name in type_.reserved.names:
                place = spec.place("types", *path, name, key=True)
                yield Finding(place, f"The name '{name}' is reserved.", "Choose a name that was never used.")
            if member.number in type_.reserved.numbers:
                place = spec.place("types", *path, name, "number")
                hint = f"The next free number is {_find_next_number(type_, members)}."
                yield Finding(place, f"'{name}' has the number {member.number}, which is reserved.", hint)


@rule(
    "E105",
    "The numbers of a message have a gap that is not reserved.",
    wrong="fields: {job_id: {number: 1, type: string}, status: {number: 3, type: JobStatus}}",
    right=(
        "fields: {job_id: {number: 1, type: string}, status: {number: 3, type: JobStatus}}\n"
        "reserved: {numbers: [2]}"
    ),
    needs=("types",),
)
def check_number_gaps(spec: Spec) -> Iterator[Finding]:
    for path, type_, members in iter_types(spec):
        numbers = [member.number for member in members.values()]
        if isinstance(type_, EnumType) or len(numbers) > len(set(numbers)):
            continue
        known = {*numbers, *type_.reserved.numbers}
        for name, member in members.items():
            if member.number > 1 and member.number - 1 not in known:
                message = f"'{name}' has the number {member.number}, but no field has {member.number - 1}."
                hint = "Number the fields without gaps; the number of a deleted field goes to 'reserved'."
                yield Finding(spec.place("types", *path, name, "number"), message, hint)


@rule(
    "E106",
    "An enum does not begin with an unspecified value of number 0, which is what a missing field reads as.",
    wrong="values: {QUEUED: {number: 1}}",
    right="values: {JOB_STATUS_UNSPECIFIED: {number: 0}, QUEUED: {number: 1}}",
    needs=("types",),
)
def check_unspecified_value(spec: Spec) -> Iterator[Finding]:
    for path, type_, members in iter_types(spec):
        if isinstance(type_, EnumType):
            name = next(iter(members))
            if members[name].number != 0 or not name.endswith("UNSPECIFIED"):
                message = f"The enum '{path[-2]}' begins with '{name}' of number {members[name].number}."
                hint = f"Begin it with '{format_enum_prefix(str(path[-2]))}UNSPECIFIED: {{number: 0}}'."
                yield Finding(spec.place("types", *path, name, key=True), message, hint)


@rule(
    "E113",
    "A number cannot be used on the wire.",
    wrong="fields: {job_id: {number: 19000, type: string}}  # protobuf keeps 19000 to 19999 for itself",
    right="fields: {job_id: {number: 1, type: string}}",
)
def check_number_range(spec: Spec) -> Iterator[Finding]:
    for path, type_, members in iter_types(spec):
        for name, member in members.items():
            limits = "of 2147483647 at most" if isinstance(type_, EnumType) else "outside 19000 to 19999"
            possible = member.number < 2**31 if isinstance(type_, EnumType) else member.number // 1000 != 19
            if not possible:
                place = spec.place("types", *path, name, "number")
                message = f"'{name}' has the number {member.number}, which cannot be used on the wire."
                yield Finding(place, message, f"Choose a number {limits}.")


@rule(
    "E114",
    "A reserved name is none that a member could have.",
    wrong="fields: {}\nreserved: {names: [Worker-Id]}",
    right="fields: {}\nreserved: {names: [worker_id]}",
)
def check_reserved_names(spec: Spec) -> Iterator[Finding]:
    for (proto, kind, type_name, _), type_, _ in iter_types(spec):
        form = "[A-Z][A-Z0-9_]*" if isinstance(type_, EnumType) else "[a-z][a-z0-9_]*"
        for index, name in enumerate(type_.reserved.names):
            if not re.fullmatch(form, name):
                place = spec.place("types", proto, kind, type_name, "reserved", "names", index)
                yield Finding(
                    place, f"No member of '{type_name}' could be called '{name}'.", f"It must match {form}"
                )


def _find_next_number(type_: EnumType | MessageType, members: Members) -> int:
    return max([0, *(member.number for member in members.values()), *type_.reserved.numbers]) + 1
